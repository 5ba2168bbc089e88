"""List a schedule's occurrences: the ledger's rows, and what follows from versions and rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from puntual.application.count_spans import CountSpans
from puntual.application.derive_fires import AFTER_ALL_SUFFIXES, DeriveFires
from puntual.application.ports import Clock, Ledger, Schedules
from puntual.domain.errors import Rejected
from puntual.domain.instant import (
    DAY,
    FIRST_INSTANT,
    LAST_INSTANT,
    MILLISECOND,
    TEXT_LENGTH,
    in_calendar,
    instant_of,
    text_of,
)
from puntual.domain.occurrence import RunKey
from puntual.domain.page_token import ForeignPageToken, page_token, position_of
from puntual.domain.run import Note, Run, Span
from puntual.domain.schedule import Schedule, ScheduleKey, UnknownSchedule
from puntual.domain.span_count import SpanCount
from puntual.domain.timeline import Entry, Fire, OccurrenceState, merged, run_of, state_of

LOOK_BACK = timedelta(hours=24)
LOOK_AHEAD = timedelta(hours=1)
SPAN_ROWS_MAX = 200
"""Rows read behind a page in search of spans that reach into it. Spans end at midnight, and few
rows lie inside one, since a span stands for what was not run."""

NEXT_KEY = " "
"""Appended to a run key it gives a text behind that key and before all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedOccurrences:
    entries: tuple[Entry, ...]
    page_token: str | None
    start: datetime
    end: datetime
    as_of: datetime
    counts: Mapping[RunKey, SpanCount]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a page begins: behind `position`, or at `start` where that is empty.

    `shown` is the position's instant if an earlier page had a row or a fire there, so that a note
    beside it stays out.
    """

    start: datetime
    end: datetime
    position: str = ""
    shown: str = ""

    def behind(self, position: str, entries: Sequence[Entry]) -> "_Place":
        """Give the place behind a page of these entries."""
        instant = position[:TEXT_LENGTH]
        is_shown = self.shown == instant or any(run_of(entry) == instant for entry in entries)
        return replace(self, position=position, shown=instant if is_shown else "")

    def is_told(self, row: Run | Span | Note) -> bool:
        """Tell whether a row is a note beside the asked run that an earlier page ended with."""
        if not isinstance(row, Note) or row.occurrence.is_regular:
            return False
        return row.occurrence.key.run == self.position

    def token(self, listing: tuple[str, ...]) -> str:
        position = (text_of(self.start), text_of(self.end), self.position, self.shown)
        return page_token(position, listing=listing)

    @property
    def first_key(self) -> str:
        return self.position + NEXT_KEY if self.position else text_of(self.start)

    @property
    def last_key(self) -> str:
        return text_of(self.end) + AFTER_ALL_SUFFIXES

    @property
    def fires_after(self) -> datetime:
        if self.position:
            return instant_of(self.position[:TEXT_LENGTH])
        return self.start - MILLISECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOccurrences:
    schedules: Schedules
    ledger: Ledger
    derive: DeriveFires
    count: CountSpans
    clock: Clock

    def __call__(
        self,
        key: ScheduleKey,
        *,
        start: datetime | None,
        end: datetime | None,
        state: OccurrenceState | None,
        limit: int,
        token: str | None,
    ) -> ListedOccurrences:
        """Give a page in the order of time, of at most `limit` entries looked at.

        The state is asked for afterwards, so a page may be short, or empty, while there is a
        token. The last page has, beyond `limit`, the spans that end behind `end` but reach
        before it. Raises `UnknownSchedule`, `Rejected`.
        """
        now = self.clock.now()
        for field, instant in (("from", start), ("to", end)):
            if instant is not None:
                in_calendar(field, instant)
        listing = ("occurrences", key.tenant, key.schedule, _text(start), _text(end), state or "")
        place = _place(start, end, now=now, token=token, listing=listing)
        head = self.schedules.head(key)
        if head is None:
            raise UnknownSchedule(key)
        entries, following = self._page(head, place, limit=limit, now=now)
        shown = tuple(e for e in entries if state is None or state_of(e, now) is state)
        return ListedOccurrences(
            entries=shown,
            counts=self.count(shown),
            page_token=following.token(listing) if following else None,
            start=place.start,
            end=place.end,
            as_of=now,
        )

    def _page(
        self, head: Schedule, place: _Place, *, limit: int, now: datetime
    ) -> tuple[list[Entry], _Place | None]:
        """Give a page's entries and where the next one begins, None at the end."""
        rows = self.ledger.between(
            head.key, first=place.first_key, last=place.last_key, limit=limit + 1
        )
        derived = self.derive(
            head, after=place.fires_after, through=place.end, limit=limit + 1, now=now
        )
        rows_through = run_of(rows[-1]) if len(rows) > limit else place.last_key
        through = min(rows_through, derived.complete_through, place.last_key)
        rows = tuple(row for row in rows if run_of(row) <= through and not place.is_told(row))
        fires = [fire for fire in derived.fires if fire.run <= through]
        is_last = through == place.last_key
        behind = self._spans_behind(
            head.key, rows, fires, through=through, end=place.end if is_last else None, now=now
        )
        spans = [*(row for row in rows if isinstance(row, Span)), *behind]
        entries = merged(rows, fires, spans=spans, shown=place.shown)
        if len(entries) > limit:
            page = entries[:limit]
            return page, place.behind(run_of(page[-1]), page)
        if not is_last:
            return entries, place.behind(through, entries)
        return [*entries, *(span for span in behind if span.first <= place.end)], None

    def _spans_behind(
        self,
        key: ScheduleKey,
        rows: Sequence[Run | Span | Note],
        fires: Sequence[Fire],
        *,
        through: str,
        end: datetime | None,
        now: datetime,
    ) -> list[Span]:
        """Read the spans that end behind a page and may stand for fires in it.

        A fire that is due or voided and has no row is rare, and only then, or at the end of a range
        in the past, is there anything to look for.
        """
        claimed = {run_of(row) for row in rows}
        instants = [
            fire.occurrence.scheduled_for
            for fire in fires
            if fire.may_be_spanned(now) and fire.run not in claimed
        ]
        if end is not None and end < now:
            instants.append(end)
        if not instants:
            return []
        last = text_of(_midnight_after(max(instants)))
        if last <= through:
            return []
        ahead = self.ledger.between(key, first=through + NEXT_KEY, last=last, limit=SPAN_ROWS_MAX)
        return [row for row in ahead if isinstance(row, Span)]


