"""Plan slices of missed ranges at their tenants' rates, beside all that is due on time (P8, E9)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from puntual.application.catch_up_tokens import CatchUpTokens
from puntual.application.plan_cursors import HEADLESS, NextFires, PlanCursors, Work
from puntual.application.ports import Clock
from puntual.domain.agenda import Cursor
from puntual.domain.errors import Unavailable
from puntual.domain.instant import MINUTE
from puntual.domain.page import OCCURRENCES_PER_PAGE_MAX
from puntual.domain.policies import CATCH_UP_LIMIT_MAX
from puntual.domain.recovery import Granted, Slice, plan_slice, slice_of
from puntual.domain.schedule import Schedule
from puntual.domain.tenant import TenantId

FIRES_MAX = CATCH_UP_LIMIT_MAX
"""Fires of one call: as many as one range may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecoveries:
    """Plans recovery cursors of one shard and bucket whose minute has begun.

    It writes as `PlanCursors` does, so it is safe to repeat from any point. Tokens that were taken
    before a crash are lost.
    """

    plan_cursors: PlanCursors
    tokens: CatchUpTokens
    clock: Clock

    def plan(
        self, shard: int, cursors: Sequence[Cursor], *, next_fires: NextFires | None = None
    ) -> Work:
        """Plan the next slice of each, or of as many as a call has fires for, at least one.

        Raises `Unavailable` where a write did not take; running again repairs it.
        """
        assert 0 < len(cursors) <= OCCURRENCES_PER_PAGE_MAX
        now, work = self.clock.now(), Work()
        rates = {
            tenant: self.tokens.per_minute(tenant)
            for tenant in dict.fromkeys(cursor.tenant for cursor in cursors)
        }
        slices = self._slices(cursors, rates, next_fires or NextFires(), work, now)
        granted = self._granted(list(slices.values()), rates)
        for cursor, found in slices.items():
            plan = plan_slice(found, granted=granted[cursor], now=now)
            work.planned.extend(plan.planned)
            work.spans.extend(plan.spans)
            if plan.next_cursor is not None:
                work.recoveries.append(plan.next_cursor)
            if plan.accounted is not None:
                work.accounted.append(cursor)
        done = [*slices, *(cursor for cursor, _ in work.quarantined)]
        self.plan_cursors.write(shard, done, work, now)
        return work

    def _slices(
        self,
        cursors: Sequence[Cursor],
        rates: Mapping[TenantId, int],
        memo: NextFires,
        work: Work,
        now: datetime,
    ) -> dict[Cursor, Slice]:
        """Find what each asks for; stops where the call's fires are spoken for."""
        heads = self.plan_cursors.heads(cursors)
        slices: dict[Cursor, Slice] = {}
        room = FIRES_MAX
        for cursor in cursors:
            if room <= 0:
                break
            at_most = min(room, rates[cursor.tenant])
            try:
                slices[cursor] = self._slice(cursor, heads.get(cursor.key), memo, now, at_most)
            except Unavailable:
                raise
            except Exception as error:  # noqa: BLE001 one cursor must never stop its shard
                work.quarantined.append((cursor, f"{type(error).__name__}: {error}"))
                continue
            room -= len(slices[cursor].fires)
        return slices

    def _slice(
        self, cursor: Cursor, head: Schedule | None, memo: NextFires, now: datetime, at_most: int
    ) -> Slice:
        if head is None:
            raise LookupError(HEADLESS)
        ended = self.plan_cursors.ended(cursor, head)
        return slice_of(cursor, head=head, ended=ended, now=now, at_most=at_most, next_fire=memo)

    def _granted(
        self, slices: Sequence[Slice], rates: Mapping[TenantId, int]
    ) -> dict[Cursor, Granted]:
        """Take each tenant's tokens at once, and give them to its ranges in their order."""
        wanted: dict[TenantId, int] = defaultdict(int)
        for found in slices:
            wanted[found.owner.cursor.tenant] += len(found.fires)
        now = self.clock.now()
        left = {
            tenant: self.tokens.take_up_to(tenant, count, per_minute=rates[tenant])
            if count
            else Granted(count=0, first_at=now, every=MINUTE)
            for tenant, count in wanted.items()
        }
        granted: dict[Cursor, Granted] = {}
        for found in slices:
            cursor = found.owner.cursor
            granted[cursor], left[cursor.tenant] = left[cursor.tenant].cut(len(found.fires))
        return granted
