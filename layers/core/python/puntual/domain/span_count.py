"""How many scheduled times a span stands for: worked out when it is read, never stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from puntual.domain.fire_bits import fire_bits
from puntual.domain.instant import MILLISECOND
from puntual.domain.run import Note, Run, Span
from puntual.domain.schedule import ScheduleVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanCount:
    """`is_exact` unless there were too many rows in the span to look at: then it is at most so."""

    count: int
    is_exact: bool


def count_of(
    span: Span, version: ScheduleVersion, rows: Sequence[Run | Span | Note], *, cut: bool
) -> SpanCount:
    """Count the version's fires in a span that have no row of their own.

    `rows` are those of the ledger from the span's first instant to its last, `cut` if there are
    more. Where spans of a version overlap, each instant counts for the one that ends first.
    """
    first = max(span.first, version.effective_from)
    last = _owned(span.last, version)
    found = fire_bits(version.rule, first, last)
    for row in rows:
        match row:
            case Run() if row.occurrence.is_regular:
                found = found.without(row.occurrence.scheduled_for)
            case Span() if row.version == span.version and row.last < span.last:
                found = found.without_range(row.first, row.last)
    return SpanCount(count=found.count, is_exact=not cut)


def _owned(instant: datetime, version: ScheduleVersion) -> datetime:
    return instant if version.until is None else min(instant, version.until - MILLISECOND)
