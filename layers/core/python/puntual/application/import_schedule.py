"""Bring one schedule to what a line of a file says: create it, edit it, or find it so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from puntual.application.change_schedule import ChangeSchedule
from puntual.application.create_schedule import CreateSchedule
from puntual.application.ports import Clock, Schedules
from puntual.domain.definition import Definition, Limits, version_of
from puntual.domain.errors import Conflict
from puntual.domain.likeness import parts_that_differ
from puntual.domain.schedule import (
    ContendedSchedule,
    DuplicateSchedule,
    Schedule,
    ScheduleEnded,
    ScheduleKey,
    ScheduleState,
    ScheduleVersion,
    StaleVersion,
    effective_from_of,
)
from puntual.domain.tenant import Tenant

TRIES_MAX = 3

Standing = tuple[Schedule, ScheduleVersion]


def standing_of(
    schedules: Schedules, keys: Sequence[ScheduleKey]
) -> Mapping[ScheduleKey, Standing]:
    """Read heads and versions of up to 100 schedules, but for those absent or unreadable."""
    heads = schedules.heads(keys)
    versions = schedules.versions({key: head.version for key, head in heads.items()})
    return {key: (heads[key], version) for key, version in versions.items()}


class Mode(StrEnum):
    """What becomes of a schedule that is there and says something else."""

    CREATE = "create"
    UPSERT = "upsert"


class ImportResult(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


class AnotherDefinition(Conflict):
    """The tenant has a schedule of this id that says something else."""

    def __init__(self, key: ScheduleKey, parts: tuple[str, ...]) -> None:
        names = ", ".join(parts)
        super().__init__(
            f"the tenant already has a schedule {key.schedule} of another {names};"
            f" mode={Mode.UPSERT} would edit it"
        )
        self.key, self.parts = key, parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What became of a line, and the version that stands, or after a dry run would."""

    result: ImportResult
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSchedule:
    create: CreateSchedule
    change: ChangeSchedule
    schedules: Schedules
    clock: Clock
    limits: Limits

    def __call__(
        self,
        key: ScheduleKey,
        definition: Definition,
        *,
        tenant: Tenant,
        found: Standing | None,
        mode: Mode,
        author: str,
        dry_run: bool,
    ) -> Imported:
        """Do what is left to do; `found` was read of the schedule, and is read again if stale.

        A dry run makes the checks of a single write, but writes nothing; of its quota it knows
        nothing. Raises `AnotherDefinition`, `ScheduleEnded`, `ContendedSchedule`, `Rejected` and
        what creates and edits do.
        """
        for _ in range(TRIES_MAX):
            try:
                if found is None:
                    return self._created(key, definition, tenant, author=author, dry_run=dry_run)
                return self._brought(
                    found, definition, tenant=tenant, mode=mode, author=author, dry_run=dry_run
                )
            except (DuplicateSchedule, StaleVersion):
                found = self._standing(key)
        raise ContendedSchedule(key)

    def _standing(self, key: ScheduleKey) -> Standing:
        """Read again; rows that cannot be read are there, but nothing can be made of them."""
        found = standing_of(self.schedules, [key])
        if key not in found:
            raise DuplicateSchedule(key)
        return found[key]

    def _created(
        self,
        key: ScheduleKey,
        definition: Definition,
        tenant: Tenant,
        *,
        author: str,
        dry_run: bool,
    ) -> Imported:
        if dry_run:
            version_of(
                definition,
                key=key,
                tenant=tenant,
                limits=self.limits,
                effective_from=self.clock.now(),
                author=author,
            )
        else:
            self.create(key.tenant, definition, schedule=key.schedule, author=author)
        return Imported(result=ImportResult.CREATED, version=1)

    def _brought(
        self,
        found: Standing,
        definition: Definition,
        *,
        tenant: Tenant,
        mode: Mode,
        author: str,
        dry_run: bool,
    ) -> Imported:
        head, version = found
        if head.state is ScheduleState.CANCELED:
            raise ScheduleEnded(head.key)
        proposed = version_of(
            definition,
            key=head.key,
            tenant=tenant,
            limits=self.limits,
            effective_from=effective_from_of(head, self.clock.now()),
            author=author,
            previous=version,
        )
        parts = parts_that_differ(version, proposed)
        if not parts:
            if not dry_run:
                self._finish(head, version)
            return Imported(result=ImportResult.UNCHANGED, version=head.version)
        if mode is Mode.CREATE:
            raise AnotherDefinition(head.key, parts)
        if not dry_run:
            self.change(head.key, seen=head.version, revise=lambda _: definition, author=author)
        return Imported(result=ImportResult.UPDATED, version=head.version + 1)

    def _finish(self, head: Schedule, version: ScheduleVersion) -> None:
        """Apply P1: whoever wrote the version may have died before it could."""
        if head.state is ScheduleState.ACTIVE:
            self.create.plan_first(version)
