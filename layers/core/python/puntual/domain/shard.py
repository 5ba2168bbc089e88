"""How far a shard has come: what is announced, planned and closed."""

from dataclasses import dataclass
from datetime import datetime, timedelta

CLOSE_AFTER = timedelta(minutes=5)
"""Age of a bucket's end at which it may be closed: no writer of a first cursor lives so long."""

DRAINED_AT_FIRST = timedelta(hours=1)
LEASE = timedelta(seconds=45)
"""Shorter than a tick, so that the next one takes over from a planner that died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """`planned_through` is announced before a bucket is read (P1); all times only rise (E10).

    The lease is advisory: two planners of one shard cost work, never correctness.
    """

    shard: int
    planned_through: datetime
    completed_through: datetime
    drained_through: datetime
    lease_owner: str = ""
    lease_until: datetime | None = None


def new_shard(shard: int, *, now: datetime, horizon: timedelta) -> Shard:
    """Give the row that is made before the first cursor goes into its shard (E10).

    It is announced from the start, so that the first writers plan inline until a planner comes.
    """
    return Shard(
        shard=shard,
        planned_through=now + horizon,
        completed_through=now,
        drained_through=now - DRAINED_AT_FIRST,
    )