def _place(
    start: datetime | None,
    end: datetime | None,
    *,
    now: datetime,
    token: str | None,
    listing: tuple[str, ...],
) -> _Place:
    if token is not None:
        return _place_of(token, listing)
    ending = end or min(max(now, start or now) + LOOK_AHEAD, LAST_INSTANT)
    starting = start or max(min(now, ending) - LOOK_BACK, FIRST_INSTANT)
    if ending < starting:
        raise Rejected("to", text_of(ending), f"not before from, {text_of(starting)}")
    return _Place(start=starting, end=ending)


def _place_of(token: str, listing: tuple[str, ...]) -> _Place:
    first, last, position, shown = position_of(token, listing=listing, length=4)
    try:
        start, end = _own_instant(first), _own_instant(last)
        _own_instant(position[:TEXT_LENGTH] or first)
    except (Rejected, ValueError) as error:
        raise ForeignPageToken(token) from error
    place = _Place(start=start, end=end, position=position, shown=shown)
    # The ledger takes no range that ends before it begins, nor text that UTF-8 cannot carry.
    if end < start or place.first_key > place.last_key or not position.isascii():
        raise ForeignPageToken(token)
    return place


def _own_instant(text: str) -> datetime:
    """Read what `text_of` wrote for a place; raises ValueError, `Rejected` for anything else."""
    instant = in_calendar("page_token", instant_of(text))
    if text_of(instant) != text:
        raise ValueError(f"{text!r} is not how we write an instant")
    return instant


def _midnight_after(instant: datetime) -> datetime:
    return instant.replace(hour=0, minute=0, second=0, microsecond=0) + DAY


def _text(instant: datetime | None) -> str:
    return "" if instant is None else text_of(instant)
