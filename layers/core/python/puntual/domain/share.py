"""Concurrency as shares on lease: who may run how many at once, and until when.

A killed executor gives its share back by doing nothing: what has run out counts as none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from puntual.domain.run import LEASE_MARGIN, Run
from puntual.domain.tenant import TenantId

RUNNING = "running"
"""The name of a tenant's shares of `running_max`."""

SHARE_KEPT = timedelta(seconds=30)
"""How long a share outlives the longest lease under it, so that not every attempt renews it."""

SHARE_BLOCK_MAX = 10
SHARE_BLOCKS_OF_A_LIMIT = 20
"""An executor takes at most this part of a limit ahead: small limits are taken one by one."""


RUNS_KEPT_MAX = 500
"""Runs that may have a share of their own in a limit: they share a row, which must not outgrow its
place. Where more are under way, the later ones have none."""

RUN_PREFIX = "run "
RUN_ID_LENGTH = 12
"""Enough of an occurrence's id to tell those of one row apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareKey:
    tenant: TenantId
    name: str


@dataclass(frozen=True, slots=True)
class Share:
    count: int
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """The shares of one limit, by holder.

    `held` counts what had to wait, since ever. `write_id` names the write that made it so (P9);
    empty where nobody wrote.
    """

    key: ShareKey
    holders: Mapping[str, Share]
    held: int = 0
    write_id: str = ""

    def in_use(self, now: datetime, *, but_for: str = "") -> int:
        """Give how many may be running, a share that has run out counting as none."""
        return sum(
            share.count
            for holder, share in self.holders.items()
            if holder != but_for and _is_live(share, now)
        )


def block_of(limit: int) -> int:
    """Give how many a holder takes at once."""
    return max(1, min(SHARE_BLOCK_MAX, limit // SHARE_BLOCKS_OF_A_LIMIT))


def taken(
    shares: Shares, holder: str, count: int, *, limit: int, until: datetime, now: datetime
) -> tuple[Shares, int]:
    """Give a holder up to `count` in all, as far as the others leave room; 0 takes it away.

    Others' shares that have run out go with the same write.
    """
    granted = max(0, min(count, limit - shares.in_use(now, but_for=holder)))
    holders = {
        other: share
        for other, share in shares.holders.items()
        if other != holder and _is_live(share, now)
    }
    if granted:
        holders[holder] = Share(granted, until)
    return replace(shares, holders=holders, write_id=""), granted


def run_holder(run: Run) -> str:
    """Name the holder of an attempt that its target has taken, and no executor stands behind."""
    # Each attempt has its own, so that one that is over takes nothing from the next.
    return f"{RUN_PREFIX}{run.occurrence.id[:RUN_ID_LENGTH]} {run.attempt}"


def kept(shares: Shares, holder: str, *, until: datetime, now: datetime) -> Shares:
    """Give a run that is under way its share, room or none, or put its end off; ends only rise."""
    own = shares.holders.get(holder)
    if own is not None and own.until >= until:
        return shares
    holders = {other: share for other, share in shares.holders.items() if _is_live(share, now)}
    runs = sum(other.startswith(RUN_PREFIX) for other in holders)
    if own is None and runs >= RUNS_KEPT_MAX:
        return shares
    return replace(shares, holders=holders | {holder: Share(1, until)}, write_id="")


def left(shares: Shares, holder: str, *, now: datetime) -> Shares:
    """Take a holder's share away; the same where it has none."""
    if holder not in shares.holders:
        return shares
    return taken(shares, holder, 0, limit=0, until=now, now=now)[0]


def _is_live(share: Share, now: datetime) -> bool:
    return share.until + LEASE_MARGIN >= now
