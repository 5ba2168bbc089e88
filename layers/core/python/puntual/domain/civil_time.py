"""Maps the wall clock of an IANA zone to instants, as stretches of constant offset.

Instants are whole seconds of UTC since 1970. A wall time is counted in the same way, as if the wall
clock were UTC. Within a stretch, wall = instant + offset, so order and uniqueness need no thought;
everything odd (gaps, repeated hours, skipped days) lies between two stretches.
"""

import re
from bisect import bisect_right
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from puntual.domain.errors import Rejected

PERIOD_SECONDS = 2**25
"""About 388 days: how much of a zone's history is worked out, and remembered, at once."""

PROBE_SECONDS = 2**18
"""About 3 days: the closest two changes since 1900 in the zone data are 7 days apart."""

PERIODS_KEPT_MAX = 2048
WALL_SPREAD_SECONDS = 2 * 86_400
"""More than any wall clock is ahead of or behind UTC, plus the longest jump of one."""

ZONE_NAME_LENGTH_MAX = 64

_ZONE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")
_NOT_IANA = frozenset({"localtime", "posixrules", "Factory", "leapseconds"})
_NOT_IANA_FOLDERS = ("posix/", "right/")


class UnknownTimeZone(Rejected):
    def __init__(self, value: object) -> None:
        super().__init__("time_zone", value, "the name of an IANA time zone, as Europe/Berlin")


class Stretch(NamedTuple):
    """start <= instant < end have this offset. At a period's edge nothing need change."""

    start: int
    end: int
    offset: int
    offset_before: int
    offset_after: int


def check_time_zone(name: object) -> str:
    """Give the name back if the pinned zone data has it; the host's own zone is no answer."""
    if not isinstance(name, str) or len(name) > ZONE_NAME_LENGTH_MAX:
        raise UnknownTimeZone(name)
    if not _ZONE_NAME.fullmatch(name) or name in _NOT_IANA or name.startswith(_NOT_IANA_FOLDERS):
        raise UnknownTimeZone(name)
    try:
        ZoneInfo(name)
    # A folder or a data file that is no zone is reported in the manner of the file system.
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnknownTimeZone(name) from error
    return name


def stretch_at(zone: str, instant: int) -> Stretch:
    starts, stretches = _period(zone, instant // PERIOD_SECONDS)
    return stretches[bisect_right(starts, instant) - 1]


def instants_of(zone: str, wall: int) -> tuple[int, ...]:
    """None, one or two instants at which the clocks of the zone show `wall`, in order."""
    return tuple(
        wall - stretch.offset
        for stretch in _stretches_around(zone, wall)
        if stretch.start <= wall - stretch.offset < stretch.end
    )


def end_of_gap(zone: str, wall: int) -> int | None:
    """Find the instant at which the gap that swallows `wall` ends."""
    for stretch in _stretches_around(zone, wall):
        if stretch.start + stretch.offset_before <= wall < stretch.start + stretch.offset:
            return stretch.start
    return None


def stretches_between(zone: str, start: int, end: int) -> list[Stretch]:
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


def _stretches_around(zone: str, wall: int) -> list[Stretch]:
    return stretches_between(zone, wall - WALL_SPREAD_SECONDS, wall + WALL_SPREAD_SECONDS)


@lru_cache(maxsize=PERIODS_KEPT_MAX)
def _period(zone: str, index: int) -> tuple[list[int], list[Stretch]]:
    """Work out the stretches of one period, and their starts.

    It looks a little beyond both edges. What repeats or will repeat is told by the change next to
    a stretch, so no edge of a period may hide a change that is nearer than the longest jump.
    """
    info = ZoneInfo(zone)
    first, end = index * PERIOD_SECONDS, (index + 1) * PERIOD_SECONDS
    starts, offsets = [first - WALL_SPREAD_SECONDS], [_offset(info, first - WALL_SPREAD_SECONDS)]
    for low in range(starts[0], end + WALL_SPREAD_SECONDS, PROBE_SECONDS):
        high = low + PROBE_SECONDS
        offset = _offset(info, high)
        if offset != offsets[-1]:
            starts.append(_change(info, low, high))
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


def _change(info: ZoneInfo, low: int, high: int) -> int:
    """Find the first instant in low < instant <= high with another offset than `low`."""
    before = _offset(info, low)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(info, middle) == before:
            low = middle
        else:
            high = middle
    return high


def _offset(info: ZoneInfo, instant: int) -> int:
    offset = datetime.fromtimestamp(instant, info).utcoffset()
    assert offset is not None
    return offset.days * 86_400 + offset.seconds
