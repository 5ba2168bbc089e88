"""Rules of runs that are asked for taken away."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from puntual.application.backfill_schedule import BackfillSchedule, Range
from puntual.application.send_request import SendRequest
from puntual.domain.agenda import cursor_at
from puntual.domain.judgement import Claim, End, Standing, Verdict, judge
from puntual.domain.message import Message
from puntual.domain.request import Request
from puntual.domain.run import Run, RunState
from puntual.domain.run_request import RunRequest, asked_run
from puntual.domain.schedule import ScheduleKey
from tests.fakes.in_memory_budgets import InMemoryBudgets
from tests.simulation.scenarios.requests import (
    a_backfill_of_what_a_pause_has_ended,
    a_backfill_while_fires_go_on,
    two_backfills_at_once,
)
from tests.simulation.variant import Variant
from tests.simulation.world import Parts


class SendsWithoutTheAuthorisedVersion(SendRequest):
    def _send(self, asked: RunRequest, now: datetime) -> None:
        shard = self.announced.shard(asked.key)
        for page in asked.pages(shard, written_at=now):
            planned = tuple(replace(each, authorised_version=None) for each in page.planned)
            self.outbox.put(replace(page, planned=planned))
            for each in planned:
                row = replace(asked_run(each), write_id=self.ids.new_id())
                self.ledger.swap(row, seen=None)


class RequestsWithoutAnIdOfTheirOwn(SendRequest):
    def id_of(self, request: Request | None) -> str:
        return super().id_of(request) if request else "asked"


class PutsTheRowBeforeThePage(SendRequest):
    def _send(self, asked: RunRequest, now: datetime) -> None:
        for planned in asked.planned:
            row = replace(asked_run(planned), write_id=self.ids.new_id())
            self.ledger.swap(row, seen=None)
        super()._send(asked, now)


class AsksAnewEachTime(SendRequest):
    def before(self, key: ScheduleKey, request: Request | None) -> RunRequest | None:  # noqa: ARG002 it does not look
        return None

    def __call__(self, asked: RunRequest, request: Request | None) -> RunRequest:  # noqa: ARG002 it remembers none
        return super().__call__(asked, None)


class BackfillsWhatRan(BackfillSchedule):
    def __call__(self, key: ScheduleKey, wanted: Range, **how: Any) -> RunRequest:
        return super().__call__(key, replace(wanted, only_missing=False), **how)


class BackfillsFromTheCursor(BackfillSchedule):
    """Takes the schedule's own cursor back to where the backfill begins."""

    def __call__(self, key: ScheduleKey, wanted: Range, **how: Any) -> RunRequest:
        asked = super().__call__(key, wanted, **how)
        head, shard = self.send.schedules.head(key), self.send.announced.shard(key)
        row = self.send.announced.shards.get(shard)
        live = head and row and head.rule.next_fire(row.planned_through)
        if head and live and asked.fires:
            agenda = self.send.announced.plan_cursors.agenda
            agenda.put(shard, [cursor_at(asked.fires[0].scheduled_for, head.fires)])
            agenda.delete(shard, [cursor_at(live, head.fires)])
        return asked


class ReservesNothing(BackfillSchedule):
    def __call__(self, key: ScheduleKey, wanted: Range, **how: Any) -> RunRequest:
        undrawn = replace(self.draw, budgets=InMemoryBudgets())
        return BackfillSchedule.__call__(replace(self, draw=undrawn), key, wanted, **how)


def judged_with_misfire_for_all(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    verdict = judge(message, row, standing, now)
    late = now - message.available_at > standing.policies.misfire.after
    if not isinstance(verdict, Claim) or message.occurrence.is_regular or not late:
        return verdict
    if verdict.run.attempt > 1:
        return verdict
    missed = replace(verdict.run, state=RunState.MISSED, attempt=0, lease_until=None)
    return End(run=missed, slot=verdict.slot and replace(verdict.slot, slot=verdict.slot.seen))


REQUESTS: dict[str, Variant] = {
    "asked without authorised_version": Variant(
        rule="P3",
        parts=Parts(send_request=SendsWithoutTheAuthorisedVersion),
        shows=frozenset({"ASKED RUN CANCELED"}),
        scenario=a_backfill_of_what_a_pause_has_ended,
    ),
    "misfire for asked runs": Variant(
        rule="E5",
        parts=Parts(judge_by_head=judged_with_misfire_for_all),
        shows=frozenset({"ASKED RUN MISSED"}),
    ),
    "requests without an id": Variant(
        rule="ADR 0018",
        parts=Parts(send_request=RequestsWithoutAnIdOfTheirOwn),
        shows=frozenset({"TWO REQUESTS ARE ONE"}),
    ),
    "a row before its page": Variant(
        rule="ADR 0018",
        parts=Parts(send_request=PutsTheRowBeforeThePage),
        shows=frozenset({"STUCK RETRY_WAIT"}),
        seeds=(23, 24, 33),
    ),
    "a key that nobody remembers": Variant(
        rule="ADR 0018",
        parts=Parts(send_request=AsksAnewEachTime),
        shows=frozenset({"TWO ANSWERS TO ONE KEY"}),
    ),
    "backfills what ran": Variant(
        rule="ADR 0018",
        parts=Parts(backfill=BackfillsWhatRan),
        shows=frozenset({"BACKFILL REPEATED A RUN"}),
    ),
    "backfills move the cursor": Variant(
        rule="ADR 0018",
        parts=Parts(backfill=BackfillsFromTheCursor),
        shows=frozenset({"UNACCOUNTED", "NEVER COMPLETED"}),
        scenario=a_backfill_while_fires_go_on,
    ),
    "backfills at any rate": Variant(
        rule="ADR 0018",
        parts=Parts(backfill=ReservesNothing),
        shows=frozenset({"OVER THE RATE"}),
        scenario=two_backfills_at_once,
    ),
}
