"""What a release of the tz database says of every zone, and where two releases differ."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO
from zoneinfo import ZoneInfo

from puntual.domain.civil_time import stretch_at

COMPARED_FOR = timedelta(days=75 * 365)
"""Morocco's changes are listed until 2087; after that, what differs at all differs every year."""

STEPS_MAX = 4096
"""More than the changes and periods of two zones in that time."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneRules:
    """A release (the version of the tzdata package) and its TZif data (RFC 8536) by zone name.

    Aliases are names with the same data, so that a name which stops being one is seen to change.
    """

    release: str
    data: Mapping[str, bytes] = field(repr=False)

    def zone(self, name: str) -> ZoneInfo:
        """Give the rules of a name; raises `KeyError` where this release does not have it."""
        return ZoneInfo.from_file(BytesIO(self.data[name]), key=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockDifference:
    """Where the clocks of a zone differ between a former release and the pinned one.

    `spans` are instants first <= instant < end, in order, each of a single difference; `shifts` are
    all of these (pinned offset minus former one, in seconds). Fires may differ that lie
    beside a span, but by no more than `reach`: the longest jump of either clock at its ends, which
    repeats so much time or leaves it out.
    """

    former: ZoneInfo
    spans: tuple[tuple[datetime, datetime], ...]
    shifts: frozenset[int]
    reach: timedelta


def differing_zones(
    former: ZoneRules, pinned: ZoneRules, *, since: datetime
) -> dict[str, ClockDifference]:
    """Give the names, aliases too, whose clocks differ at some instant from `since` on.

    What only one of them knows is left out: see `dropped_zones`.
    """
    compared: dict[tuple[bytes, bytes], ClockDifference | None] = {}
    differences: dict[str, ClockDifference] = {}
    for name in sorted(former.data.keys() & pinned.data.keys()):
        data = former.data[name], pinned.data[name]
        if data[0] == data[1]:
            continue
        if data not in compared:
            compared[data] = _difference(former.zone(name), pinned.zone(name), since=since)
        difference = compared[data]
        if difference is not None:
            differences[name] = difference
    return differences


def dropped_zones(former: ZoneRules, pinned: ZoneRules) -> frozenset[str]:
    """Give the names that the pinned data have no more: no fire of theirs can be computed."""
    return frozenset(former.data.keys() - pinned.data.keys())


def _difference(former: ZoneInfo, pinned: ZoneInfo, *, since: datetime) -> ClockDifference | None:
    spans: list[tuple[int, int]] = []
    shifts: set[int] = set()
    last_shift = 0
    at = _seconds(since)
    last = at + int(COMPARED_FOR.total_seconds())
    for _ in range(STEPS_MAX):
        if at >= last:
            break
        was, is_now = stretch_at(former, at), stretch_at(pinned, at)
        end = min(was.end, is_now.end)
        if was.offset != is_now.offset:
            shift = is_now.offset - was.offset
            if spans and spans[-1][1] == at and shift == last_shift:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((at, end))
            shifts.add(last_shift := shift)
        at = end
    if not spans:
        return None
    jumps = [_jump(zone, edge) for span in spans for edge in span for zone in (former, pinned)]
    return ClockDifference(
        former=former,
        spans=tuple((_instant(start), _instant(end)) for start, end in spans),
        shifts=frozenset(shifts),
        reach=timedelta(seconds=max(jumps)),
    )


def _jump(zone: ZoneInfo, edge: int) -> int:
    """Give how far the clocks of a zone jump at an instant, either way."""
    stretch = stretch_at(zone, edge)
    return abs(stretch.offset - stretch.offset_before) if stretch.start == edge else 0


def _seconds(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(seconds=1)


def _instant(seconds: int) -> datetime:
    return _EPOCH + timedelta(seconds=seconds)
