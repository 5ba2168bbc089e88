"""Rule P1 for whoever inserts a cursor: write it first, then read what is announced."""

from dataclasses import dataclass
from datetime import timedelta

from puntual.application.plan_cursors import PlanCursors
from puntual.application.ports import Clock, Shards
from puntual.domain.agenda import Cursor, shard_of
from puntual.domain.schedule import ScheduleKey
from puntual.domain.shard import new_shard

ROUNDS_MAX = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """What a writer of cursors does before its transaction (E10) and after it (P1)."""

    shards: Shards
    plan_cursors: PlanCursors
    clock: Clock
    shard_count: int
    horizon: timedelta

    def shard(self, key: ScheduleKey) -> int:
        return shard_of(key, self.shard_count)

    def ensure_shard(self, key: ScheduleKey) -> int:
        """Make the shard's row before the first cursor goes into it (E10)."""
        shard = self.shard(key)
        self.shards.ensure(new_shard(shard, now=self.clock.now(), horizon=self.horizon))
        return shard

    def plan_inline(self, cursor: Cursor) -> None:
        """Plan what a planner may already have passed, until the next cursor lies beyond it.

        The cursor must have been written before. Either a planner sees it or this sees the
        planner's announcement; both may, and the occurrence id makes that harmless.
        """
        shard = self.shard(cursor.key)
        following: Cursor | None = cursor
        for _ in range(ROUNDS_MAX):
            row = self.shards.get(shard)
            if row is None or following is None or following.available_at > row.planned_through:
                return
            work = self.plan_cursors.plan(shard, [following], through=row.planned_through)
            following = work.next_cursors[0] if work.next_cursors else None
