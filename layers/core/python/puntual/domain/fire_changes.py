"""What an edit does to a schedule's fires: which appear, vanish, move or stay as they are."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from puntual.domain.civil_time import date_in, midnight_of, zone_named
from puntual.domain.expression import Rule
from puntual.domain.fire_sequences import fires_after, side_by_side
from puntual.domain.instant import MILLISECOND

FIRES_COMPARED_MAX = 10_000
"""Of both rules together, those around the span included."""

FIRES_BEFORE_MAX = 500
"""Of each rule; where there are more, whole weeks and months tell nothing that days do not."""

AROUND = timedelta(days=32)
"""What is known of both sides of the span, so that its first and last months are whole."""

WEEK_DAYS = 7

Pair = tuple[datetime, datetime]
Sides = tuple[list[datetime], list[datetime]]
"""Fires of the old and of the new rule, each in order."""

Period = tuple[date, date]
"""Its first day, and the first one after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    before: datetime
    after: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FireChanges:
    """Each fire of start <= it < through in one class; a move may end or begin after that.

    `compared` counts the fires of both rules in there. `complete` says that it is the whole span.
    `next_before` and `next_after` are the first fires from `start` on, however far ahead, of the
    old and of the new rule.
    """

    start: datetime
    through: datetime
    complete: bool
    next_before: datetime | None
    next_after: datetime | None
    compared: int = 0
    unchanged: int = 0
    appear: tuple[datetime, ...] = ()
    vanish: tuple[datetime, ...] = ()
    move: tuple[Move, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """Every fire of both rules with after < it < before."""

    fires: Sides
    left: Sides
    """Those that only one rule has."""

    after: datetime
    before: datetime


def fire_changes(old: Rule, new: Rule, *, start: datetime, span: timedelta) -> FireChanges:
    """Compare what two rules do from `start` on; nothing is walked where they are the same.

    What happened before `start` only tells which fire stands for which: where the old one of a
    pair has passed, the new one appears, and the other way round.
    """
    end = start + span
    next_before, next_after = (rule.next_fire(start - MILLISECOND) for rule in (old, new))
    if old == new:
        return FireChanges(
            start=start,
            through=end,
            complete=True,
            next_before=next_before,
            next_after=next_after,
        )
    zones = [zone_named(name) for name in sorted({old.time_zone, new.time_zone})]
    known = _known(old, new, start=start, end=end, zones=zones)
    # A day that is known in part would pair what does not belong together.
    whole_until = min(midnight_of(zone, date_in(zone, known.before)) for zone in zones)
    through = min(end, whole_until)
    pairs = _one_off_pair(old, new, next_before, next_after) or _pairs(known, zones)
    move = sorted(pair for pair in pairs if start <= min(pair) < through)
    moved = {before for before, _ in move}, {after for _, after in move}
    vanish, appear = (
        tuple(fire for fire in fires if start <= fire < through and fire not in gone)
        for fires, gone in zip(known.left, moved, strict=True)
    )
    held, come = (sum(start <= fire < through for fire in fires) for fires in known.fires)
    ended = sum(before < through for before, _ in move)
    return FireChanges(
        start=start,
        through=through,
        complete=through == end,
        next_before=next_before,
        next_after=next_after,
        compared=held + come,
        unchanged=held - len(vanish) - ended,
        appear=appear,
        vanish=vanish,
        move=tuple(Move(before=before, after=after) for before, after in move),
    )


def _known(
    old: Rule, new: Rule, *, start: datetime, end: datetime, zones: Sequence[ZoneInfo]
) -> _Known:
    after = start - AROUND
    if any(
        len(rule.fires_between(after, start, limit=FIRES_BEFORE_MAX)) == FIRES_BEFORE_MAX
        for rule in (old, new)
    ):
        midnights = (midnight_of(zone, date_in(zone, start)) for zone in zones)
        after = min(midnights) - MILLISECOND
    before = end + AROUND
    fires, left = _nothing(), _nothing()
    walked = 0
    both = side_by_side(fires_after(old.next_fire, after), fires_after(new.next_fire, after))
    for beside in both:
        walked += beside.in_old + beside.in_new
        if walked > FIRES_COMPARED_MAX:
            before = min(before, beside.fire)
        if beside.fire >= before:
            break
        for side, has_it in enumerate((beside.in_old, beside.in_new)):
            if has_it:
                fires[side].append(beside.fire)
                if beside.in_old != beside.in_new:
                    left[side].append(beside.fire)
    return _Known(fires=fires, left=left, after=after, before=before)


def _one_off_pair(
    old: Rule, new: Rule, before: datetime | None, after: datetime | None
) -> list[Pair]:
    """Pair one-offs however far apart they are, since each stands for the whole schedule."""
    if not (old.is_one_off and new.is_one_off):
        return []
    return [(before, after)] if before and after and before != after else []


def _pairs(known: _Known, zones: Sequence[ZoneInfo]) -> list[Pair]:
    """Pair on each day first, and what is left in each week or in each month.

    Only where as many fires go as come, in order. Of the two zones' days, of weeks that begin on
    any day, and of months it takes what pairs most, and then what moves least in all. The order
    of the options does not depend on which rule is the new one. Days that are not known whole
    lie outside of what is told; weeks and months may not.
    """
    options = []
    for zone in zones:
        first, last = date_in(zone, known.after), date_in(zone, known.before)
        days = _by_day(known.left, zone)
        pairs = [pair for sides in days.values() for pair in _zipped(sides)]
        rest = {day: days[day] for day in sorted(days) if not _zipped(days[day])}
        for period_of in PERIODS:
            periods = _by_period(rest, period_of).items()
            whole = (sides for (begin, end), sides in periods if first < begin and end <= last)
            options.append([*pairs, *(pair for sides in whole for pair in _zipped(sides))])
    return min(options, key=_rank)


def _by_day(fires: Sides, zone: ZoneInfo) -> dict[date, Sides]:
    days: defaultdict[date, Sides] = defaultdict(_nothing)
    for number, side in enumerate(fires):
        for fire in side:
            days[date_in(zone, fire)][number].append(fire)
    return days


def _by_period(
    days: Mapping[date, Sides], period_of: Callable[[date], Period]
) -> dict[Period, Sides]:
    periods: defaultdict[Period, Sides] = defaultdict(_nothing)
    for day, sides in days.items():
        for all_fires, fires in zip(periods[period_of(day)], sides, strict=True):
            all_fires.extend(fires)
    return periods


def _nothing() -> Sides:
    return [], []


def _zipped(sides: Sides) -> list[Pair]:
    old, new = sides
    return list(zip(old, new, strict=True)) if len(old) == len(new) else []


def _rank(pairs: Sequence[Pair]) -> tuple[int, timedelta]:
    return -len(pairs), sum((abs(after - before) for before, after in pairs), timedelta())


def _week(day: date, *, begins: int) -> Period:
    first = day - timedelta(days=(day.weekday() - begins) % WEEK_DAYS)
    return first, first + timedelta(days=WEEK_DAYS)


def _month(day: date) -> Period:
    first = day.replace(day=1)
    return first, (first + AROUND).replace(day=1)


PERIODS: Sequence[Callable[[date], Period]] = (
    *(partial(_week, begins=weekday) for weekday in range(WEEK_DAYS)),
    _month,
)
