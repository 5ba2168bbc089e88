"""Rules of planning taken away: what is announced, what is written first, when buckets close."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from puntual.application.announced import Announced
from puntual.application.plan_cursors import PlanCursors, Work
from puntual.application.plan_shard import PlanShard
from puntual.application.settle_message import Settled, SettleMessage
from puntual.domain.agenda import Cursor, cursor_at
from puntual.domain.instant import text_of
from puntual.domain.judgement import Standing
from puntual.domain.message import Message
from puntual.domain.page import Page
from puntual.domain.run import Run, RunState, Span
from puntual.domain.schedule import Schedule, ScheduleKey
from puntual.domain.shard import Shard
from tests.fakes.in_memory_outbox import InMemoryOutbox
from tests.fakes.in_memory_shards import InMemoryShards
from tests.simulation.scenarios.claims import an_executor_that_dies_after_the_last_outcome
from tests.simulation.scenarios.planning import (
    a_create_that_meets_a_planner_after_an_outage,
    a_planner_that_dies_after_it_deleted,
    a_planner_that_meets_a_create_after_an_outage,
    a_writer_that_dies_after_its_transaction,
    clocks_that_go_forward_under_windows,
)
from tests.simulation.variant import Variant
from tests.simulation.watched import WatchedLedger
from tests.simulation.world import Parts

# P1: announce, then read; write, then read what is announced.


class NeverPlansInline(Announced):
    def plan_inline(self, cursor: Cursor) -> None:
        """Leave it to the planner."""


@dataclass(frozen=True, kw_only=True)
class ReadsBeforeItWrites(Announced):
    read: dict[ScheduleKey, datetime] = field(default_factory=dict)

    def ensure_shard(self, key: ScheduleKey) -> int:
        shard = super().ensure_shard(key)
        row = self.shards.get(shard)
        if row is not None:
            self.read[key] = row.planned_through
        return shard

    def plan_inline(self, cursor: Cursor) -> None:
        if cursor.available_at <= self.read[cursor.key]:
            super().plan_inline(cursor)


class AnnouncesAfterItReads(InMemoryShards):
    def __init__(self) -> None:
        super().__init__()
        self.held_back: dict[int, datetime] = {}

    def announce(self, shard: int, planned_through: datetime) -> None:
        self.held_back[shard] = planned_through

    def close(self, shard: int, *, completed_through: datetime, drained_through: datetime) -> None:
        super().announce(shard, self.held_back[shard])
        super().close(shard, completed_through=completed_through, drained_through=drained_through)


# P2: content-addressed pages, and the order in which a page and its cursors are written.


class PagesNamedByTheirBucket(InMemoryOutbox):
    def put(self, page: Page) -> None:
        place = (page.shard, text_of(page.bucket))
        new = place not in self.pages
        self.pages[place] = page
        if new and self.on_put is not None:
            self.on_put(page)

    def delete(self, page: Page) -> None:
        self.pages.pop((page.shard, text_of(page.bucket)), None)


class DeletesCursorsBeforeItPutsTheNext(PlanCursors):
    def write(self, shard: int, cursors: Sequence[Cursor], work: Work, now: datetime) -> None:
        self.agenda.delete(shard, cursors)
        super().write(shard, cursors, work, now)


class DeletesCursorsBeforeThePage(PlanCursors):
    def write(self, shard: int, cursors: Sequence[Cursor], work: Work, now: datetime) -> None:
        following = work.next_cursors
        if following:
            self.agenda.put(shard, following)
        self.agenda.delete(shard, cursors)
        super().write(shard, cursors, work, now)


# P4: a bucket closes late.


class ClosesBucketsAtOnce(InMemoryShards):
    def close(self, shard: int, *, completed_through: datetime, drained_through: datetime) -> None:
        drained = max(drained_through, completed_through)
        super().close(shard, completed_through=completed_through, drained_through=drained)


class ClosesWhatItPutOff(PlanShard):
    def _walk_through(self, bucket: datetime, round_: int, at: Any, report: Any) -> bool | None:
        walked = super()._walk_through(bucket, round_, at, report)
        if walked is not None:
            at.emptied[bucket] = self.clock.now()
            return True
        return None


# P10: a window ends before the next fire, and cursors rise.


class WindowsReachBeyondTheNextFire(PlanCursors):
    def write(self, shard: int, cursors: Sequence[Cursor], work: Work, now: datetime) -> None:
        heads = self.schedules.heads([cursor.key for cursor in work.next_cursors])
        work.next_cursors = [_unclipped(cursor, heads[cursor.key]) for cursor in work.next_cursors]
        super().write(shard, cursors, work, now)


def _unclipped(cursor: Cursor, head: Schedule) -> Cursor:
    last_fire = replace(head.rule, end_at=cursor.scheduled_for)
    fires = replace(head.fires, version=cursor.version, rule=last_fire)
    return cursor_at(cursor.scheduled_for, fires)


# E8: spans are written first, and voided cursors leave one.


class WritesSpansLast(PlanCursors):
    def write(self, shard: int, cursors: Sequence[Cursor], work: Work, now: datetime) -> None:
        spans, work.spans = work.spans, []
        super().write(shard, cursors, work, now)
        if spans:
            self.ledger.put_spans(spans)


class LeavesNoSpanOfVoidedCursors(WatchedLedger):
    def put_spans(self, spans: Sequence[Span]) -> None:
        super().put_spans([span for span in spans if span.state is RunState.MISSED])


# E10: shard rows are made first, and their times only rise.


class MakesTheShardAfterwards(Announced):
    def ensure_shard(self, key: ScheduleKey) -> int:
        return self.shard(key)

    def plan_inline(self, cursor: Cursor) -> None:
        super().ensure_shard(cursor.key)
        super().plan_inline(cursor)


class MakesShardsDrainedUntilNow(InMemoryShards):
    def ensure(self, shard: Shard) -> None:
        super().ensure(replace(shard, drained_through=shard.planned_through))


# E11: COMPLETED.


class CompletesOnlyAsItRecords(SettleMessage):
    def forget(self, message: Message, run: Run | None, standing: Standing | None) -> Settled:
        if standing is None:
            return Settled(why="gone", run=run)
        return super().forget(message, run, standing)


class CompletesAfterItDeletes(PlanCursors):
    def write(self, shard: int, cursors: Sequence[Cursor], work: Work, now: datetime) -> None:
        accounted, work.accounted = work.accounted, []
        super().write(shard, cursors, work, now)
        for cursor in accounted:
            self.schedules.complete(cursor.key, cursor.version)


PLANNING: dict[str, Variant] = {
    "never plans inline": Variant(
        rule="P1",
        parts=Parts(announced=NeverPlansInline),
        shows=frozenset({"STRICT LATE"}),
        seeds=(1, 6, 8),
    ),
    "reads before it writes": Variant(
        rule="P1",
        parts=Parts(announced=ReadsBeforeItWrites),
        shows=frozenset({"STRICT LATE"}),
        scenario=a_create_that_meets_a_planner_after_an_outage,
    ),
    "announces after it reads": Variant(
        rule="P1",
        parts=Parts(shards=AnnouncesAfterItReads),
        shows=frozenset({"STRICT LATE"}),
        scenario=a_planner_that_meets_a_create_after_an_outage,
    ),
    "pages named by their bucket": Variant(
        rule="P2",
        parts=Parts(outbox=PagesNamedByTheirBucket),
        shows=frozenset({"UNACCOUNTED"}),
        seeds=(26, 33, 36),
    ),
    "deletes cursors first": Variant(
        rule="P2",
        parts=Parts(plan_cursors=DeletesCursorsBeforeItPutsTheNext),
        shows=frozenset({"UNACCOUNTED"}),
        seeds=(2, 4, 9),
    ),
    "deletes cursors before the page": Variant(
        rule="P2",
        parts=Parts(plan_cursors=DeletesCursorsBeforeThePage),
        shows=frozenset({"UNACCOUNTED"}),
        seeds=(8, 14, 16),
    ),
    "closes buckets at once": Variant(
        rule="P4",
        parts=Parts(shards=ClosesBucketsAtOnce),
        shows=frozenset({"UNACCOUNTED"}),
        seeds=(1, 2, 10),
    ),
    "closes what it put off": Variant(
        rule="P4",
        parts=Parts(plan_shard=ClosesWhatItPutOff),
        shows=frozenset({"UNACCOUNTED"}),
        seeds=(64, 75),
    ),
    "windows beyond the next fire": Variant(
        rule="P10",
        parts=Parts(plan_cursors=WindowsReachBeyondTheNextFire),
        shows=frozenset({"UNACCOUNTED"}),
        scenario=clocks_that_go_forward_under_windows,
    ),
    "writes spans last": Variant(
        rule="E8",
        parts=Parts(plan_cursors=WritesSpansLast),
        shows=frozenset({"UNACCOUNTED"}),
        scenario=a_planner_that_dies_after_it_deleted,
    ),
    "no span of voided cursors": Variant(
        rule="E8",
        parts=Parts(ledger=LeavesNoSpanOfVoidedCursors),
        shows=frozenset({"UNACCOUNTED"}),
        seeds=(0, 9, 10),
    ),
    "makes the shard afterwards": Variant(
        rule="E10",
        parts=Parts(announced=MakesTheShardAfterwards),
        shows=frozenset({"UNACCOUNTED"}),
        scenario=a_writer_that_dies_after_its_transaction,
    ),
    "shards drained until now": Variant(
        rule="E10",
        parts=Parts(shards=MakesShardsDrainedUntilNow),
        shows=frozenset({"UNACCOUNTED", "NEVER COMPLETED"}),
        scenario=a_writer_that_dies_after_its_transaction,
    ),
    "completes only as it records": Variant(
        rule="E11",
        parts=Parts(settle_message=CompletesOnlyAsItRecords),
        shows=frozenset({"NEVER COMPLETED"}),
        scenario=an_executor_that_dies_after_the_last_outcome,
    ),
    "completes after it deletes": Variant(
        rule="E11",
        parts=Parts(plan_cursors=CompletesAfterItDeletes),
        shows=frozenset({"NEVER COMPLETED"}),
        scenario=a_planner_that_dies_after_it_deleted,
    ),
}
