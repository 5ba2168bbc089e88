"""A planner's pass over one shard: announce, read each bucket until it is empty, close the old.

Recoveries come last, so that what was missed never delays what is due (P8).
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import batched, count

from puntual.application.plan_cursors import NextFires, PlanCursors, Work
from puntual.application.plan_recoveries import PlanRecoveries
from puntual.application.ports import Agenda, Clock, IdSource, Outbox, Shards
from puntual.application.relay_page import RelayPage
from puntual.domain.agenda import Cursor
from puntual.domain.errors import Unavailable
from puntual.domain.fairness import QUANTUM, Turn, WeightOf
from puntual.domain.instant import MINUTE, minute_of
from puntual.domain.page import OCCURRENCES_PER_PAGE_MAX
from puntual.domain.shard import CLOSE_AFTER, LEASE, Shard

PAGE_LEFT_AFTER = timedelta(seconds=60)
"""Age from which a page counts as left over by the relay."""

PAGES_RELAYED_MAX = 100

READ_BEHIND = 1_000
"""Cursors per read while some are put off: others lie scattered among them."""

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
    carried: int = 0
    relayed: int = 0
    completed_through: datetime | None = None
    drained_through: datetime | None = None

    def count(self, work: Work) -> None:
        self.planned += len(work.planned)
        self.spans += len(work.spans)
        self.quarantined += len(work.quarantined)


@dataclass(slots=True)
class Pass:
    """How far a pass over a shard may go and has come."""

    shard: int
    owner: str
    deadline: datetime
    renewed_at: datetime
    emptied: dict[datetime, datetime] = field(default_factory=dict)
    """When each bucket was last seen to hold no regular cursor."""

    recovering: list[datetime] = field(default_factory=list)
    """Those of them whose minute has begun and that hold recovery cursors."""

    memo: NextFires = field(default_factory=NextFires)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanShard:
    shards: Shards
    agenda: Agenda
    outbox: Outbox
    plan_cursors: PlanCursors
    plan_recoveries: PlanRecoveries
    relay_page: RelayPage
    clock: Clock
    ids: IdSource
    horizon: timedelta
    weight_of: WeightOf
    quantum: int = QUANTUM

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
        at = Pass(shard=shard, owner=owner, deadline=deadline, renewed_at=self.clock.now())
        self._plan_buckets(at, row.drained_through, through, report)
        self._close(row, through, at, report)
        self._relay_left(shard, report)
        self._recover(at, report)
        self.shards.release(shard, owner=owner)
        return report

    def _lease(self, shard: int, owner: str, now: datetime) -> bool:
        return self.shards.lease(shard, owner=owner, now=now, until=now + LEASE)

    def _plan_buckets(
        self, at: Pass, first: datetime, through: datetime, report: PlanReport
    ) -> None:
        """Plan what is due in every bucket up to `through`.

        In rounds, so that a tenant with much to plan in one bucket holds up no other: what is
        beyond its turn waits until every bucket has been walked through.
        """
        buckets = tuple(_minutes(first, through))
        for round_ in count():
            put_off = []
            for bucket in buckets:
                report.buckets += round_ == 0
                emptied = self._walk_through(bucket, round_, at, report)
                if emptied is None:
                    return
                if not emptied:
                    put_off.append(bucket)
            if not put_off:
                return
            buckets = tuple(put_off)

    def _walk_through(
        self, bucket: datetime, round_: int, at: Pass, report: PlanReport
    ) -> bool | None:
        """Plan a turn of each tenant; None if the pass ends.

        True if the bucket then holds no regular cursor any more.
        """
        turn = Turn(round=round_, quantum=self.quantum, weight_of=self.weight_of)
        behind: Cursor | None = None
        while True:
            now = self.clock.now()
            if not self._goes_on(at, now):
                return None
            limit = OCCURRENCES_PER_PAGE_MAX if behind is None else READ_BEHIND
            due = self.agenda.due(at.shard, bucket, limit=limit, behind=behind)
            cursors = [cursor for cursor in due if cursor.recovery is None]
            if not cursors:
                break
            chosen, put_off = turn.split(cursors)
            for some in batched(chosen, OCCURRENCES_PER_PAGE_MAX, strict=False):
                if not self._goes_on(at, self.clock.now()):
                    return None
                self._plan(some, at, report, carried=round_ > 0)
            if put_off:
                behind = put_off[-1]
        if behind is not None:
            return False
        at.emptied[bucket] = now
        if due and bucket <= now:
            at.recovering.append(bucket)
        return True

    def _plan(
        self, cursors: Sequence[Cursor], at: Pass, report: PlanReport, *, carried: bool
    ) -> None:
        """Plan a page. What is beyond a first turn is carried, past the queue that others are in.

        The relay takes pages in the order in which they were written: behind a storm, what is
        written after it would come too late.
        """
        work = self.plan_cursors.plan(at.shard, cursors, next_fires=at.memo, carried=carried)
        report.count(work)
        if not carried:
            return
        for page in work.pages:
            # One that is not taken stays in the outbox, and is relayed with what is left.
            with suppress(Unavailable):
                report.carried += self.relay_page(page).sent

    def _recover(self, at: Pass, report: PlanReport) -> None:
        """Plan a slice of each missed range that is due; the next one has a later bucket (E9)."""
        for bucket in at.recovering:
            while self._goes_on(at, self.clock.now()):
                due = self.agenda.due(at.shard, bucket, limit=OCCURRENCES_PER_PAGE_MAX)
                cursors = [cursor for cursor in due if cursor.recovery is not None]
                if not cursors:
                    break
                report.count(self.plan_recoveries.plan(at.shard, cursors, next_fires=at.memo))

    def _goes_on(self, at: Pass, now: datetime) -> bool:
        """Tell whether there is time left, and the lease still ours."""
        if now >= at.deadline:
            return False
        if now - at.renewed_at > LEASE_RENEWED_AFTER:
            if not self._lease(at.shard, at.owner, now):
                return False
            at.renewed_at = now
        return True

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
        at: Pass,
        report: PlanReport,
    ) -> None:
        """Close buckets that were seen empty when their end was old enough (P4)."""
        completed = drained = minute_of(row.drained_through)
        closing = True
        for bucket in _minutes(row.drained_through, through):
            if bucket not in at.emptied:
                break
            completed = bucket + MINUTE
            closing = (
                closing
                and bucket not in at.recovering
                and at.emptied[bucket] - (bucket + MINUTE) >= CLOSE_AFTER
            )
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
