"""The minutes of a day in which a rule fires, as the bits of one integer.

A rule fires at most once a minute. So a day of fires is 1,440 bits, and what would be a walk over
thousands of instants is a few operations on whole integers, the same for one fire as for 1,440.
"""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from functools import cache, lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from puntual.domain.civil_time import Stretch, check_time_zone, stretch_at, zone_named
from puntual.domain.cron_grammar import At, CronFields, Rate, parse
from puntual.domain.cron_search import Passes, walls_of
from puntual.domain.expression import Rule, fires_after_gap, passes_of
from puntual.domain.instant import (
    DAY,
    DAY_MINUTES,
    DAY_SECONDS,
    EPOCH,
    HOUR_MINUTES,
    INSTANT_STEP,
    MINUTE,
    seconds_of,
)

EVERY_MINUTE = (1 << DAY_MINUTES) - 1
MASKS_KEPT_MAX = 4096

_EPOCH_DAY = EPOCH.toordinal()
_NO_TIME = timedelta(0)


class _Piece(NamedTuple):
    """Walls that follow each other, from minute `low` on, and the minute of the first one's fire.

    `mask` is as wide as there are walls.
    """

    low: int
    mask: int
    fires_in: int


class _Walls(NamedTuple):
    """What the clocks of a zone show in the day; their minutes count from the first of `days`."""

    days: tuple[date, ...]
    shown: tuple[_Piece, ...]
    missing: tuple[_Piece, ...]


class FireMinutes:
    """Of the 24 hours from `start` on, a whole minute; bit n is the minute n minutes later.

    Offsets from UTC are taken to be whole minutes, as they have been since 1972.
    """

    def __init__(self, start: datetime) -> None:
        assert start.second == start.microsecond == 0
        self._start = start
        self._seconds = seconds_of(start)
        self._walls_known: dict[tuple[str, Passes], _Walls] = {}

    def of(self, rule: Rule) -> int:
        """Find them; raises `Rejected` for a rule that this release cannot read."""
        parsed = parse(rule.expression)
        bounded = rule.start_at is not None or rule.end_at is not None
        if isinstance(parsed, Rate):
            return self._of_rate(rule, parsed)
        if isinstance(parsed, At) and bounded:
            return self._of_single_fire(rule)
        walls = self._walls(rule.time_zone, passes_of(parsed, rule.fold))
        named = _named(parsed, walls.days)
        bits = 0
        if named:
            for low, mask, fires_in in walls.shown:
                bits |= (named >> low & mask) << fires_in
            if walls.missing and fires_after_gap(parsed, rule.gap):
                for low, mask, fires_in in walls.missing:
                    bits |= bool(named >> low & mask) << fires_in
        return self._within_bounds(bits, rule, _NO_TIME) if bounded else bits

    def _of_rate(self, rule: Rule, rate: Rate) -> int:
        if rate.interval >= DAY:
            return self._of_single_fire(rule)
        # Rounded up: the first step that comes to the start or later.
        steps = max(-((rule.anchor - self._start) // rate.interval), 1)
        first = rule.anchor + steps * rate.interval - self._start
        minute, into_minute = divmod(first, MINUTE)
        if minute >= DAY_MINUTES:
            return 0
        bits = _every(rate.interval // MINUTE) << minute & EVERY_MINUTE
        return self._within_bounds(bits, rule, into_minute)

    def _of_single_fire(self, rule: Rule) -> int:
        fire = rule.next_fire(self._start - INSTANT_STEP)
        if fire is None or fire >= self._start + DAY:
            return 0
        return 1 << (fire - self._start) // MINUTE

    def _within_bounds(self, bits: int, rule: Rule, into_minute: timedelta) -> int:
        """Leave out fires beyond the rule's bounds; each lies `into_minute` in its minute."""
        if rule.start_at is not None:
            first = -((self._start + into_minute - rule.start_at) // MINUTE)
            if first > 0:
                bits &= EVERY_MINUTE << first
        if rule.end_at is not None:
            last = (rule.end_at - self._start - into_minute) // MINUTE
            bits &= (1 << last + 1) - 1 if last >= 0 else 0
        return bits

    def _walls(self, zone: str, passes: Passes) -> _Walls:
        known = self._walls_known.get((zone, passes))
        if known is None:
            known = self._walls_known[zone, passes] = self._work_out(zone, passes)
        return known

    def _work_out(self, zone: str, passes: Passes) -> _Walls:
        shown: list[tuple[int, int, int]] = []
        missing: list[tuple[int, int, int]] = []
        for stretch, earliest in self._stretches(zone_named(check_time_zone(zone))):
            low, high = walls_of(stretch, earliest, passes)
            high = min(high, self._seconds + DAY_SECONDS + stretch.offset)
            if low < high:
                shown.append((low, high, low - stretch.offset))
            if earliest == stretch.start and stretch.offset > stretch.offset_before:
                before, after = earliest + stretch.offset_before, earliest + stretch.offset
                missing.append((before, after, earliest))
        # A pass that does not count may be all that there is of a day.
        walls = [*shown, *missing, (self._seconds, self._seconds + 1, 0)]
        first = min(low for low, _, _ in walls) // DAY_SECONDS
        last = max(high - 1 for _, high, _ in walls) // DAY_SECONDS
        return _Walls(
            days=tuple(date.fromordinal(_EPOCH_DAY + day) for day in range(first, last + 1)),
            shown=tuple(self._piece(*walls, first * DAY_SECONDS) for walls in shown),
            missing=tuple(self._piece(*walls, first * DAY_SECONDS) for walls in missing),
        )

    def _stretches(self, zone: ZoneInfo) -> Iterator[tuple[Stretch, int]]:
        """Give each stretch that the day has a part of, and that part's first instant."""
        earliest = self._seconds
        while earliest < self._seconds + DAY_SECONDS:
            stretch = stretch_at(zone, earliest)
            yield stretch, earliest
            earliest = stretch.end

    def _piece(self, low: int, high: int, instant: int, midnight: int) -> _Piece:
        first, end = -((midnight - low) // 60), -((midnight - high) // 60)
        return _Piece(
            low=first, mask=(1 << end - first) - 1, fires_in=(instant - self._seconds) // 60
        )


def _named(parsed: CronFields | At, days: tuple[date, ...]) -> int:
    """Give the named wall times of some days that follow each other, a bit for each minute."""
    if isinstance(parsed, At):
        place = parsed.wall.toordinal() - days[0].toordinal()
        if not 0 <= place < len(days):
            return 0
        return 1 << place * DAY_MINUTES + parsed.wall.hour * HOUR_MINUTES + parsed.wall.minute
    # Minutes are fewer than an hour has, so the product puts them into each hour without a carry.
    times = _bits(parsed.minutes, 1) * _bits(parsed.hours, HOUR_MINUTES)
    if parsed.names_every_day:
        return times * _every_day(len(days))
    return sum(times << place * DAY_MINUTES for place, day in enumerate(days) if parsed.names(day))


@lru_cache(maxsize=MASKS_KEPT_MAX)
def _bits(numbers: frozenset[int], stride: int) -> int:
    return sum(1 << number * stride for number in numbers)


@cache
def _every_day(days: int) -> int:
    return sum(1 << place * DAY_MINUTES for place in range(days))


@cache
def _every(step: int) -> int:
    return sum(1 << minute for minute in range(0, DAY_MINUTES, step))
