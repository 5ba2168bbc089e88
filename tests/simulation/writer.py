"""The control plane in the order of the rules: shard row, one transaction, then P1."""

from dataclasses import dataclass, replace

from puntual.application.announced import Announced
from puntual.application.ports import Clock, Created, Schedules
from puntual.domain.agenda import Cursor, cursor_at
from puntual.domain.errors import Conflict
from puntual.domain.schedule import (
    Schedule,
    ScheduleKey,
    ScheduleState,
    ScheduleVersion,
    canceled,
    edited,
    effective_from_of,
    head_of,
    paused,
    resumed,
    settled,
)


class EditLost(Conflict):
    """Another change came first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Creates and changes schedules; raises `Conflict` where another change came first."""

    schedules: Schedules
    announced: Announced
    clock: Clock

    def create(self, proposed: ScheduleVersion) -> None:
        version = settled(replace(proposed, version=1, effective_from=self.clock.now()))
        head = head_of(version, created_at=version.effective_from, min_valid_version=1)
        cursor = first_cursor(version)
        shard = self.announced.ensure_shard(head.key)
        created = self.schedules.create(head, version, cursor, shard=shard)
        if isinstance(created, Created) and cursor is not None:
            self.announced.plan_inline(cursor)

    def edit(self, proposed: ScheduleVersion) -> None:
        head = self._head(proposed.key)
        effective_from = effective_from_of(head, self.clock.now())
        self._write(*edited(head, replace(proposed, effective_from=effective_from)))

    def pause(self, key: ScheduleKey) -> None:
        head = self._head(key)
        now = self.clock.now()
        self._write(*paused(head, self._version(head), now=now, author="ana"))

    def resume(self, key: ScheduleKey) -> None:
        head = self._head(key)
        now = self.clock.now()
        self._write(*resumed(head, self._version(head), now=now, author="ana"))

    def cancel(self, key: ScheduleKey) -> None:
        head = self._head(key)
        now = self.clock.now()
        self._write(*canceled(head, self._version(head), now=now, author="ana"))

    def _head(self, key: ScheduleKey) -> Schedule:
        head = self.schedules.head(key)
        if head is None:
            raise EditLost
        return head

    def _version(self, head: Schedule) -> ScheduleVersion:
        version = self.schedules.version(head.key, head.version)
        assert version is not None
        return version

    def _write(self, head: Schedule, version: ScheduleVersion) -> None:
        cursor = first_cursor(version)
        shard = self.announced.ensure_shard(head.key)
        if not self.schedules.advance(head, version, cursor, shard=shard):
            raise EditLost
        if cursor is not None:
            self.announced.plan_inline(cursor)


def first_cursor(version: ScheduleVersion) -> Cursor | None:
    """Give the first cursor of a version that fires, if any."""
    fire = version.first_fire
    if version.state is not ScheduleState.ACTIVE or fire is None:
        return None
    return cursor_at(fire, key=version.key, version=version.version, policies=version.policies)
