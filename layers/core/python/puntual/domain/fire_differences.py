"""Which fires of a rule another release of the zone data has elsewhere: its sequences, compared."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from puntual.domain.cron_grammar import At, CronFields, Rate, parse
from puntual.domain.expression import Fold, NextFireAfter, Rule
from puntual.domain.fire_sequences import Beside, fires_after, side_by_side
from puntual.domain.instant import LAST_INSTANT
from puntual.domain.zone_rules import ClockDifference

COMPARED_FIRES_MAX = 1_000
"""Until a difference is found: some 10 ms, so that no tenant's rules keep others waiting."""

COUNTED_FIRES_MAX = 200
"""From the first difference on: a daily rule's of 90 days."""

COUNTED_FOR = timedelta(days=90)

HOUR_MINUTES = 60
MINUTE_SECONDS = 60

_STEP = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FireDifferences:
    """The fires that vanish and appear within 90 days from the first of them on.

    Where there were too many to compare, it is not `complete`: it counts what was found, and a rule
    of which nothing was found by then is taken for one that differs.
    """

    vanished: int = 0
    appeared: int = 0
    first_vanished: datetime | None = None
    first_appeared: datetime | None = None
    complete: bool = True

    @property
    def counted_until(self) -> datetime:
        """No fire after that was looked at; of what is not complete, any may have been."""
        firsts = [first for first in (self.first_vanished, self.first_appeared) if first]
        return min(firsts) + COUNTED_FOR if firsts and self.complete else LAST_INSTANT


class _Fires:
    """A rule's fires by both releases, of which so many may be compared in all."""

    def __init__(self, former: NextFireAfter, pinned: NextFireAfter, *, limit: int) -> None:
        self._former, self._pinned, self.left = former, pinned, limit

    def next_after(self, instant: datetime) -> tuple[datetime | None, datetime | None]:
        return self._former(instant), self._pinned(instant)

    def differences(self, start: datetime, end: datetime) -> Iterator[Beside]:
        """Give the fires of start < fire <= end that only one has."""
        both = side_by_side(fires_after(self._former, start), fires_after(self._pinned, start))
        for beside in islice(both, self.left):
            self.left -= 1
            if beside.fire > end:
                return
            if beside.in_old != beside.in_new:
                yield beside


def fire_differences(
    rule: Rule, clocks: ClockDifference, *, after: datetime
) -> FireDifferences | None:
    """Compare a rule's fires after an instant under a former release with those it has now.

    None where they are the same, and where the rule has no fire left: what was planned by the
    former release is let be, and runs at that time, since a schedule must not end without a run.
    A single fire that has run is let be as well.
    """
    parsed = parse(rule.expression)
    if isinstance(parsed, Rate) or rule.next_fire(after) is None:
        return None
    former = rule.next_fire_by(clocks.former)
    if isinstance(parsed, At):
        return _of_one_fire(former, rule.next_fire, after)
    if _keeps_its_pace(parsed, clocks):
        if rule.fold in {Fold.AUTO, Fold.BOTH}:
            return None
        clocks = _at_the_edges(clocks)
    fires = _Fires(former, rule.next_fire, limit=COMPARED_FIRES_MAX)
    first = _first_difference(fires, clocks, after)
    if first is not None:
        return _counted(_Fires(former, rule.next_fire, limit=COUNTED_FIRES_MAX), first)
    return None if fires.left > 0 else FireDifferences(complete=False)


def _of_one_fire(
    former: NextFireAfter, pinned: NextFireAfter, after: datetime
) -> FireDifferences | None:
    was, will = former(after), pinned(after)
    if was is None or was == will:
        return None
    return FireDifferences(vanished=1, first_vanished=was, appeared=1, first_appeared=will)


def _keeps_its_pace(fields: CronFields, clocks: ClockDifference) -> bool:
    """Tell whether a rule asks the clock for its minute alone, and gets the same one by either.

    It fires at the same minutes of every hour of every day, but where an hour is repeated.
    """
    if not (fields.is_interval and fields.names_every_day):
        return False
    return all(
        shift % MINUTE_SECONDS == 0
        and fields.minutes
        == {(minute + shift // MINUTE_SECONDS) % HOUR_MINUTES for minute in fields.minutes}
        for shift in clocks.shifts
    )


def _at_the_edges(clocks: ClockDifference) -> ClockDifference:
    """Give what is left to compare of a pace that one pass of a repeated hour interrupts."""
    edges = sorted({edge for span in clocks.spans for edge in span})
    return replace(clocks, spans=tuple((edge, edge) for edge in edges))


def _first_difference(fires: _Fires, clocks: ClockDifference, after: datetime) -> datetime | None:
    """Compare the very next fires, wherever they lie, and then those where the clocks differ."""
    was, will = fires.next_after(after)
    if was != will:
        return min(fire for fire in (was, will) if fire is not None)
    for start, end in clocks.spans:
        if was is None or fires.left <= 0:
            break
        last = end + clocks.reach
        if was > last:
            continue
        for beside in fires.differences(max(start - clocks.reach - _STEP, after), last):
            return beside.fire
        # The same by either, or it would have been found.
        was, _ = fires.next_after(last)
    return None


def _counted(fires: _Fires, first: datetime) -> FireDifferences:
    found = list(fires.differences(first - _STEP, first + COUNTED_FOR - _STEP))
    vanished = [beside.fire for beside in found if beside.in_old]
    appeared = [beside.fire for beside in found if beside.in_new]
    return FireDifferences(
        vanished=len(vanished),
        appeared=len(appeared),
        first_vanished=min(vanished, default=None),
        first_appeared=min(appeared, default=None),
        complete=fires.left > 0,
    )
