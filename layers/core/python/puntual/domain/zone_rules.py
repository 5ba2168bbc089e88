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
class ZoneChange:
    """Where the clocks of a zone differ between a former release and the pinned one.

    `spans` are instants first <= instant < end, in order; `shifts` are all the differences
    (pinned offset minus former one) that occur in them, in seconds.
    """

    former: ZoneInfo
    spans: tuple[tuple[datetime, datetime], ...]
    shifts: frozenset[int]


def changed_zones(
    former: ZoneRules, pinned: ZoneRules, *, since: datetime
) -> dict[str, ZoneChange]:
    """Give the names, aliases too, whose clocks differ at some instant from `since` on.

    What only one of them knows is left out: see `dropped_zones`.
    """
    compared: dict[tuple[bytes, bytes], ZoneChange | None] = {}
    changes: dict[str, ZoneChange] = {}
    for name in sorted(former.data.keys() & pinned.data.keys()):
        data = former.data[name], pinned.data[name]
        if data[0] == data[1]:
            continue
        if data not in compared:
            compared[data] = _change(former.zone(name), pinned.zone(name), since=since)
        change = compared[data]
        if change is not None:
            changes[name] = change
    return changes


def dropped_zones(former: ZoneRules, pinned: ZoneRules) -> frozenset[str]:
    """Give the names that the pinned data have no more: no fire of theirs can be computed."""
    return frozenset(former.data.keys() - pinned.data.keys())


def _change(former: ZoneInfo, pinned: ZoneInfo, *, since: datetime) -> ZoneChange | None:
    spans: list[tuple[int, int]] = []
    shifts: set[int] = set()
    at = _seconds(since)
    last = at + int(COMPARED_FOR.total_seconds())
    for _ in range(STEPS_MAX):
        if at >= last:
            break
        was, is_now = stretch_at(former, at), stretch_at(pinned, at)
        end = min(was.end, is_now.end)
        if was.offset != is_now.offset:
            shifts.add(is_now.offset - was.offset)
            if spans and spans[-1][1] == at:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((at, end))
        at = end
    if not spans:
        return None
    return ZoneChange(
        former=former,
        spans=tuple((_instant(start), _instant(end)) for start, end in spans),
        shifts=frozenset(shifts),
    )


def _seconds(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(seconds=1)


def _instant(seconds: int) -> datetime:
    return _EPOCH + timedelta(seconds=seconds)
