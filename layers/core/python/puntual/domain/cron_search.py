"""Finds the instants that a cron names in a zone. The only module that knows the cron library."""

from bisect import bisect_right
from calendar import monthrange
from copy import copy
from datetime import date, timedelta

from croniter import CroniterBadDateError, croniter  # type: ignore[import-untyped]

from puntual.domain.civil_time import WALL_SPREAD_SECONDS, Stretch, stretch_at
from puntual.domain.cron_grammar import CronFields

YEARS_BETWEEN_MATCHES_MAX = 50
"""29 February on one weekday recurs within 40 years, also across a century that is no leap year."""

WALL_JUMPS_MAX = 256
"""More than the years that a year field can exclude (1970-2199)."""

STRETCHES_MAX = 1024
"""A rule whose every match is missing moves on about three times a year."""

SECONDS_OF_A_YEAR = 366 * 86_400

_EPOCH = date(1970, 1, 1)
_DAY_SECONDS = 86_400


class WallPattern:
    """The wall times a cron names, without a zone."""

    __slots__ = ("_nearest_weekday", "_template", "_years")

    def __init__(self, fields: CronFields) -> None:
        self._template = croniter(
            fields.five_fields,
            0.0,
            ret_type=float,
            max_years_between_matches=YEARS_BETWEEN_MATCHES_MAX,
        )
        self._years = None if fields.years is None else sorted(fields.years)
        self._nearest_weekday = fields.nearest_weekday

    def first_from(self, wall: int) -> int | None:
        """The first named wall time at or after `wall`."""
        # A copy shares what was parsed, which is only read; the position, which is written, is
        # its own. That is as safe as a fresh object and spares the parsing.
        search = copy(self._template)
        for _ in range(WALL_JUMPS_MAX):
            try:
                # A whole second less: the library turns times into floats.
                found = int(search.get_next(float, start_time=wall - 1))
            except CroniterBadDateError:
                return None
            if self._years is None and self._nearest_weekday is None:
                return found
            resume = self._refused_until(_EPOCH + timedelta(days=found // _DAY_SECONDS))
            if resume is None:
                return found
            if resume == date.max:
                return None
            wall = (resume - _EPOCH).days * _DAY_SECONDS
        return None

    def _refused_until(self, day: date) -> date | None:
        """None: the day stands. Otherwise the next day worth a look; the last date for none."""
        if self._years is not None:
            following = bisect_right(self._years, day.year)
            if following == 0 or self._years[following - 1] != day.year:
                last = following == len(self._years)
                return date.max if last else date(self._years[following], 1, 1)
        # The library moves 31W of a short month to its last day; such a month has no 31st.
        if self._nearest_weekday is not None:
            length = monthrange(day.year, day.month)[1]
            if self._nearest_weekday > length:
                return day.replace(day=length) + timedelta(days=1)
        return None


class _Walls:
    """Remembers the last answer of a pattern: moving to the next stretch rarely changes it."""

    __slots__ = ("_asked", "_found", "_pattern")

    def __init__(self, pattern: WallPattern) -> None:
        self._pattern = pattern
        self._asked: int | None = None
        self._found: int | None = None

    def first_from(self, wall: int) -> int | None:
        if (
            self._asked is None
            or wall < self._asked
            or (self._found is not None and wall > self._found)
        ):
            self._asked, self._found = wall, self._pattern.first_from(wall)
        return self._found


class CronClock:
    """A pattern on the wall clock of a zone, with what to do in gaps and repeated hours."""

    __slots__ = ("_fire_after_gap", "_first_pass", "_second_pass", "_span", "_zone", "pattern")

    def __init__(
        self,
        fields: CronFields,
        zone: str,
        *,
        fire_after_gap: bool,
        first_pass: bool,
        second_pass: bool,
    ) -> None:
        self.pattern = WallPattern(fields)
        self._zone = zone
        self._fire_after_gap = fire_after_gap
        self._first_pass, self._second_pass = first_pass, second_pass
        years = YEARS_BETWEEN_MATCHES_MAX if fields.years is None else WALL_JUMPS_MAX
        self._span = years * SECONDS_OF_A_YEAR

    def next_after(self, instant: int) -> int | None:
        """Walks the stretches from `instant` on, but straight to the one that holds a match."""
        walls = _Walls(self.pattern)
        earliest = instant + 1
        for _ in range(STRETCHES_MAX):
            stretch = stretch_at(self._zone, earliest)
            if earliest == stretch.start and self._late_fire(stretch, walls):
                return earliest
            low, high = self._walls_of(stretch, earliest)
            wall = walls.first_from(low)
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

    def _late_fire(self, stretch: Stretch, walls: _Walls) -> bool:
        if not self._fire_after_gap or stretch.offset <= stretch.offset_before:
            return False
        missing = walls.first_from(stretch.start + stretch.offset_before)
        return missing is not None and missing < stretch.start + stretch.offset

    def _walls_of(self, stretch: Stretch, earliest: int) -> tuple[int, int]:
        """The walls low <= wall < high that count in this stretch, from `earliest` on."""
        low = earliest + stretch.offset
        if not self._second_pass:
            low = max(low, stretch.start + stretch.offset_before)
        high = stretch.end + stretch.offset
        if not self._first_pass:
            high = min(high, stretch.end + stretch.offset_after)
        return low, high
