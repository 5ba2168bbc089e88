"""What `catch_up` makes of a missed range: its head is too late, the oldest run, the rest not.

The same for a planner that finds the range, for each slice of its recovery, and for the preview.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from puntual.domain.fire_bits import fire_bits
from puntual.domain.instant import MILLISECOND
from puntual.domain.occurrence import VersionFires
from puntual.domain.policies import MisfirePolicy
from puntual.domain.run import RUN_AGE_MAX

BEYOND_LIMIT = "limit"
TOO_LATE = "max_lateness"
FORGOTTEN = "older than the ledger remembers"


class Stretch(NamedTuple):
    """Fires of one version, from the first to the last."""

    first: datetime
    last: datetime


class CaughtUp(NamedTuple):
    """The parts of a missed range, in their order; None for one without a fire."""

    too_late: Stretch | None
    runs: Stretch | None
    beyond: Stretch | None


def oldest_of(misfire: MisfirePolicy) -> tuple[timedelta, str]:
    """Give how late a fire may run, and why not later."""
    if misfire.max_lateness is None:
        return RUN_AGE_MAX, FORGOTTEN
    return misfire.max_lateness, TOO_LATE


def caught_up(
    fires: VersionFires,
    misfire: MisfirePolicy,
    *,
    first: datetime,
    last: datetime,
    left: int,
    now: datetime,
) -> CaughtUp:
    """Divide the missed fires from `first` to `last`, of which `left` may still run.

    `first` is a fire. What lies at or after the version's end is the next one's, and left out.
    """
    ends = fires.last_fire(last)
    if ends is None or ends < first:
        return CaughtUp(None, None, None)
    oldest, _ = oldest_of(misfire)
    too_late_last = fires.last_available(now - oldest - MILLISECOND)
    too_late = None
    if too_late_last is not None and too_late_last >= first:
        too_late = Stretch(first, min(too_late_last, ends))
        following = fires.fire_after(too_late.last)
        if following is None or following > ends:
            return CaughtUp(too_late, None, None)
        first = following
    if left <= 0:
        return CaughtUp(too_late, None, Stretch(first, ends))
    runs_last = fire_bits(fires.rule, first, ends).fire(left) or ends
    if runs_last >= ends:
        return CaughtUp(too_late, Stretch(first, ends), None)
    behind = fires.fire_after(runs_last)
    assert behind is not None
    return CaughtUp(too_late, Stretch(first, runs_last), Stretch(behind, ends))
