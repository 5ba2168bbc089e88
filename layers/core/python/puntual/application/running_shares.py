"""Shares of limits on concurrency: an executor's own, on lease, shared by its threads."""

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Lock

from puntual.application.ports import Clock, IdSource, Shares
from puntual.domain.errors import Unavailable
from puntual.domain.run import LEASE_MARGIN
from puntual.domain.share import SHARE_KEPT, ShareKey, block_of, kept, taken

SWAPS_MAX = 8
"""Tries against others who take from the same limit."""

HOLDINGS_MAX = 1_000


@dataclass(slots=True)
class _Holding:
    """What this process has of a limit, and the leases of the attempts that run under it.

    `is_tight`: no room was left when it was last written, so what is not used is given back.
    """

    count: int = 0
    until: datetime | None = None
    leases: list[datetime] = field(default_factory=list)
    is_tight: bool = False
    held: int = 0
    lock: Lock = field(default_factory=Lock)


@dataclass(frozen=True, slots=True)
class _Handed:
    """What an executor gives up to a run that goes on without it."""

    run: str
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningShares:
    """One of a process; `holder` is its name among the others.

    A share outlives the leases of the attempts under it, and then lapses by itself.
    """

    shares: Shares
    clock: Clock
    ids: IdSource
    holder: str
    _holdings: OrderedDict[ShareKey, _Holding] = field(default_factory=OrderedDict)

    def enter(self, key: ShareKey, limit: int, *, lease_until: datetime) -> bool:
        """Let an attempt run until its lease ends, if there is room. Raises `Unavailable`."""
        holding = self._holding(key)
        with holding.lock:
            self._forget_the_dead(holding)
            has_share = holding.until is not None and lease_until <= holding.until
            entered = has_share and len(holding.leases) < min(holding.count, limit)
            if entered or self._grown(holding, key, limit, lease_until):
                holding.leases.append(lease_until)
                return True
            holding.held += 1
            return False

    def leave(self, key: ShareKey, limit: int, *, lease_until: datetime) -> None:
        """Let an attempt go that had entered; where room is short, its share goes with it."""
        holding = self._holding(key)
        with holding.lock:
            if lease_until in holding.leases:
                holding.leases.remove(lease_until)
            if not holding.is_tight or holding.until is None:
                return
            # Whether or not it is heard that the write took effect.
            holding.count = min(holding.count, len(holding.leases))
            try:
                self._write(holding, key, limit, holding.count, until=holding.until)
            except Unavailable:
                return  # it lapses

    def hand_over(
        self, key: ShareKey, limit: int, *, lease_until: datetime, run: str, until: datetime
    ) -> None:
        """Give an attempt's share to its run, whose holder is `run`, in one write.

        Where that fails, it stays here until the attempt's first lease ends, so that it is nobody
        else's meanwhile.
        """
        holding = self._holding(key)
        with holding.lock:
            if lease_until not in holding.leases or holding.until is None:
                return
            holding.count = max(0, holding.count - 1)
            handed = _Handed(run, until)
            try:
                self._write(holding, key, limit, holding.count, until=holding.until, handed=handed)
            except Unavailable:
                return
            holding.leases.remove(lease_until)

    def _grown(self, holding: _Holding, key: ShareKey, limit: int, lease_until: datetime) -> bool:
        needed = len(holding.leases) + 1
        if needed > limit:
            return False
        ends = max([lease_until, *holding.leases]) + SHARE_KEPT
        wanted = max(holding.count, len(holding.leases) + block_of(limit))
        return self._write(holding, key, limit, wanted, until=ends, least=needed)

    def _write(
        self,
        holding: _Holding,
        key: ShareKey,
        limit: int,
        count: int,
        *,
        until: datetime,
        least: int = 0,
        handed: _Handed | None = None,
    ) -> bool:
        """Write the share; False where others leave less than `least`, and nothing is written."""
        for _ in range(SWAPS_MAX):
            seen = self.shares.read(key)
            now = self.clock.now()
            before = seen
            if handed is not None:
                before = kept(seen, handed.run, until=handed.until, now=now)
            after, granted = taken(before, self.holder, count, limit=limit, until=until, now=now)
            if granted < least:
                return False
            after = replace(after, held=seen.held + holding.held, write_id=self.ids.new_id())
            if self.shares.swap(after, seen=seen):
                holding.count, holding.until, holding.held = granted, until, 0
                holding.is_tight = after.in_use(now) >= limit
                return True
        raise Unavailable(f"shares {key.name} of {key.tenant}: too many take from them")

    def _forget_the_dead(self, holding: _Holding) -> None:
        """Drop attempts whose leases ran out: whoever made them never said that they were over."""
        now = self.clock.now()
        holding.leases = [lease for lease in holding.leases if lease + LEASE_MARGIN >= now]

    def _holding(self, key: ShareKey) -> _Holding:
        holding = self._holdings.setdefault(key, _Holding())
        while len(self._holdings) > HOLDINGS_MAX:
            self._holdings.popitem(last=False)
        return holding
