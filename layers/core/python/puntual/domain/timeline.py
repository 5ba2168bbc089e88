"""What a schedule's occurrences look like: the ledger's rows, and the fires that have none yet."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from puntual.domain.occurrence import Occurrence
from puntual.domain.run import Note, Run, Span


class OccurrenceState(StrEnum):
    """All that an occurrence can be; the first two cost no write and are derived."""

    SCHEDULED = "SCHEDULED"
    ENQUEUED = "ENQUEUED"
    RUNNING = "RUNNING"
    RETRY_WAIT = "RETRY_WAIT"
    SUCCEEDED = "SUCCEEDED"
    DEAD = "DEAD"
    MISSED = "MISSED"
    CANCELED = "CANCELED"
    SKIPPED_OVERLAP = "SKIPPED_OVERLAP"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fire:
    """A scheduled time without a row: to come, or due and not yet claimed.

    `voided` by a pause or cancel: it will be recorded as CANCELED instead of started.
    """

    occurrence: Occurrence
    available_at: datetime
    voided: bool = False

    @property
    def run(self) -> str:
        return self.occurrence.key.run

    def may_be_spanned(self, now: datetime) -> bool:
        """Tell whether a span may stand for it: those are of what is late, or voided."""
        return self.voided or self.available_at <= now


Entry = Run | Span | Note | Fire


def run_of(entry: Entry) -> str:
    """Give the run key: the text that entries sort by."""
    match entry:
        case Fire():
            return entry.run
        case Run():
            return entry.occurrence.key.run
        case Span() | Note():
            return entry.key.run
        case _:
            assert_never(entry)


def state_of(entry: Entry, now: datetime) -> OccurrenceState:
    match entry:
        case Run() if entry.is_asked:
            return _to_come(entry.available_at, now)
        case Run() | Span():
            return OccurrenceState(entry.state)
        case Note():
            return OccurrenceState.CANCELED
        case Fire():
            return _to_come(entry.available_at, now)
        case _:
            assert_never(entry)


def _to_come(available_at: datetime, now: datetime) -> OccurrenceState:
    return OccurrenceState.ENQUEUED if available_at <= now else OccurrenceState.SCHEDULED


def covers(span: Span, fire: Fire) -> bool:
    occurrence = fire.occurrence
    same_version = span.version == occurrence.version
    return same_version and span.first <= occurrence.scheduled_for <= span.last


def merged(
    rows: Sequence[Run | Span | Note],
    fires: Iterable[Fire],
    *,
    spans: Sequence[Span],
    shown: str = "",
) -> list[Entry]:
    """Give one entry per scheduled time, in order (E8: a row outranks spans and notes).

    `spans` may reach into the rows' range from behind it. `shown` is the instant whose row or fire
    an earlier page gave, if any, so that a note beside it stays out.
    """
    runs = {run_of(row) for row in rows if isinstance(row, Run)}
    bare = [
        fire
        for fire in fires
        if fire.run not in runs and not any(covers(span, fire) for span in spans)
    ]
    taken = runs | {fire.run for fire in bare} | {shown}
    kept = [row for row in rows if not (isinstance(row, Note) and row.occurrence.key.run in taken)]
    return sorted([*kept, *bare], key=run_of)
