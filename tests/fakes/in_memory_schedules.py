"""Heads and versions in memory; their transactions reach into agenda and tenants."""

from collections import Counter
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import replace
from itertools import batched

from puntual.application.codec import SPREAD_DIGITS, rule_of_text, spread_text
from puntual.application.ports import (
    AlreadyExists,
    Created,
    CreateResult,
    HeadPage,
    QuotaReached,
    SchedulePage,
    TenantUnknown,
)
from puntual.domain.agenda import Cursor
from puntual.domain.forecast import RuleCount, RulePage
from puntual.domain.labels import LabelFilter
from puntual.domain.schedule import Schedule, ScheduleKey, ScheduleState, ScheduleVersion
from puntual.domain.tenant import ScheduleId, TenantId
from tests.fakes.in_memory_agenda import InMemoryAgenda
from tests.fakes.in_memory_tenants import InMemoryTenants

HEADS_MAX = 100
RULES_PER_PAGE = 4_000
HASHES = 16**SPREAD_DIGITS


class InMemorySchedules:
    """Without `knows_own_writes` a repeated write takes its own row for another's (P9 off)."""

    def __init__(
        self,
        *,
        agenda: InMemoryAgenda,
        tenants: InMemoryTenants,
        knows_own_writes: bool = True,
    ) -> None:
        self.agenda, self.tenants = agenda, tenants
        self.knows_own_writes = knows_own_writes
        self.head_rows: dict[ScheduleKey, Schedule] = {}
        self.version_rows: dict[tuple[ScheduleKey, int], ScheduleVersion] = {}

    def create(
        self, head: Schedule, version: ScheduleVersion, cursor: Cursor | None, *, shard: int
    ) -> CreateResult:
        if head.key in self.head_rows:
            return Created() if self._is_own(version) else AlreadyExists()
        tenant = self.tenants.get(head.tenant)
        if tenant is None:
            return TenantUnknown()
        if tenant.schedules >= tenant.quotas.schedules_max:
            return QuotaReached()
        self.tenants.count(head.tenant, +1)
        self._put(head, version, cursor, shard)
        return Created()

    def advance(
        self, head: Schedule, version: ScheduleVersion, cursor: Cursor | None, *, shard: int
    ) -> bool:
        assert head.version == version.version
        known = self.head_rows.get(head.key)
        if known is None or known.version != head.version - 1:
            return self._is_own(version)
        ended = self.version_rows[head.key, known.version]
        assert ended.until is None, "an end is set once"
        self.version_rows[head.key, known.version] = replace(ended, until=version.effective_from)
        if head.state is ScheduleState.CANCELED:
            self.tenants.count(head.tenant, -1)
        self._put(head, version, cursor, shard)
        return True

    def head(self, key: ScheduleKey) -> Schedule | None:
        return self.head_rows.get(key)

    def heads(self, keys: Sequence[ScheduleKey]) -> Mapping[ScheduleKey, Schedule]:
        assert len(keys) == len(set(keys)) <= HEADS_MAX
        return {key: self.head_rows[key] for key in keys if key in self.head_rows}

    def version(self, key: ScheduleKey, version: int) -> ScheduleVersion | None:
        return self.version_rows.get((key, version))

    def versions(self, numbers: Mapping[ScheduleKey, int]) -> Mapping[ScheduleKey, ScheduleVersion]:
        assert len(numbers) <= HEADS_MAX
        found = {key: self.version(key, number) for key, number in numbers.items()}
        return {key: version for key, version in found.items() if version is not None}

    def complete(self, key: ScheduleKey, version: int) -> bool:
        head = self.head_rows.get(key)
        if head is None or head.version != version or head.state is not ScheduleState.ACTIVE:
            return False
        self.head_rows[key] = replace(head, state=ScheduleState.COMPLETED)
        return True

    def listed(
        self,
        tenant: TenantId,
        *,
        prefix: str,
        state: ScheduleState | None,
        after: ScheduleId | None,
        limit: int,
        labels: Sequence[LabelFilter] = (),
    ) -> SchedulePage:
        found = sorted(
            (
                head
                for head in self.head_rows.values()
                if head.tenant == tenant
                and head.schedule.startswith(prefix)
                and (state is None or head.state is state)
                and (after is None or head.schedule > after)
                and all(label.takes(head.labels) for label in labels)
            ),
            key=lambda head: head.schedule,
        )
        shown = tuple(found[:limit])
        return SchedulePage(
            schedules=shown, after=shown[-1].schedule if len(found) > limit else None
        )

    def active_in(
        self, zones: Collection[str], *, after: ScheduleKey | None, limit: int
    ) -> HeadPage:
        keys = sorted(
            (key for key in self.head_rows if after is None or _place(key) > _place(after)),
            key=_place,
        )
        read = [self.head_rows[key] for key in keys[:limit]]
        return HeadPage(
            heads=tuple(
                head
                for head in read
                if head.state is ScheduleState.ACTIVE and head.rule.time_zone in zones
            ),
            after=keys[limit - 1] if len(keys) >= limit else None,
        )

    def active_rules(self, tenant: TenantId) -> Generator[RulePage]:
        active = sorted(
            spread_text(head)
            for head in self.head_rows.values()
            if head.tenant == tenant and head.state is ScheduleState.ACTIVE
        )
        read_to = 0
        for rows in batched(active, RULES_PER_PAGE, strict=False):
            is_last = rows[-1] == active[-1]
            reach = HASHES if is_last else int(rows[-1][:SPREAD_DIGITS], 16) + 1
            counts = Counter(rule_of_text(row[SPREAD_DIGITS + 1 :]) for row in rows)
            yield RulePage(
                counts=tuple(
                    RuleCount(rule=rule, schedules=schedules) for rule, schedules in counts.items()
                ),
                share=(reach - read_to) / HASHES,
            )
            read_to = reach
        if not active:
            yield RulePage(counts=(), share=1.0)

    def _put(
        self, head: Schedule, version: ScheduleVersion, cursor: Cursor | None, shard: int
    ) -> None:
        self.head_rows[head.key] = head
        self.version_rows[head.key, version.version] = version
        if cursor is not None:
            self.agenda.put(shard, [cursor])

    def _is_own(self, version: ScheduleVersion) -> bool:
        """Tell whether this very write has been done: versions never change but for their end."""
        row = self.version_rows.get((version.key, version.version))
        return self.knows_own_writes and row is not None and replace(row, until=None) == version


def _place(key: ScheduleKey) -> tuple[str, str]:
    return key.tenant, key.schedule
