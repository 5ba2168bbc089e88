"""Show one occurrence of a schedule with its attempts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from puntual.application.count_spans import CountSpans
from puntual.application.derive_fires import DeriveFires
from puntual.application.list_occurrences import NEXT_KEY, SPAN_ROWS_MAX
from puntual.application.ports import Clock, Ledger, Schedules
from puntual.domain.errors import Rejected
from puntual.domain.instant import DAY, MILLISECOND, in_calendar, instant_of, text_of
from puntual.domain.occurrence import RunKey, UnknownOccurrence
from puntual.domain.run import Span
from puntual.domain.schedule import Schedule, ScheduleKey, UnknownSchedule
from puntual.domain.span_count import SpanCount
from puntual.domain.timeline import Entry, Fire, covers

_REF = re.compile(
    r"(?P<instant>[0-9T:.-]{19,26}Z)(?P<suffix>(~[A-Za-z0-9._-]{1,64}){0,3})", re.ASCII
)


def run_key_of(ref: str, *, field: str = "occurrence") -> tuple[datetime, str]:
    """Read a ref: its instant and the run key; raises `Rejected`."""
    allowed = "a UTC instant such as 2026-11-30T09:00:00.000Z, as a `ref` of the list gives it"
    match = _REF.fullmatch(ref)
    if match is None:
        raise Rejected(field, ref, allowed)
    try:
        instant = instant_of(match["instant"])
    except ValueError as error:
        raise Rejected(field, ref, allowed) from error
    in_calendar(field, instant)
    return instant, text_of(instant) + match["suffix"].replace("~", "#")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownOccurrence:
    entry: Entry
    as_of: datetime
    counts: Mapping[RunKey, SpanCount]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOccurrence:
    schedules: Schedules
    ledger: Ledger
    derive: DeriveFires
    count: CountSpans
    clock: Clock

    def __call__(self, key: ScheduleKey, ref: str) -> ShownOccurrence:
        """Give the row of a ref, or what stands for it: the span around it, the fire to come.

        Raises `UnknownSchedule`, `UnknownOccurrence`, `Rejected`.
        """
        instant, run = run_key_of(ref)
        now = self.clock.now()
        head = self.schedules.head(key)
        if head is None:
            raise UnknownSchedule(key)
        rows = self.ledger.between(key, first=run, last=run, limit=1)
        if rows:
            return self._shown(rows[0], now)
        fire = self._fire(head, instant, now) if run == text_of(instant) else None
        if fire is None:
            raise UnknownOccurrence(ref)
        return self._shown(self._span_around(key, fire, now) or fire, now)

    def _shown(self, entry: Entry, now: datetime) -> ShownOccurrence:
        return ShownOccurrence(entry=entry, as_of=now, counts=self.count([entry]))

    def _fire(self, head: Schedule, instant: datetime, now: datetime) -> Fire | None:
        derived = self.derive(head, after=instant - MILLISECOND, through=instant, limit=1, now=now)
        return derived.fires[0] if derived.fires else None

    def _span_around(self, key: ScheduleKey, fire: Fire, now: datetime) -> Span | None:
        if not fire.may_be_spanned(now):
            return None
        instant = fire.occurrence.scheduled_for
        midnight = instant.replace(hour=0, minute=0, second=0, microsecond=0) + DAY
        rows = self.ledger.between(
            key, first=fire.run + NEXT_KEY, last=text_of(midnight), limit=SPAN_ROWS_MAX
        )
        spans = (row for row in rows if isinstance(row, Span) and covers(row, fire))
        return next(spans, None)
