"""An oracle for the time engine: somebody who watches the clock of a zone, minute by minute.

It shares no code with the engine and takes none of its short cuts: every reading of the clock is
asked of the zone data, the changes of a zone are found by walking, and days are looked at one by
one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from puntual.domain.expression import Fold, Gap

MINUTE = 60
HOUR = 3_600
DAY = 86_400
JUDGED_SECONDS = 26 * HOUR
AHEAD_OF_UTC_MAX = 16 * HOUR
BEHIND_UTC_MAX = 13 * HOUR
DAYS_WALKED_MAX = 1_200


@dataclass(frozen=True, kw_only=True)
class Times:
    """What an expression says, without a zone: times of the day, and the days that have them."""

    text: str
    times: frozenset[tuple[int, int]]  # hours and minutes
    names_day: Callable[[date], bool]
    second: int = 0
    once: bool = False

    @property
    def is_pace(self) -> bool:
        return len({hour for hour, _ in self.times}) == 24

    def names(self, wall: datetime) -> bool:
        return (wall.hour, wall.minute) in self.times and self.names_day(wall.date())


@dataclass(frozen=True)
class Change:
    """The clocks of a zone go from one offset to another, in seconds."""

    instant: int
    before: int
    after: int


def changes_between(info: ZoneInfo, start: int, end: int, *, step: int) -> Iterator[Change]:
    """Walk the offsets of a zone in steps, each shorter than two changes lie apart."""
    before = _shown_offset(info, start)
    for walked in range(start + step, end + step, step):
        after = _shown_offset(info, walked)
        if after != before:
            low, high = walked - step, walked
            while high - low > 1:
                middle = (low + high) // 2
                same = _shown_offset(info, middle) == before
                low, high = (middle, high) if same else (low, middle)
            yield Change(high, offset_of(info, low), offset_of(info, high))
            before = after


def offset_of(info: ZoneInfo, instant: int) -> int:
    offset = _shown_offset(info, instant)
    assert offset is not None
    return int(offset.total_seconds())


def _shown_offset(info: ZoneInfo, instant: int) -> timedelta | None:
    return datetime.fromtimestamp(instant, info).utcoffset()


class Watch:
    """The clock of a zone, watched from one instant to another."""

    def __init__(self, zone: str, start: int, end: int) -> None:
        self._info, self._start, self._end = ZoneInfo(zone), start, end
        self._changes = list(changes_between(self._info, start, end, step=HOUR))
        self._shown: dict[int, dict[date, dict[tuple[int, int], list[int]]]] = {}

    def fires(self, times: Times, gap: Gap, fold: Fold) -> list[datetime]:
        """Give the instants at which somebody who keeps to the policies would start the job."""
        if fold is Fold.AUTO:
            fold = Fold.BOTH if times.is_pace and not times.once else Fold.FIRST
        if times.once and fold is Fold.BOTH:
            fold = Fold.FIRST
        fires: set[int] = set()
        for day, shown in self._shown_at(times.second).items():
            if times.names_day(day):
                for time in times.times & shown.keys():
                    fires |= set(_passes(shown[time], fold))
        if gap is Gap.FIRE_AFTER and (times.once or not times.is_pace):
            fires |= {change.instant for change in self._changes if _misses(change, times)}
        return [datetime.fromtimestamp(fire, UTC) for fire in sorted(fires)]

    def _shown_at(self, second: int) -> dict[date, dict[tuple[int, int], list[int]]]:
        """Note at which instants the clock shows each time of each day, at a second of a minute.

        An offset need not be whole minutes, so the clock is looked at whenever any of its offsets
        would make it show that second.
        """
        if second not in self._shown:
            offsets = {change.after for change in self._changes} | {
                offset_of(self._info, self._start)
            }
            looks = sorted({(second - offset) % MINUTE for offset in offsets})
            shown: dict[date, dict[tuple[int, int], list[int]]] = {}
            for minute in range(self._start, self._end, MINUTE):
                for look in looks:
                    wall = datetime.fromtimestamp(minute + look, self._info)
                    if wall.second == second:
                        day = shown.setdefault(wall.date(), {})
                        day.setdefault((wall.hour, wall.minute), []).append(minute + look)
            self._shown[second] = shown
        return self._shown[second]


def _passes(instants: list[int], fold: Fold) -> list[int]:
    match fold:
        case Fold.FIRST:
            return instants[:1]
        case Fold.SECOND:
            return instants[-1:]
        case _:
            return instants


def _misses(change: Change, times: Times) -> bool:
    """Tell whether a named time is among those that the clock jumps over."""
    first = change.instant + change.before
    first += (times.second - first) % MINUTE
    return any(
        times.names(datetime.fromtimestamp(wall, UTC))
        for wall in range(first, change.instant + change.after, MINUTE)
    )


def watch_around(zone: str, change: Change) -> Watch:
    """Watch long enough to see both passes of every time within the judged seconds."""
    margin = JUDGED_SECONDS + abs(change.after - change.before) + HOUR
    start = (change.instant - margin) // MINUTE * MINUTE
    return Watch(zone, start, start + 2 * margin)


@dataclass(frozen=True, kw_only=True)
class WatchedRule:
    """Times in a zone under policies, for which no watch at one change is long enough."""

    times: Times
    zone: str
    gap: Gap
    fold: Fold

    def next_seen(self, after: datetime) -> datetime | None:
        for days in range(-1, DAYS_WALKED_MAX):
            later = [fire for fire in self._fires_of(after, days) if fire > after]
            if later:
                return later[0]
        return None

    def last_seen(self, before: datetime) -> datetime | None:
        for days in range(1, -DAYS_WALKED_MAX, -1):
            earlier = [fire for fire in self._fires_of(before, days) if fire <= before]
            if earlier:
                return earlier[-1]
        return None

    def _fires_of(self, instant: datetime, days: int) -> list[datetime]:
        """Watch while it is that day anywhere, if it is a named one."""
        midnight = datetime(instant.year, instant.month, instant.day, tzinfo=UTC)
        midnight += timedelta(days=days)
        if not self.times.names_day(midnight.date()):
            return []
        start = int(midnight.timestamp()) - AHEAD_OF_UTC_MAX
        end = int(midnight.timestamp()) + DAY + BEHIND_UTC_MAX
        watch = Watch(self.zone, start - JUDGED_SECONDS, end + JUDGED_SECONDS)
        fires = watch.fires(self.times, self.gap, self.fold)
        return [fire for fire in fires if start <= fire.timestamp() < end]
