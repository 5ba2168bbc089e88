"""A planner's pass over one shard: announce, read each bucket until it is empty, close the old."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from puntual.application.plan_cursors import NextFires, PlanCursors, Work
from puntual.application.ports import Agenda, Clock, IdSource, Outbox, Shards
from puntual.application.relay_page import RelayPage
from puntual.domain.instant import MINUTE, minute_of
from puntual.domain.page import OCCURRENCES_PER_PAGE_MAX
from puntual.domain.shard import CLOSE_AFTER, LEASE, Shard

PAGE_LEFT_AFTER = timedelta(seconds=60)
"""Age from which a page counts as left over by the relay."""

PAGES_RELAYED_MAX = 100
LEASE_RENEWED_AFTER = LEASE / 3


@dataclass(slots=True)
class PlanReport:
    """What a pass did. `leased` is False where there is no such shard, or another holds it."""

    shard: int
    leased: bool = False
    buckets: int = 0
    planned: int = 0
    spans: int = 0
    quarantined: int = 0
    relayed: int = 0
    completed_through: datetime | None = None
    drained_through: datetime | None = None

    def count(self, work: Work) -> None:
        self.planned += len(work.planned)
        self.spans += len(work.spans)
        self.quarantined += len(work.quarantined)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanShard:
    shards: Shards
    agenda: Agenda
    outbox: Outbox
    plan_cursors: PlanCursors
    relay_page: RelayPage
    clock: Clock
    ids: IdSource
    horizon: timedelta

    def __call__(self, shard: int, *, deadline: datetime) -> PlanReport:
        """Plan what is due within the horizon; stops at `deadline`, and the next pass goes on.

        Raises `Unavailable` where a table or queue did not answer; nothing is lost by it.
        """
        report = PlanReport(shard=shard)
        owner, now = self.ids.new_id(), self.clock.now()
        row = self.shards.get(shard)
        if row is None or not self._lease(shard, owner, now):
            return report
        report.leased = True
        through = now + self.horizon
        self.shards.announce(shard, through)
        emptied = self._plan_buckets(row, owner, through, deadline, report)
        self._close(row, through, emptied, report)
        self._relay_left(shard, report)
        self.shards.release(shard, owner=owner)
        return report

    def _lease(self, shard: int, owner: str, now: datetime) -> bool:
        return self.shards.lease(shard, owner=owner, now=now, until=now + LEASE)

    def _plan_buckets(
        self, row: Shard, owner: str, through: datetime, deadline: datetime, report: PlanReport
    ) -> dict[datetime, datetime]:
        """Plan every bucket up to `through`; gives when each was last seen to be empty."""
        emptied: dict[datetime, datetime] = {}
        memo = NextFires()
        lease_renewed_at = self.clock.now()
        for bucket in _minutes(row.drained_through, through):
            report.buckets += 1
            while True:
                now = self.clock.now()
                if now >= deadline:
                    return emptied
                if now - lease_renewed_at > LEASE_RENEWED_AFTER:
                    if not self._lease(row.shard, owner, now):
                        return emptied
                    lease_renewed_at = now
                cursors = self.agenda.due(row.shard, bucket, limit=OCCURRENCES_PER_PAGE_MAX)
                if not cursors:
                    emptied[bucket] = now
                    break
                report.count(self.plan_cursors.plan(row.shard, cursors, next_fires=memo))
        return emptied

    def _relay_left(self, shard: int, report: PlanReport) -> None:
        """Relay what the relay left: nothing depends on the stream alone."""
        written_before = self.clock.now() - PAGE_LEFT_AFTER
        left = self.outbox.left(shard, written_before=written_before, limit=PAGES_RELAYED_MAX)
        for page in left:
            report.relayed += self.relay_page(page).sent

    def _close(
        self,
        row: Shard,
        through: datetime,
        emptied: dict[datetime, datetime],
        report: PlanReport,
    ) -> None:
        """Close buckets that were seen empty when their end was old enough (P4)."""
        completed = drained = minute_of(row.drained_through)
        closing = True
        for bucket in _minutes(row.drained_through, through):
            if bucket not in emptied:
                break
            completed = bucket + MINUTE
            closing = closing and emptied[bucket] - (bucket + MINUTE) >= CLOSE_AFTER
            if closing:
                drained = bucket + MINUTE
        report.completed_through, report.drained_through = min(completed, through), drained
        self.shards.close(
            row.shard,
            completed_through=report.completed_through,
            drained_through=report.drained_through,
        )


def _minutes(first: datetime, last: datetime) -> Iterator[datetime]:
    bucket = minute_of(first)
    while bucket <= last:
        yield bucket
        bucket += MINUTE
