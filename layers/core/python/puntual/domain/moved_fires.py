"""Which fires of a rule another release of the zone data moves: two sequences, compared."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from puntual.domain.cron_grammar import At, CronFields, Rate, parse
from puntual.domain.expression import Fold, NextFireAfter, Rule
from puntual.domain.zone_rules import ZoneChange

COMPARED_FIRES_MAX = 10_000
COUNTED_FOR = timedelta(days=90)
MARGIN = timedelta(days=2)
"""Gaps and repeated hours reach so far beyond the instants at which clocks differ."""

HOUR_MINUTES = 60
MINUTE_SECONDS = 60

_STEP = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedFires:
    """The fires that vanish and appear within 90 days from the first of them on.

    Where they were too many to compare them all, it is not `complete`: it counts those that were,
    and a rule of which none was found to move by then is taken for moved.
    """

    vanished: int = 0
    appeared: int = 0
    first_vanished: datetime | None = None
    first_appeared: datetime | None = None
    complete: bool = True


class _Fires:
    """Two sequences of one rule's fires, of which so many may be computed in all."""

    def __init__(self, former: NextFireAfter, pinned: NextFireAfter) -> None:
        self._former, self._pinned = former, pinned
        self.left = COMPARED_FIRES_MAX

    def next_after(self, instant: datetime) -> tuple[datetime | None, datetime | None]:
        return self._former(instant), self._pinned(instant)

    def differences(self, start: datetime, end: datetime) -> Iterator[tuple[datetime, bool]]:
        """Give the fires of start < fire <= end that only one has, and whether it vanishes."""
        was, will = self.next_after(start)
        while self.left > 0:
            self.left -= 1
            if (was is None or was > end) and (will is None or will > end):
                return
            if will is None or (was is not None and was < will):
                assert was is not None
                yield was, True
                was = self._former(was)
            elif was is None or will < was:
                yield will, False
                will = self._pinned(will)
            else:
                was, will = self._former(was), self._pinned(will)


def moved_fires(rule: Rule, change: ZoneChange, *, after: datetime) -> MovedFires | None:
    """Compare a rule's fires after an instant under a former release with those it has now.

    None where they are the same, and where the rule has no fire left: what was planned by the
    former release is let be, and runs at that time, since a schedule must not end without a run.
    A single fire that has run is let be as well.
    """
    parsed = parse(rule.expression)
    if isinstance(parsed, Rate) or rule.next_fire(after) is None:
        return None
    former = rule.next_fire_by(change.former)
    if isinstance(parsed, At):
        return _moved_once(former, rule.next_fire, after)
    if _keeps_its_pace(parsed, rule.fold, change):
        return None
    fires = _Fires(former, rule.next_fire)
    first = _first_difference(fires, change.spans, after)
    if first is not None:
        return _counted(_Fires(former, rule.next_fire), first)
    return None if fires.left > 0 else MovedFires(complete=False)


def _moved_once(former: NextFireAfter, pinned: NextFireAfter, after: datetime) -> MovedFires | None:
    was, will = former(after), pinned(after)
    if was is None or was == will:
        return None
    return MovedFires(vanished=1, first_vanished=was, appeared=1, first_appeared=will)


def _keeps_its_pace(fields: CronFields, fold: Fold, change: ZoneChange) -> bool:
    """Tell whether a rule asks the clock for its minute alone, and gets the same one by either.

    It fires at the same minutes of every hour of every day, in both passes of a repeated one.
    """
    if not (fields.is_interval and fields.names_every_day and fold in {Fold.AUTO, Fold.BOTH}):
        return False
    return all(
        shift % MINUTE_SECONDS == 0
        and fields.minutes
        == {(minute + shift // MINUTE_SECONDS) % HOUR_MINUTES for minute in fields.minutes}
        for shift in change.shifts
    )


def _first_difference(
    fires: _Fires, spans: Sequence[tuple[datetime, datetime]], after: datetime
) -> datetime | None:
    """Compare the very next fires, wherever they lie, and then those where the clocks differ."""
    was, will = fires.next_after(after)
    if was != will:
        return min(fire for fire in (was, will) if fire is not None)
    for start, end in spans:
        if was is None:
            break
        if was > end + MARGIN:
            continue
        for fire, _ in fires.differences(max(start - MARGIN, after), end + MARGIN):
            return fire
        # The same by either, or it would have been found.
        was, _ = fires.next_after(end + MARGIN)
    return None


def _counted(fires: _Fires, first: datetime) -> MovedFires:
    found = list(fires.differences(first - _STEP, first + COUNTED_FOR - _STEP))
    vanished = [fire for fire, vanishes in found if vanishes]
    appeared = [fire for fire, vanishes in found if not vanishes]
    return MovedFires(
        vanished=len(vanished),
        appeared=len(appeared),
        first_vanished=min(vanished, default=None),
        first_appeared=min(appeared, default=None),
        complete=fires.left > 0,
    )
