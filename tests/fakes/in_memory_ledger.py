"""The ledger in memory."""

from collections.abc import Sequence
from dataclasses import replace

from puntual.application.codec import dead_letter_text
from puntual.application.ports import DeadLetterPage
from puntual.domain.instant import text_of
from puntual.domain.occurrence import RunKey
from puntual.domain.page import Page
from puntual.domain.replay import DeadLetterFilter
from puntual.domain.run import Note, Run, RunState, RunSwap, Span, Unchanged
from puntual.domain.schedule import ScheduleKey
from puntual.domain.slot import Slot, SlotSwap
from puntual.domain.tenant import TenantId
from tests.fakes.in_memory_outbox import InMemoryOutbox

Row = Run | Span | Note


class InMemoryLedger:
    """Without `knows_own_writes` a repeated write takes its own row for another's (P9 off).

    Pages of replays go into the `outbox`.
    """

    def __init__(
        self, *, knows_own_writes: bool = True, outbox: InMemoryOutbox | None = None
    ) -> None:
        self.outbox = outbox or InMemoryOutbox()
        self.rows: dict[ScheduleKey, dict[str, Row]] = {}
        self.slots: dict[ScheduleKey, Slot] = {}
        self.knows_own_writes = knows_own_writes

    def read(self, key: RunKey) -> Run | None:
        row = self._row(key)
        assert row is None or isinstance(row, Run)
        return row

    def swap(self, run: Run, *, seen: Run | None) -> bool:
        assert run.write_id, "a write without an id cannot be known again (P9)"
        unchanged = self._is_as_seen(run.occurrence.key, seen)
        if unchanged:
            self._put(run.occurrence.key, run)
        return unchanged or self._is_own(self.read(run.occurrence.key), run)

    def record(self, run: Run) -> bool:
        assert run.write_id, "a write without an id cannot be known again (P9)"
        row = self.read(run.occurrence.key)
        running = self._takes_outcome(row, run)
        if running:
            self._put(run.occurrence.key, run)
        return running or self._is_own(row, run)

    def record_and_free(self, run: Run) -> bool:
        assert run.state.is_terminal, "backoffs hold the slot"
        key = _schedule_of(run.occurrence.key)
        slot = self.slot(key)
        if slot.is_run_by(run.occurrence.id) and self._takes_outcome(
            self.read(run.occurrence.key), run
        ):
            self._put_slot(replace(slot, running=None, write_id=run.write_id))
        return self.record(run)

    def slot(self, key: ScheduleKey) -> Slot:
        return self.slots.get(key, Slot(tenant=key.tenant, schedule=key.schedule))

    def swap_with_slot(self, slot: SlotSwap, *runs: RunSwap | Unchanged) -> bool:
        assert slot.slot.write_id, "a write without an id cannot be known again (P9)"
        swaps = [run for run in runs if isinstance(run, RunSwap)]
        assert all(each.run.write_id == slot.slot.write_id for each in swaps)
        keys = [run.run.occurrence.key if isinstance(run, RunSwap) else run.key for run in runs]
        assert len(set(keys)) == len(keys), "a transaction touches a row once"
        current = self.slot(slot.seen.key)
        unchanged = current.write_id == slot.seen.write_id and all(
            self._is_as_seen(key, run.seen) for key, run in zip(keys, runs, strict=True)
        )
        if not unchanged:
            own_slot = slot.changes and current.write_id == slot.slot.write_id
            own_runs = any(self._is_own(self.read(_key_of(each)), each.run) for each in swaps)
            return self.knows_own_writes and (own_slot or own_runs)
        for each in swaps:
            self._put(_key_of(each), each.run)
        if slot.changes:
            self._put_slot(slot.slot)
        return True

    def reopen(self, run: Run, *, seen: Run, page: Page) -> bool:
        assert run.write_id, "a write without an id cannot be known again (P9)"
        if not self._is_as_seen(run.occurrence.key, seen):
            return self._is_own(self.read(run.occurrence.key), run)
        self._put(run.occurrence.key, run)
        self.outbox.put_over(page)
        return True

    def dead(
        self, tenant: TenantId, which: DeadLetterFilter, *, before: str | None, limit: int
    ) -> DeadLetterPage:
        rows = [row for by_run in self.rows.values() for row in by_run.values()]
        runs = [row for row in rows if isinstance(row, Run) and _is_among(row, tenant, which)]
        found = sorted(
            (run for run in runs if before is None or dead_letter_text(run) < before),
            key=dead_letter_text,
            reverse=True,
        )
        page = tuple(found[:limit])
        more = len(found) > limit
        return DeadLetterPage(runs=page, before=dead_letter_text(page[-1]) if more else None)

    def note(self, note: Note) -> None:
        if self._row(note.key) is None:
            self._put(note.key, note)

    def put_spans(self, spans: Sequence[Span]) -> None:
        for span in spans:
            for part in span.cut_at_midnights():
                row = self._row(part.key)
                assert row is None or isinstance(row, Span)
                if row is None or part.first < row.first:
                    self._put(part.key, part)

    def between(
        self, key: ScheduleKey, *, first: str, last: str, limit: int, newest_first: bool = False
    ) -> tuple[Row, ...]:
        rows = self.rows.get(key, {})
        runs = sorted((run for run in rows if first <= run <= last), reverse=newest_first)
        return tuple(rows[run] for run in runs[:limit])

    def _row(self, key: RunKey) -> Row | None:
        return self.rows.get(_schedule_of(key), {}).get(key.run)

    def _put(self, key: RunKey, row: Row) -> None:
        self.rows.setdefault(_schedule_of(key), {})[key.run] = row

    def _put_slot(self, slot: Slot) -> None:
        self.slots[slot.key] = slot

    def _is_as_seen(self, key: RunKey, seen: Run | None) -> bool:
        row = self.read(key)
        return row is None if seen is None else row is not None and _same_write(row, seen)

    def _takes_outcome(self, row: Run | None, run: Run) -> bool:
        retry = run.state is RunState.RETRY_WAIT
        return (
            row is not None
            and row.state is RunState.RUNNING
            and row.occurrence.id == run.occurrence.id
            and row.attempt == run.attempt
            and not (retry and row.cancel_requested)
        )

    def _is_own(self, row: Run | None, run: Run) -> bool:
        return self.knows_own_writes and row is not None and _same_write(row, run)


def _schedule_of(key: RunKey) -> ScheduleKey:
    return ScheduleKey(tenant=key.tenant, schedule=key.schedule)


def _key_of(swap: RunSwap) -> RunKey:
    return swap.run.occurrence.key


def _same_write(row: Run, other: Run) -> bool:
    return row.write_id == other.write_id


def _is_among(run: Run, tenant: TenantId, which: DeadLetterFilter) -> bool:
    if run.died_at is None or run.occurrence.tenant != tenant:
        return False
    died_at = text_of(run.died_at)
    return (
        which.schedule in (None, run.occurrence.schedule)
        and (which.since is None or text_of(which.since) <= died_at)
        and (which.until is None or died_at <= text_of(which.until))
    )
