"""Finds the instants that a cron names in a zone. The only module that knows the cron library."""

from bisect import bisect_left, bisect_right
from calendar import isleap, monthrange
from copy import copy
from datetime import date, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from croniter import CroniterBadDateError, croniter  # type: ignore[import-untyped]

from puntual.domain.civil_time import WALL_SPREAD_SECONDS, Stretch, stretch_at
from puntual.domain.cron_grammar import CronFields
from puntual.domain.instant import DAY_MINUTES, DAY_SECONDS, EPOCH

YEARS_BETWEEN_MATCHES_MAX = 50
"""29 February on one weekday recurs within 40 years, also across a century that is no leap year."""

DAY_JUMPS_MAX = 256
"""More than the years that a year field can exclude (1970-2199)."""

DAYS_KNOWN_MAX = 64
"""Days for which a pattern remembers the next named day: schedules crowd around now."""

SHAPES_KNOWN_MAX = 512
"""What a pattern remembers of the 14 shapes a year has: length, and weekday it begins with."""

STRETCHES_MAX = 4096
"""A rule whose every match is missing moves on about four times a year."""

SECONDS_OF_A_YEAR = 366 * DAY_SECONDS

_EPOCH_DAY = EPOCH.date()


class WallPattern:
    """The wall times a cron names, without a zone.

    The library is asked for days only, since the calendar is where the difficulty lies; the times
    of a day are the same every day. So the answer to most questions is known already.
    """

    __slots__ = (
        "_calendar",
        "_days_known",
        "_every_day",
        "_hours",
        "_library",
        "_minutes",
        "_nearest_weekday",
        "_only_as_last",
        "_shapes_known",
        "_years",
    )

    def __init__(self, fields: CronFields) -> None:
        self._hours, self._minutes = sorted(fields.hours), sorted(fields.minutes)
        self._years = None if fields.years is None else sorted(fields.years)
        self._nearest_weekday = fields.nearest_weekday
        self._only_as_last = fields.day_named_only_as_last
        self._every_day = fields.names_every_day
        self._days_known: dict[int, int | None] = {}
        self._shapes_known: dict[tuple[int, bool, int], int | None] = {}
        self._calendar = fields.calendar_for_croniter
        # Made when it is first asked: it costs more than the rest, and many rules never ask.
        self._library: croniter | None = None

    def first_from(self, wall: int) -> int | None:
        """Find the first named wall time at or after `wall`."""
        day, minute = divmod(-(-wall // 60), DAY_MINUTES)
        found = self._day_from(day)
        if found == day:
            time = self._time_from(minute)
            if time is not None:
                return (day * DAY_MINUTES + time) * 60
            found = self._day_from(day + 1)
        if found is None:
            return None
        return (found * DAY_MINUTES + self._hours[0] * 60 + self._minutes[0]) * 60

    def walls_between(self, low: int, high: int) -> list[int]:
        """List the named wall times of low <= wall < high; meant for spans of a day or so."""
        walls: list[int] = []
        first, end = -(-low // 60), -(-high // 60)
        for day in range(first // DAY_MINUTES, -(-end // DAY_MINUTES)):
            if self._day_from(day) != day:
                continue
            midnight = day * DAY_MINUTES
            time = self._time_from(max(first - midnight, 0))
            while time is not None and midnight + time < end:
                walls.append((midnight + time) * 60)
                time = self._time_from(time + 1)
        return walls

    def _time_from(self, minute_of_day: int) -> int | None:
        hour, minute = divmod(minute_of_day, 60)
        index = bisect_left(self._hours, hour)
        if index == len(self._hours):
            return None
        if self._hours[index] == hour:
            minute_index = bisect_left(self._minutes, minute)
            if minute_index < len(self._minutes):
                return hour * 60 + self._minutes[minute_index]
            index += 1
        return self._hours[index] * 60 + self._minutes[0] if index < len(self._hours) else None

    def _day_from(self, day: int) -> int | None:
        try:
            return self._days_known[day]
        except KeyError:
            found = self._search_day(day)
        if len(self._days_known) >= DAYS_KNOWN_MAX:
            self._days_known.clear()
        self._days_known[day] = found
        return found

    def _search_day(self, day: int) -> int | None:
        if self._calendar is None:
            return None
        if self._every_day:
            return day
        for _ in range(DAY_JUMPS_MAX):
            found = self._calendar_day_from(day)
            if found is None:
                return None
            resume = self._refused_until(found)
            if resume is None:
                return found
            if resume == date.max:
                return None
            day = (resume - _EPOCH_DAY).days
        return None

    def _calendar_day_from(self, day: int) -> int | None:
        """Find the first day of the calendar, whose named days depend on a year's shape alone.

        So the library is asked at most once for a day of a year of each shape. Without that a rule
        whose matches all lie in gaps would cost a search of the library for every year.
        """
        for _ in range(YEARS_BETWEEN_MATCHES_MAX):
            new_year, length, key = _place_in_year(day)
            if key not in self._shapes_known:
                return self._asked_of_library(day)
            known = self._shapes_known[key]
            if known is not None:
                return new_year + known
            day = new_year + length
        return None

    def _asked_of_library(self, day: int) -> int | None:
        if self._library is None:
            self._library = croniter(
                self._calendar,
                0.0,
                ret_type=float,
                max_years_between_matches=YEARS_BETWEEN_MATCHES_MAX,
            )
        # A copy shares what was parsed, which is only read; the position, which is written, is
        # its own. That is as safe as a fresh object and spares the parsing.
        search = copy(self._library)
        try:
            # A whole second before midnight: the library turns times into floats.
            midnight = search.get_next(float, start_time=day * DAY_SECONDS - 1)
        except CroniterBadDateError:
            return None
        found = int(midnight) // DAY_SECONDS
        if len(self._shapes_known) >= SHAPES_KNOWN_MAX:
            self._shapes_known.clear()
        new_year, length, key = _place_in_year(day)
        if found < new_year + length:
            self._shapes_known[key] = found - new_year
        else:
            self._shapes_known[key] = None
            new_year, _, _ = _place_in_year(found)
            _, _, key = _place_in_year(new_year)
            self._shapes_known[key] = found - new_year
        return found

    def _refused_until(self, day_number: int) -> date | None:
        """Tell why a day does not stand: None if it does, or the next day worth a look.

        The last date there is means that no day is.
        """
        if self._years is None and self._nearest_weekday is None and self._only_as_last is None:
            return None
        day = _EPOCH_DAY + timedelta(days=day_number)
        if self._years is not None:
            following = bisect_right(self._years, day.year)
            if following == 0 or self._years[following - 1] != day.year:
                last = following == len(self._years)
                return date.max if last else date(self._years[following], 1, 1)
        if self._nearest_weekday is None and day.day != self._only_as_last:
            return None
        length = monthrange(day.year, day.month)[1]
        # The library moves 29W of a short February to the 28th; such a month has no 29th.
        if self._nearest_weekday is not None and self._nearest_weekday > length:
            return day.replace(day=length) + timedelta(days=1)
        if day.day == self._only_as_last != length:
            return day + timedelta(days=1)
        return None


def _place_in_year(day: int) -> tuple[int, int, tuple[int, bool, int]]:
    """Give the first day of a day's year, that year's length, and its shape with the day in it."""
    year = (_EPOCH_DAY + timedelta(days=day)).year
    new_year = (date(year, 1, 1) - _EPOCH_DAY).days
    leap = isleap(year)
    return new_year, 365 + leap, (new_year % 7, leap, day - new_year)


class Passes(NamedTuple):
    """Which of a repeated wall time's two passes count."""

    first: bool
    second: bool


class CronClock:
    """A pattern on the wall clock of a zone, with what to do in gaps and repeated hours."""

    __slots__ = ("_span", "_zone", "fire_after_gap", "passes", "pattern")

    def __init__(
        self,
        fields: CronFields,
        zone: ZoneInfo,
        *,
        fire_after_gap: bool,
        passes: Passes,
    ) -> None:
        self.pattern = WallPattern(fields)
        self._zone = zone
        self.fire_after_gap = fire_after_gap
        self.passes = passes
        years = YEARS_BETWEEN_MATCHES_MAX if fields.years is None else DAY_JUMPS_MAX
        self._span = years * SECONDS_OF_A_YEAR

    def next_after(self, instant: int) -> int | None:
        """Walk the stretches from `instant` on, but straight to the one that holds a match."""
        earliest = instant + 1
        asked: int = 0
        wall: int | None = -1
        for _ in range(STRETCHES_MAX):
            stretch = stretch_at(self._zone, earliest)
            if earliest == stretch.start and self._late_fire(stretch):
                return earliest
            low, high = walls_of(stretch, earliest, self.passes)
            if wall is None or not asked <= low <= wall:
                asked, wall = low, self.pattern.first_from(low)
            if wall is not None and wall < high:
                return wall - stretch.offset
            # Clocks that go back may show walls again that come before the ones asked for.
            repeats = stretch.end + stretch.offset_after < low
            if not repeats and (wall is None or wall - instant > self._span):
                return None
            earliest = stretch.end
            if wall is not None and not repeats:
                # No wall in between is named, so no stretch in between matters.
                earliest = max(earliest, wall - WALL_SPREAD_SECONDS)
        return None

    def _late_fire(self, stretch: Stretch) -> bool:
        if not self.fire_after_gap or stretch.offset <= stretch.offset_before:
            return False
        missing = self.pattern.first_from(stretch.start + stretch.offset_before)
        return missing is not None and missing < stretch.start + stretch.offset


def walls_of(stretch: Stretch, earliest: int, passes: Passes) -> tuple[int, int]:
    """Give the walls low <= wall < high that count in a stretch, from `earliest` on."""
    low = earliest + stretch.offset
    if not passes.second:
        low = max(low, stretch.start + stretch.offset_before)
    high = stretch.end + stretch.offset
    if not passes.first:
        high = min(high, stretch.end + stretch.offset_after)
    return low, high
