"""The ledger in memory."""

from collections.abc import Sequence

from puntual.domain.occurrence import RunKey
from puntual.domain.run import Note, Run, RunState, Span
from puntual.domain.schedule import ScheduleKey

Row = Run | Span | Note


class InMemoryLedger:
    """Without `knows_own_writes` a repeated write takes its own row for another's (P9 off)."""

    def __init__(self, *, knows_own_writes: bool = True) -> None:
        self.rows: dict[ScheduleKey, dict[str, Row]] = {}
        self.knows_own_writes = knows_own_writes

    def read(self, key: RunKey) -> Run | None:
        row = self._row(key)
        assert row is None or isinstance(row, Run)
        return row

    def swap(self, run: Run, *, seen: Run | None) -> bool:
        assert run.write_id, "a write without an id cannot be known again (P9)"
        row = self.read(run.occurrence.key)
        unchanged = row is None if seen is None else row is not None and _same_write(row, seen)
        if unchanged:
            self._put(run.occurrence.key, run)
        return unchanged or self._is_own(row, run)

    def record(self, run: Run) -> bool:
        assert run.write_id, "a write without an id cannot be known again (P9)"
        row = self.read(run.occurrence.key)
        running = (
            row is not None
            and row.state is RunState.RUNNING
            and row.occurrence.id == run.occurrence.id
            and row.attempt == run.attempt
        )
        if running:
            self._put(run.occurrence.key, run)
        return running or self._is_own(row, run)

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

    def _is_own(self, row: Run | None, run: Run) -> bool:
        return self.knows_own_writes and row is not None and _same_write(row, run)


def _schedule_of(key: RunKey) -> ScheduleKey:
    return ScheduleKey(tenant=key.tenant, schedule=key.schedule)


def _same_write(row: Run, other: Run) -> bool:
    return row.write_id == other.write_id
