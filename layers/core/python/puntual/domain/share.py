"""Concurrency as shares on lease: who may run how many at once, and until when.

A killed executor gives its share back by doing nothing: what has run out counts as none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from puntual.domain.run import LEASE_MARGIN
from puntual.domain.tenant import TenantId

RUNNING = "running"
"""The name of a tenant's shares of `running_max`."""

SHARE_KEPT = timedelta(seconds=30)
"""How long a share outlives the longest lease under it, so that not every attempt renews it."""

SHARE_BLOCK_MAX = 10
SHARE_BLOCKS_OF_A_LIMIT = 20
"""An executor takes at most this part of a limit ahead: small limits are taken one by one."""


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


def _is_live(share: Share, now: datetime) -> bool:
    return share.until + LEASE_MARGIN >= now
