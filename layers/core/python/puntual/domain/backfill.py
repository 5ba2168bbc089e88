"""Which instants of a past range a backfill runs: pure decisions on versions, rows and spans."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from enum import Enum, auto

from puntual.domain.errors import Rejected
from puntual.domain.instant import DAY, text_of
from puntual.domain.occurrence import Kind
from puntual.domain.run import RUN_AGE_MAX, Run, RunState, Span
from puntual.domain.timeline import Fire, covers

BACKFILL_MAX = 1_000
"""Occurrences of one backfill."""

BACKFILL_DEFAULT = 100

BACKFILL_AGE_MAX = RUN_AGE_MAX - 2 * DAY
"""The oldest instant: what became of an older one, or will become of it, may be forgotten."""

DRAINS_WITHIN_MAX = DAY
"""How far ahead a backfill may reserve its rate: a message that waits is sent anew every 900 s."""

LOST_AFTER = DAY
"""Age from which an instant without a trace counts as lost: nothing is on its way for so long."""

NEVER_RAN = frozenset({RunState.MISSED, RunState.CANCELED})


class Found(Enum):
    """What became of an instant."""

    RAN = auto()
    PENDING = auto()
    MISSING = auto()


def check_range(start: datetime, end: datetime, *, now: datetime) -> None:
    """Refuse a range that is not past, or that the ledger does not remember; raises `Rejected`."""
    oldest = now - BACKFILL_AGE_MAX
    if start < oldest:
        allowed = f"not before {text_of(oldest)}: what became of older instants is forgotten"
        raise Rejected("from", text_of(start), allowed)
    if end > now:
        raise Rejected("until", text_of(end), f"not after now, {text_of(now)}")
    if end < start:
        raise Rejected("until", text_of(end), f"not before from, {text_of(start)}")


def found_at(fire: Fire, rows: Sequence[Run], spans: Collection[Span], now: datetime) -> Found:
    """Judge an instant by the rows at it; runs that were triggered there by hand do not count.

    Without a trace it may still be on its way, and running it would run it twice, until so much
    time has passed that it must have been lost.
    """
    own = [row for row in rows if row.occurrence.kind is not Kind.MANUAL]
    if any(row.attempt or row.state not in NEVER_RAN for row in own):
        return Found.RAN
    recorded = any(row.occurrence.is_regular for row in own)
    if recorded or any(covers(span, fire) for span in spans):
        return Found.MISSING
    return Found.MISSING if now - fire.available_at > LOST_AFTER else Found.PENDING


def check_drains(last_available: datetime, *, count: int, per_minute: int, now: datetime) -> None:
    """Refuse what the tenant's rate would not let through within a day; raises `Rejected`."""
    wait = last_available - now
    if wait > DRAINS_WITHIN_MAX:
        hours = timedelta(hours=1)
        allowed = (
            f"fewer, or later: at {per_minute} a minute (catch_ups_per_minute), behind what is"
            f" reserved already, the last one would wait {wait / hours:.0f} hours, and at most"
            f" {DRAINS_WITHIN_MAX // hours} are allowed"
        )
        raise Rejected("limit", count, allowed)
