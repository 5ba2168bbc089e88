"""The in-memory fakes, watched: what takes effect is recorded at the moment it does."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from puntual.domain.agenda import Cursor
from puntual.domain.occurrence import RunKey
from puntual.domain.page import Page
from puntual.domain.run import Run, RunSwap, Unchanged
from puntual.domain.schedule import Schedule, ScheduleKey, ScheduleVersion
from puntual.domain.slot import Slot, SlotSwap
from tests.fakes.in_memory_agenda import InMemoryAgenda
from tests.fakes.in_memory_ledger import InMemoryLedger, Row
from tests.fakes.in_memory_schedules import InMemorySchedules
from tests.fakes.in_memory_tenants import InMemoryTenants
from tests.simulation.record import Record
from tests.simulation.scheduler import Scheduler

OWN_WRITE = "OWN WRITE TAKEN FOR LOST"


class WatchedLedger(InMemoryLedger):
    def __init__(self, scheduler: Scheduler, record: Record) -> None:
        super().__init__()
        self.scheduler, self.record_of_writes = scheduler, record
        self._swapping = False

    def swap(self, run: Run, *, seen: Run | None) -> bool:
        self._swapping = True
        won = super().swap(run, seen=seen)
        self._swapping = False
        self._check_own(run, won=won)
        return won

    def swap_with_slot(self, slot: SlotSwap, *runs: RunSwap | Unchanged) -> bool:
        self._swapping = True
        won = super().swap_with_slot(slot, *runs)
        self._swapping = False
        for run in runs:
            if isinstance(run, RunSwap):
                self._check_own(run.run, won=won)
        return won

    def reopen(self, run: Run, *, seen: Run, page: Page) -> bool:
        won = super().reopen(run, seen=seen, page=page)
        self._check_own(run, won=won)
        if won:
            request = run.requests[-1] if run.requests != seen.requests else ""
            self.record_of_writes.replayed(run, request, self.scheduler.now)
        return won

    def record(self, run: Run) -> bool:
        won = super().record(run)
        self._check_own(run, won=won)
        return won

    def _check_own(self, run: Run, *, won: bool) -> None:
        row = self.read(run.occurrence.key)
        if not won and row is not None and row.write_id == run.write_id:
            self.record_of_writes.fail(OWN_WRITE, run.occurrence, self.scheduler.now)

    def _put(self, key: RunKey, row: Row) -> None:
        if isinstance(row, Run):
            before = self.read(key)
            function, now = self.scheduler.running, self.scheduler.now
            self.record_of_writes.wrote(before, row, function, now)
            if self._swapping and before is not None and before.attempt == row.attempt:
                self.record_of_writes.ended_another(before, row, now)
        super()._put(key, row)

    def _put_slot(self, slot: Slot) -> None:
        self.record_of_writes.slot_written(slot, self.scheduler.now)
        super()._put_slot(slot)


class WatchedSchedules(InMemorySchedules):
    def __init__(
        self,
        scheduler: Scheduler,
        record: Record,
        *,
        agenda: InMemoryAgenda,
        tenants: InMemoryTenants,
    ) -> None:
        super().__init__(agenda=agenda, tenants=tenants)
        self.scheduler, self.record = scheduler, record

    def head(self, key: ScheduleKey) -> Schedule | None:
        self.scheduler.running.seen[key] = self.scheduler.now
        return super().head(key)

    def heads(self, keys: Sequence[ScheduleKey]) -> Mapping[ScheduleKey, Schedule]:
        self.scheduler.running.seen.update(dict.fromkeys(keys, self.scheduler.now))
        return super().heads(keys)

    def advance(
        self, head: Schedule, version: ScheduleVersion, cursor: Cursor | None, *, shard: int
    ) -> bool:
        won = super().advance(head, version, cursor, shard=shard)
        row = self.version_rows.get((version.key, version.version))
        if not won and row is not None and replace(row, until=None) == version:
            self.record.fail(OWN_WRITE, head, self.scheduler.now)
        return won

    def _put(
        self, head: Schedule, version: ScheduleVersion, cursor: Cursor | None, shard: int
    ) -> None:
        super()._put(head, version, cursor, shard)
        self.record.committed(head, version, self.scheduler.now)
