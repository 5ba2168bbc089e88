"""Maps the wall clock of an IANA zone to instants, as stretches of constant offset.

A zone comes as its rules, so that those of another release of the zone data serve as well as the
pinned ones (`zone_named`). Instants are whole seconds of UTC since 1970. A wall time is counted in
the same way, as if the wall clock were UTC. Within a stretch, wall = instant + offset, so order and
uniqueness need no thought; everything odd (gaps, repeated hours, skipped days) lies between two.
"""

from bisect import bisect_right
from datetime import UTC, date, datetime, time
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from puntual.domain.errors import Rejected
from puntual.domain.instant import DAY_SECONDS
from puntual.domain.zone_names import canonical_zone, is_zone_name, spelling_of

PERIOD_SECONDS = 48 * DAY_SECONDS
"""How much of a zone's history is worked out, and remembered, at once."""

PROBE_SECONDS = 6 * DAY_SECONDS
"""The closest two changes since 1900 in the zone data are 7 days apart."""

USUAL_GRAIN_SECONDS = 15 * 60
"""Nearly all changes come at a quarter hour of UTC; periods and probes do."""

PERIODS_KEPT_MAX = 8192
WALL_SPREAD_SECONDS = 2 * DAY_SECONDS
"""More than any wall clock is ahead of or behind UTC, plus the longest jump of one."""

ZONES_KEPT_MAX = 1024
"""More than the database has names."""

ALLOWED = "the name of an IANA time zone, as Europe/Berlin"
SPELT = "the name of an IANA time zone in its own spelling, which is"


class UnknownTimeZone(Rejected):
    def __init__(self, value: object) -> None:
        meant = spelling_of(value) if isinstance(value, str) else None
        super().__init__("time_zone", value, ALLOWED if meant is None else f"{SPELT} {meant}")


class Stretch(NamedTuple):
    """start <= instant < end have this offset. At a period's edge nothing need change."""

    start: int
    end: int
    offset: int
    offset_before: int
    offset_after: int


def check_time_zone(name: object) -> str:
    """Give the name back if the pinned zone data has it; the host's own zone is no answer."""
    if not isinstance(name, str) or not is_zone_name(name):
        raise UnknownTimeZone(name)
    return name


@lru_cache(maxsize=ZONES_KEPT_MAX)
def zone_named(name: str) -> ZoneInfo:
    """Give the pinned rules of a name; aliases share what is worked out for their zone.

    Raises `UnknownTimeZone` for a name that stands in old schedules, and is dropped since.
    """
    return ZoneInfo(canonical_zone(check_time_zone(name)))


def stretch_at(zone: ZoneInfo, instant: int) -> Stretch:
    starts, stretches = _period(zone, instant // PERIOD_SECONDS)
    return stretches[bisect_right(starts, instant) - 1]


def instants_of(zone: ZoneInfo, wall: int) -> tuple[int, ...]:
    """None, one or two instants at which the clocks of the zone show `wall`, in order."""
    return tuple(
        wall - stretch.offset
        for stretch in _stretches_around(zone, wall)
        if stretch.start <= wall - stretch.offset < stretch.end
    )


def end_of_gap(zone: ZoneInfo, wall: int) -> int | None:
    """Find the instant at which the gap that swallows `wall` ends."""
    for stretch in _stretches_around(zone, wall):
        if stretch.start + stretch.offset_before <= wall < stretch.start + stretch.offset:
            return stretch.start
    return None


def date_in(zone: ZoneInfo, instant: datetime) -> date:
    return instant.astimezone(zone).date()


def midnight_of(zone: ZoneInfo, day: date) -> datetime:
    """Find the first instant of a day, also where its clocks begin later than at midnight."""
    return datetime.combine(day, time.min, zone).astimezone(UTC)


def stretches_between(zone: ZoneInfo, start: int, end: int) -> list[Stretch]:
    """All that have an instant of start <= instant <= end; meant for spans of a year or so."""
    found = [stretch_at(zone, start)]
    while found[-1].end <= end:
        last = found[-1]
        following = stretch_at(zone, last.end)
        if following.start < last.end:
            # The same stretch, seen again from the next period.
            found[-1] = last._replace(end=following.end, offset_after=following.offset_after)
        else:
            found.append(following)
    return found


def _stretches_around(zone: ZoneInfo, wall: int) -> list[Stretch]:
    return stretches_between(zone, wall - WALL_SPREAD_SECONDS, wall + WALL_SPREAD_SECONDS)


@lru_cache(maxsize=PERIODS_KEPT_MAX)
def _period(zone: ZoneInfo, index: int) -> tuple[list[int], list[Stretch]]:
    """Work out the stretches of one period, and their starts.

    It looks a little beyond both edges. What repeats or will repeat is told by the change next to
    a stretch, so no edge of a period may hide a change that is nearer than the longest jump.
    """
    first, end = index * PERIOD_SECONDS, (index + 1) * PERIOD_SECONDS
    starts, offsets = [first - WALL_SPREAD_SECONDS], [_offset(zone, first - WALL_SPREAD_SECONDS)]
    for low in range(starts[0], end + WALL_SPREAD_SECONDS, PROBE_SECONDS):
        high = low + PROBE_SECONDS
        offset = _offset(zone, high)
        if offset != offsets[-1]:
            starts.append(_change(zone, low, high))
            offsets.append(offset)
    stretches = [
        Stretch(
            start,
            starts[number + 1] if number + 1 < len(starts) else end,
            offsets[number],
            offsets[max(number - 1, 0)],
            offsets[min(number + 1, len(starts) - 1)],
        )
        for number, start in enumerate(starts)
        if start < end
    ]
    return starts[: len(stretches)], stretches


def _change(zone: ZoneInfo, low: int, high: int) -> int:
    """Find the first instant in low < instant <= high with another offset than `low`."""
    before = _offset(zone, low)
    for grain in (USUAL_GRAIN_SECONDS, 1):
        while high - low > grain:
            middle = low + (high - low) // grain // 2 * grain
            if _offset(zone, middle) == before:
                low = middle
            else:
                high = middle
        if _offset(zone, high - 1) == before:
            break
    return high


def _offset(zone: ZoneInfo, instant: int) -> int:
    offset = datetime.fromtimestamp(instant, zone).utcoffset()
    assert offset is not None
    return offset.days * DAY_SECONDS + offset.seconds
