"""Each rule taken away in turn: a rule whose loss no seed and no scenario shows is not a rule."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from puntual.application.announced import Announced
from puntual.application.backfill_schedule import BackfillSchedule, Range
from puntual.application.bury_message import BuryMessage
from puntual.application.create_schedule import Request
from puntual.application.execute_occurrence import ExecuteOccurrence
from puntual.application.plan_cursors import NextFires, PlanCursors, Work
from puntual.application.plan_recoveries import PlanRecoveries
from puntual.application.plan_shard import Pass, PlanReport, PlanShard
from puntual.application.relay_page import RelayPage, RelayReport
from puntual.application.send_request import SendRequest
from puntual.application.settle_message import Settled, SettleMessage
from puntual.application.take_callback import TakeCallback
from puntual.domain.agenda import Cursor, cursor_at
from puntual.domain.callback import accepted
from puntual.domain.callback_token import Ticket
from puntual.domain.catch_up import CaughtUp
from puntual.domain.instant import MINUTE, minute_of, text_of
from puntual.domain.judgement import (
    Claim,
    Drop,
    End,
    EndHolder,
    Forget,
    Park,
    Recover,
    Standing,
    Verdict,
    Wait,
    before_head,
    buried,
    judge,
)
from puntual.domain.message import Message
from puntual.domain.occurrence import RunKey
from puntual.domain.page import Page
from puntual.domain.policies import CATCH_UP_LIMIT_MAX, Misfire
from puntual.domain.recovery import Granted, Slice
from puntual.domain.replay import why_not_replayable
from puntual.domain.run import LEASE_MARGIN, Run, RunState, RunSwap, Span, Unchanged
from puntual.domain.run_request import RunRequest, asked_run
from puntual.domain.schedule import Schedule, ScheduleKey, ScheduleState, ScheduleVersion
from puntual.domain.shard import Shard
from puntual.domain.slot import SlotSwap
from puntual.domain.target import Accepted, DeliveryResult
from puntual.domain.tenant import TenantId
from puntual.domain.zone_releases import FORMER_PLANNERS_GONE_AFTER, ReleasesInUse
from tests.fakes.in_memory_agenda import InMemoryAgenda
from tests.fakes.in_memory_budgets import InMemoryBudgets
from tests.fakes.in_memory_ledger import Row
from tests.fakes.in_memory_outbox import InMemoryOutbox
from tests.fakes.in_memory_shards import InMemoryShards
from tests.fakes.in_memory_zone_releases import InMemoryZoneReleases
from tests.gates import GateParts
from tests.simulation.broken_gates import (
    CountsOnlyItself,
    ForgetsWhatIsReserved,
    KeepsNoRoomForHeartbeats,
    KeepsNoRoomOfWhatIsTaken,
    NeverOpens,
    SharesThatNeverRunOut,
    TokensOfTheFutureUsedNow,
    judged_with_held_ones_late,
)
from tests.simulation.limit_scenarios import (
    a_dead_target_beside_one_that_lives,
    a_run_by_callback_beside_one_that_waits,
    an_executor_that_dies_with_its_share,
    more_at_once_than_may_run,
    more_fires_than_the_rate_allows,
)
from tests.simulation.outages import (
    a_pause_in_the_middle_of_a_recovery,
    a_planner_that_dies_before_its_recovery_cursor,
    an_edit_in_the_middle_of_a_recovery,
    executors_that_are_out_for_three_hours,
    planners_that_are_out_for_three_hours,
)
from tests.simulation.scenarios import (
    Scenario,
    a_backfill_of_what_a_pause_has_ended,
    a_backfill_while_fires_go_on,
    a_cancel_that_is_older_than_its_replay,
    a_claim_that_is_still_on_its_way,
    a_complete_after_the_lease_is_lost,
    a_complete_before_the_answer_is_recorded,
    a_create_that_meets_a_planner_after_an_outage,
    a_dead_letter_of_a_run_that_lives,
    a_dead_letter_of_an_earlier_round,
    a_deployment_at_the_end_of_a_run,
    a_duplicate_that_waits_for_what_has_ended,
    a_fail_that_meets_a_complete,
    a_former_planner_that_outlives_its_release,
    a_heartbeat_that_meets_the_end,
    a_lease_that_ends_later_than_it_says,
    a_page_that_is_deleted_late,
    a_planner_that_dies_after_it_deleted,
    a_planner_that_meets_a_create_after_an_outage,
    a_relay_that_dies_at_each_send,
    a_release_that_is_deployed_for_two_minutes,
    a_replay_after_a_cancel,
    a_replay_beyond_the_last_attempt,
    a_replay_in_its_backoff,
    a_replay_of_one_that_died,
    a_replay_that_is_asked_for_twice,
    a_request_to_end_that_meets_a_backoff,
    a_skip_behind_a_run_that_has_ended,
    a_target_that_is_asked_to_end,
    a_target_that_is_never_heard_of_again,
    a_verdict_that_is_older_than_its_clock,
    a_voided_one_that_waits,
    a_voided_run_in_its_backoff,
    a_waiting_one_that_is_superseded,
    a_writer_that_dies_after_its_transaction,
    an_executor_that_dies_after_the_last_outcome,
    an_outcome_that_comes_too_late,
    clocks_that_go_forward_under_windows,
    two_backfills_at_once,
    two_claims_of_one_slot,
)
from tests.simulation.scheduler import FunctionKind
from tests.simulation.watched import WatchedLedger, WatchedSchedules
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
    def _write(self, shard: int, cursors: Sequence[Cursor], work: Work, now: datetime) -> None:
        self.agenda.delete(shard, cursors)
        super()._write(shard, cursors, work, now)


class DeletesCursorsBeforeThePage(PlanCursors):
    def _write(self, shard: int, cursors: Sequence[Cursor], work: Work, now: datetime) -> None:
        following = work.next_cursors
        if following:
            self.agenda.put(shard, following)
        self.agenda.delete(shard, cursors)
        super()._write(shard, cursors, work, now)


# P3: versions end, messages ask.


class EndsTakenFromACache(WatchedSchedules):
    def version(self, key: ScheduleKey, version: int) -> ScheduleVersion | None:
        row = super().version(key, version)
        executes = self.scheduler.running.kind is FunctionKind.EXECUTOR
        return replace(row, until=None) if executes and row is not None else row


class PlannerDropsWhatWasDueBeforeTheEnd(WatchedSchedules):
    def version(self, key: ScheduleKey, version: int) -> ScheduleVersion | None:
        row = super().version(key, version)
        plans = self.scheduler.running.kind is FunctionKind.PLANNER
        return replace(row, until=row.effective_from) if plans and row is not None else row


def judged_without_voiding(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    head = replace(standing.head, min_valid_version=0)
    return judge(message, row, replace(standing, head=head), now)


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


# P5: claim and fence.


class SwapsWhateverIsThere(WatchedLedger):
    def swap(self, run: Run, *, seen: Run | None) -> bool:
        return super().swap(run, seen=self.read(run.occurrence.key) if seen else seen)


def judged_without_margin(message: Message, row: Run | None, now: datetime) -> Verdict | None:
    verdict = before_head(message, row, now)
    own = row is not None and row.occurrence.id == message.occurrence.id
    if own and isinstance(verdict, Park) and verdict.why == "live lease":
        free_at = verdict.until - LEASE_MARGIN
        return replace(verdict, until=free_at) if free_at > now else None
    return verdict


def judged_without_leases(message: Message, row: Run | None, now: datetime) -> Verdict | None:
    verdict = before_head(message, row, now)
    return None if isinstance(verdict, Park) and verdict.why == "live lease" else verdict


def judged_without_backoff(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    if row is not None and row.not_before is not None:
        row = replace(row, not_before=now)
    return judge(message, row, standing, now)


# P6: one run per scheduled time over versions.


class KeysWithTheVersion(WatchedLedger):
    def _row(self, key: RunKey) -> Row | None:
        return super()._row(self._own(key))

    def _put(self, key: RunKey, row: Row) -> None:
        super()._put(self._own(key) if isinstance(row, Run) else key, row)

    def _own(self, key: RunKey) -> RunKey:
        message = self.scheduler.running.message
        if message is None or key != message.occurrence.key:
            return key
        return replace(key, run=f"{key.run}/v{message.occurrence.version}")


# P7: a claim is always backed by one live message.


def judged_deleting_duplicates(message: Message, row: Run | None, now: datetime) -> Verdict | None:
    verdict = before_head(message, row, now)
    live = isinstance(verdict, Park) and verdict.why == "live lease"
    return Forget() if live else verdict


class ForgetsWhatTheQueueRefused(SettleMessage):
    def park(self, message: Message, until: datetime, *, why: str) -> Settled:
        return replace(super().park(message, until, why=why), keep=False)


class SendsNobodyToLookAtTheLease(ExecuteOccurrence):
    def _held(
        self, message: Message, run: Run, result: Accepted, standing: Standing, now: datetime
    ) -> Settled | None:
        completion = standing.policies.completion

        def taken(row: Run, _: datetime) -> Run:
            return accepted(row, completion, detail=result.detail, now=now)

        held = self.settle_message.rewrite(run, taken)
        return Settled(why=f"accepted {message.lane}", run=held) if held else None


class DeletesThePageBeforeItSends(RelayPage):
    def __call__(self, page: Page) -> RelayReport:
        self.outbox.delete(page)
        return super().__call__(page)


class DeletesThePageThoughRefused(RelayPage):
    def __call__(self, page: Page) -> RelayReport:
        report = super().__call__(page)
        self.outbox.delete(page)
        return replace(report, refused=0)


# P8: recovery has its own cursor, and its own lane.


class RecoveriesDieOnAnEdit(PlanRecoveries):
    def _slice(
        self, cursor: Cursor, head: Schedule | None, memo: NextFires, now: datetime, at_most: int
    ) -> Slice:
        found = super()._slice(cursor, head, memo, now, at_most)
        if head is None or head.version == cursor.version or found.voided:
            return found
        return replace(found, parts=CaughtUp(None, None, None), fires=())


class RecoveriesSurviveAPause(PlanRecoveries):
    def _slice(
        self, cursor: Cursor, head: Schedule | None, memo: NextFires, now: datetime, at_most: int
    ) -> Slice:
        valid = None if head is None else replace(head, min_valid_version=0)
        return super()._slice(cursor, valid, memo, now, at_most)


class NextCursorsWaitForTheRecovery(PlanCursors):
    def _write(self, shard: int, cursors: Sequence[Cursor], work: Work, now: datetime) -> None:
        if work.recoveries:
            wait = timedelta(minutes=15)
            work.next_cursors = [
                replace(cursor, available_at=max(cursor.available_at, now + wait))
                for cursor in work.next_cursors
            ]
        super()._write(shard, cursors, work, now)


class NextCursorsComeBeforeTheRecovery(PlanCursors):
    def _write(self, shard: int, cursors: Sequence[Cursor], work: Work, now: datetime) -> None:
        if work.next_cursors:
            self.agenda.put(shard, work.next_cursors)
        super()._write(shard, cursors, work, now)


def judged_without_a_limit(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    policies = standing.version.policies
    misfire = replace(policies.misfire, limit=CATCH_UP_LIMIT_MAX)
    version = replace(standing.version, policies=replace(policies, misfire=misfire))
    return judge(message, row, replace(standing, version=version), now)


def judged_staying_in_their_lane(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    verdict = judge(message, row, standing, now)
    if not isinstance(verdict, Recover):
        return verdict
    return judge(replace(message, held_until=now), row, standing, now)


def judged_whoever_comes_first(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    verdict = judge(message, row, standing, now)
    return replace(verdict, until=None) if isinstance(verdict, Recover) else verdict


# P9: know your own write; a batch is done when its rest is.


class LedgerForgetsItsWrites(WatchedLedger):
    def _is_own(self, row: Run | None, run: Run) -> bool:  # noqa: ARG002 it forgets them
        return False


class SchedulesForgetTheirWrites(WatchedSchedules):
    def _is_own(self, version: ScheduleVersion) -> bool:  # noqa: ARG002 it forgets it
        return False


class LeavesTheRestUnprocessed(InMemoryAgenda):
    def put(self, shard: int, cursors: Sequence[Cursor]) -> None:
        super().put(shard, cursors[: max(1, len(cursors) - 1)])


# P10: a window ends before the next fire, and cursors rise.


class WindowsReachBeyondTheNextFire(PlanCursors):
    def _write(self, shard: int, cursors: Sequence[Cursor], work: Work, now: datetime) -> None:
        heads = self.schedules.heads([cursor.key for cursor in work.next_cursors])
        work.next_cursors = [_unclipped(cursor, heads[cursor.key]) for cursor in work.next_cursors]
        super()._write(shard, cursors, work, now)


def _unclipped(cursor: Cursor, head: Schedule) -> Cursor:
    last_fire = replace(head.rule, end_at=cursor.scheduled_for)
    fires = replace(head.fires, version=cursor.version, rule=last_fire)
    return cursor_at(cursor.scheduled_for, fires)


# E1: outcomes.


class RecordsWhateverTheState(WatchedLedger):
    def record(self, run: Run) -> bool:
        row = self.read(run.occurrence.key)
        same = row is not None and row.occurrence.id == run.occurrence.id
        if row is not None and same and row.attempt == run.attempt:
            self._put(run.occurrence.key, run)
            return True
        return super().record(run)


class DeletesAfterALostRace(ExecuteOccurrence):
    def _record(
        self,
        message: Message,
        run: Run,
        result: DeliveryResult,
        standing: Standing,
        now: datetime,
    ) -> Settled | None:
        return super()._record(message, run, result, standing, now) or Settled(why="lost")


class RaisesLeasesOverWhateverIsThere(WatchedLedger):
    """The record of a 202, and a heartbeat."""

    def swap(self, run: Run, *, seen: Run | None) -> bool:
        if seen is not None and run.runs_attempt(seen.occurrence, seen.attempt):
            seen = self.read(run.occurrence.key)
        return super().swap(run, seen=seen)


class TakesTheTokenOfAnyAttempt(TakeCallback):
    def ticket(self, token: str) -> Ticket:
        ticket = super().ticket(token)
        row = self.settle_message.ledger.read(ticket.occurrence.key)
        return ticket if row is None else replace(ticket, attempt=row.attempt)


# E2: a replay.


class ReopensWithoutThePage(WatchedLedger):
    """Two writes instead of one transaction, and it dies between them."""

    def reopen(self, run: Run, *, seen: Run, page: Page) -> bool:
        outbox, self.outbox = self.outbox, InMemoryOutbox()
        try:
            return super().reopen(run, seen=seen, page=page)
        finally:
            self.outbox = outbox


class PutsThePageAlone(WatchedLedger):
    """The row stays as it was, and the message alone is to open the round."""

    def reopen(self, run: Run, *, seen: Run, page: Page) -> bool:
        assert self.read(seen.occurrence.key) is not None
        self.outbox.put_over(page)
        self.record_of_writes.replayed(run, "", self.scheduler.now)
        return True


class ForgetsWhoAuthorised(WatchedLedger):
    """Only the message knows it."""

    def _put(self, key: RunKey, row: Row) -> None:
        if isinstance(row, Run) and row.round:
            row = replace(row, authorised_version=None)
        super()._put(key, row)


class ForgetsTheRequest(WatchedLedger):
    def _put(self, key: RunKey, row: Row) -> None:
        super()._put(key, replace(row, requests=()) if isinstance(row, Run) else row)


class PagesWithoutTheRound(InMemoryOutbox):
    def put_over(self, page: Page) -> None:
        super().put_over(_of_no_round(page))

    def delete(self, page: Page) -> None:
        super().delete(_of_no_round(page))


def _of_no_round(page: Page) -> Page:
    """Give a page that is sent as it was meant, since its round is on its messages' rows."""
    return replace(page, planned=tuple(replace(each, round=0) for each in page.planned))


class BuriesEarlierRounds(BuryMessage):
    def __call__(self, message: Message) -> Settled:
        return super().__call__(replace(message, round=20))


class SwapsWhatHasTheSameAttempt(WatchedLedger):
    """The round is no part of the condition."""

    def swap(self, run: Run, *, seen: Run | None) -> bool:
        row = self.read(run.occurrence.key)
        same = (
            seen is not None
            and row is not None
            and (row.state, row.attempt) == (seen.state, seen.attempt)
        )
        return super().swap(run, seen=row if same else seen)


def replayable_though_canceled(run: Run, head: Schedule, *, force: bool) -> str | None:
    active = replace(head, state=ScheduleState.ACTIVE)
    return why_not_replayable(run, active, force=force)


def replayable_without_end(run: Run, head: Schedule, *, force: bool) -> str | None:
    return why_not_replayable(replace(run, attempt=0), head, force=force)


# E3: ownership.


def judged_without_ownership(message: Message, row: Run | None, now: datetime) -> Verdict | None:
    verdict = before_head(message, row, now)
    foreign = isinstance(verdict, Park) and verdict.why == "row of another id"
    return None if foreign else verdict


# E4: undeliverable judges as the executor does.


class BuriesWithoutJudging(BuryMessage):
    def __call__(self, message: Message) -> Settled:
        desk = self.settle_message
        row = desk.ledger.read(message.occurrence.key)
        if row is not None and row.state.is_terminal:
            return desk.forget(message, row, None)
        dead = desk.signed(buried(message, row, desk.clock.now()))
        desk.ledger.swap(dead, seen=row)
        return desk.forget(message, dead, None)


# E5: MISSED at a claim.


def judged_without_lateness(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    policies = standing.version.policies
    never = replace(
        policies.misfire, policy=Misfire.FIRE_ONCE, after=timedelta(days=9), max_lateness=None
    )
    version = replace(standing.version, policies=replace(policies, misfire=never))
    return judge(message, row, replace(standing, version=version), now)


def judged_beyond_the_end(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    verdict = judge(message, row, standing, now)
    if isinstance(verdict, Drop) or row is not None:
        return verdict
    return judge(message, row, replace(standing, until=None), now)


def judged_by_a_later_clock(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    return judge(message, row, replace(standing, asked_at=now), now)


# E6: dropping.


class DropsAtFirstSight(SettleMessage):
    def _drop(self, message: Message, drop: Drop, standing: Standing | None) -> Settled:
        return super()._drop(replace(message, looks=1), drop, standing)


# E7: the slot.


class ClaimsBesideTheSlot(WatchedLedger):
    """Two writes instead of one transaction: the claim asks for its row alone."""

    def swap_with_slot(self, slot: SlotSwap, *runs: RunSwap | Unchanged) -> bool:
        match runs:
            case (RunSwap(run=Run(state=RunState.RUNNING) as run, seen=seen),):
                if not self.swap(run, seen=seen):
                    return False
                self._put_slot(slot.slot)
                return True
            case _:
                return super().swap_with_slot(slot, *runs)


class ChecksNoSlotBeside(WatchedLedger):
    """A slot that is only to be as it was seen is not asked."""

    def swap_with_slot(self, slot: SlotSwap, *runs: RunSwap | Unchanged) -> bool:
        if slot.changes:
            return super().swap_with_slot(slot, *runs)
        current = self.slot(slot.seen.key)
        as_now = SlotSwap(slot=replace(current, write_id=slot.slot.write_id), seen=current)
        return super().swap_with_slot(as_now, *runs)


class ChecksNoRowBeside(WatchedLedger):
    """A row that is only to be as it was seen is not asked."""

    def swap_with_slot(self, slot: SlotSwap, *runs: RunSwap | Unchanged) -> bool:
        return super().swap_with_slot(slot, *(run for run in runs if isinstance(run, RunSwap)))


class RecordsOverARequest(WatchedLedger):
    def _takes_outcome(self, row: Run | None, run: Run) -> bool:
        asked = None if row is None else replace(row, cancel_requested=False)
        return super()._takes_outcome(asked, run)


class EndsWithoutFreeing(WatchedLedger):
    def record_and_free(self, run: Run) -> bool:
        return self.record(run)


def judged_with_retries_beside_the_slot(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    if row is not None and not row.state.is_terminal:
        standing = replace(standing, occupancy=None)
    return judge(message, row, standing, now)


def judged_keeping_the_waiting_place(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    verdict = judge(message, row, standing, now)
    return replace(verdict, slot=None) if isinstance(verdict, Drop | Forget) else verdict


def judged_with_holders_behind_waiters(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    occupancy = standing.occupancy
    if occupancy is not None and occupancy.slot.waiting is not None:
        slot = occupancy.slot.without(message.occurrence.id)
        if not standing.has_waiting(message):
            standing = replace(standing, occupancy=replace(occupancy, slot=slot))
    return judge(message, row, standing, now)


def judged_behind_voided_holders(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    verdict = judge(message, row, standing, now)
    if isinstance(verdict, EndHolder) and verdict.holder.run.reason.startswith("voided"):
        head = replace(standing.head, min_valid_version=0)
        return judge(message, row, replace(standing, head=head), now)
    return verdict


def judged_behind_voided_waiters(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    verdict = judge(message, row, standing, now)
    if isinstance(verdict, Claim | Wait):
        head = replace(standing.head, min_valid_version=0)
        return judge(message, row, replace(standing, head=head), now)
    return verdict


def judged_with_waiting_ones_late(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    verdict = judge(message, row, standing, now)
    if row is None and standing.has_waiting(message) and isinstance(verdict, Claim | Wait | Park):
        late = judge(message, row, replace(standing, occupancy=None), now)
        if isinstance(late, End):
            assert standing.occupancy is not None
            slot = standing.occupancy.slot
            left = SlotSwap(slot=slot.without(message.occurrence.id), seen=slot)
            return replace(late, slot=left)
    return verdict


class TellsNobodyToEnd(TakeCallback):
    def heartbeat(self, ticket: Ticket) -> Run:
        return replace(super().heartbeat(ticket), cancel_requested=False)


# E8: spans are written first, and voided cursors leave one.


class WritesSpansLast(PlanCursors):
    def _write(self, shard: int, cursors: Sequence[Cursor], work: Work, now: datetime) -> None:
        spans, work.spans = work.spans, []
        super()._write(shard, cursors, work, now)
        if spans:
            self.ledger.put_spans(spans)


class LeavesNoSpanOfVoidedCursors(WatchedLedger):
    def put_spans(self, spans: Sequence[Span]) -> None:
        super().put_spans([span for span in spans if span.state is RunState.MISSED])


# E9: slices in their minute, for tokens.


class PlansRecoveriesEarly(PlanShard):
    def _recover(self, at: Pass, report: PlanReport) -> None:
        first = minute_of(self.clock.now())
        at.recovering += [first + number * MINUTE for number in range(1, 10)]
        super()._recover(at, report)


class RecoversWithoutTokens(PlanRecoveries):
    def _granted(
        self, slices: Sequence[Slice], rates: Mapping[TenantId, int]
    ) -> dict[Cursor, Granted]:
        granted = super()._granted(slices, rates)
        return {
            found.owner.cursor: replace(
                granted[found.owner.cursor], count=len(found.fires), every=timedelta(0)
            )
            for found in slices
        }


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
    def _write(self, shard: int, cursors: Sequence[Cursor], work: Work, now: datetime) -> None:
        accounted, work.accounted = work.accounted, []
        super()._write(shard, cursors, work, now)
        for cursor in accounted:
            self.schedules.complete(cursor.key, cursor.version)


# ADR 0013: what cursors may follow after new zone data.


class WaitsForNoFormerPlanner(InMemoryZoneReleases):
    def in_use(self) -> ReleasesInUse | None:
        """Say that it was all long ago."""
        row = super().in_use()
        return row and replace(row, since=row.since - FORMER_PLANNERS_GONE_AFTER)

    def swap(self, in_use: ReleasesInUse, *, seen: ReleasesInUse | None) -> bool:
        if seen is not None:
            seen = replace(seen, since=seen.since + FORMER_PLANNERS_GONE_AFTER)
        return super().swap(in_use, seen=seen)


class RecordsASingleRelease(InMemoryZoneReleases):
    """The one that schedules were last planned anew with."""

    def swap(self, in_use: ReleasesInUse, *, seen: ReleasesInUse | None) -> bool:
        return bool(in_use.former) or super().swap(in_use, seen=seen)


class SwapsWhateverIsInUse(InMemoryZoneReleases):
    def swap(self, in_use: ReleasesInUse, *, seen: ReleasesInUse | None) -> bool:
        self.row = seen
        return super().swap(in_use, seen=seen)


# What is asked for beside the rules.


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A broken world: the rule that it breaks, what must show it, and the failures that do.

    `seeds` are the first to be tried; where seeds show it too rarely, a scenario does.
    """

    rule: str
    parts: Parts
    shows: frozenset[str]
    seeds: tuple[int, ...] = ()
    scenario: Scenario | None = None


VARIANTS: dict[str, Variant] = {
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
    "ends taken from a cache": Variant(
        rule="P3",
        parts=Parts(schedules=EndsTakenFromACache),
        shows=frozenset({"RAN AFTER UNTIL"}),
        seeds=(1, 2, 4),
    ),
    "drops what was due": Variant(
        rule="P3",
        parts=Parts(schedules=PlannerDropsWhatWasDueBeforeTheEnd),
        shows=frozenset({"UNACCOUNTED"}),
        seeds=(0, 9, 10),
    ),
    "no voiding": Variant(
        rule="P3",
        parts=Parts(judge_by_head=judged_without_voiding),
        shows=frozenset({"STARTED AFTER PAUSE"}),
        seeds=(1, 6, 7),
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
        seeds=(0, 10, 16),
    ),
    "swaps whatever is there": Variant(
        rule="P5",
        parts=Parts(ledger=SwapsWhateverIsThere),
        shows=frozenset({"ATTEMPT NOT RAISED", "TERMINAL ROW REOPENED", "TWO LIVE LEASES"}),
        seeds=(1, 5, 19),
    ),
    "no margin": Variant(
        rule="P5",
        parts=Parts(judge_by_row=judged_without_margin),
        shows=frozenset({"TWO LIVE LEASES"}),
        scenario=a_lease_that_ends_later_than_it_says,
    ),
    "no leases": Variant(
        rule="P5",
        parts=Parts(judge_by_row=judged_without_leases),
        shows=frozenset({"TWO LIVE LEASES"}),
        seeds=(0, 1, 2),
    ),
    "no backoff": Variant(
        rule="P5",
        parts=Parts(judge_by_head=judged_without_backoff),
        shows=frozenset({"BACKOFF NOT HONOURED"}),
        seeds=(1, 14, 17),
    ),
    "keys with the version": Variant(
        rule="P6",
        parts=Parts(ledger=KeysWithTheVersion),
        shows=frozenset({"TWO EFFECTS"}),
        seeds=(7, 11, 18),
    ),
    "deletes duplicates": Variant(
        rule="P7",
        parts=Parts(judge_by_row=judged_deleting_duplicates),
        shows=frozenset({"STUCK RUNNING", "STUCK RETRY_WAIT"}),
        seeds=(2, 5, 12),
    ),
    "forgets what was refused": Variant(
        rule="P7",
        parts=Parts(settle_message=ForgetsWhatTheQueueRefused),
        shows=frozenset({"STUCK RETRY_WAIT", "UNACCOUNTED"}),
        seeds=(6, 14, 18),
    ),
    "nobody looks at the lease": Variant(
        rule="P7",
        parts=Parts(execute=SendsNobodyToLookAtTheLease),
        shows=frozenset({"STUCK RUNNING"}),
        scenario=a_target_that_is_never_heard_of_again,
    ),
    "deletes the page first": Variant(
        rule="P7",
        parts=Parts(relay_page=DeletesThePageBeforeItSends),
        shows=frozenset({"UNACCOUNTED"}),
        scenario=a_relay_that_dies_at_each_send,
    ),
    "deletes the page though refused": Variant(
        rule="P7",
        parts=Parts(relay_page=DeletesThePageThoughRefused),
        shows=frozenset({"UNACCOUNTED"}),
        seeds=(8, 14, 26),
    ),
    "ledger forgets its writes": Variant(
        rule="P9",
        parts=Parts(ledger=LedgerForgetsItsWrites),
        shows=frozenset({"OWN WRITE TAKEN FOR LOST"}),
        seeds=(0, 1, 4),
    ),
    "schedules forget their writes": Variant(
        rule="P9",
        parts=Parts(schedules=SchedulesForgetTheirWrites),
        shows=frozenset({"OWN WRITE TAKEN FOR LOST"}),
        seeds=(0, 4, 5),
    ),
    "leaves the rest unprocessed": Variant(
        rule="P9",
        parts=Parts(agenda=LeavesTheRestUnprocessed),
        shows=frozenset({"UNACCOUNTED"}),
        seeds=(1, 4, 6),
    ),
    "windows beyond the next fire": Variant(
        rule="P10",
        parts=Parts(plan_cursors=WindowsReachBeyondTheNextFire),
        shows=frozenset({"UNACCOUNTED"}),
        scenario=clocks_that_go_forward_under_windows,
    ),
    "records whatever the state": Variant(
        rule="E1",
        parts=Parts(ledger=RecordsWhateverTheState),
        shows=frozenset({"TERMINAL ROW REOPENED"}),
        seeds=(0, 1, 4),
    ),
    "deletes after a lost race": Variant(
        rule="E1",
        parts=Parts(execute=DeletesAfterALostRace),
        shows=frozenset({"STUCK RUNNING", "STUCK RETRY_WAIT"}),
        scenario=an_outcome_that_comes_too_late,
    ),
    "202 over a complete": Variant(
        rule="E1",
        parts=Parts(ledger=RaisesLeasesOverWhateverIsThere),
        shows=frozenset({"TERMINAL ROW REOPENED"}),
        scenario=a_complete_before_the_answer_is_recorded,
    ),
    "heartbeats that revive": Variant(
        rule="E1",
        parts=Parts(ledger=RaisesLeasesOverWhateverIsThere),
        shows=frozenset({"TERMINAL ROW REOPENED"}),
        scenario=a_heartbeat_that_meets_the_end,
    ),
    "callbacks whatever the state": Variant(
        rule="E1",
        parts=Parts(ledger=RecordsWhateverTheState),
        shows=frozenset({"TERMINAL ROW REOPENED"}),
        scenario=a_fail_that_meets_a_complete,
    ),
    "stale tokens": Variant(
        rule="E1",
        parts=Parts(take_callback=TakesTheTokenOfAnyAttempt),
        shows=frozenset({"STALE CALLBACK TAKEN"}),
        scenario=a_complete_after_the_lease_is_lost,
    ),
    "reopens without the page": Variant(
        rule="E2",
        parts=Parts(ledger=ReopensWithoutThePage),
        shows=frozenset({"STUCK RETRY_WAIT"}),
        scenario=a_replay_of_one_that_died,
    ),
    "puts the page alone": Variant(
        rule="E2",
        parts=Parts(ledger=PutsThePageAlone),
        shows=frozenset({"REPLAY NEVER RAN"}),
        scenario=a_replay_of_one_that_died,
    ),
    "forgets who authorised": Variant(
        rule="E2",
        parts=Parts(ledger=ForgetsWhoAuthorised),
        shows=frozenset({"REPLAY CANCELED WRONGLY"}),
        scenario=a_replay_in_its_backoff,
    ),
    "forgets the request": Variant(
        rule="E2",
        parts=Parts(ledger=ForgetsTheRequest),
        shows=frozenset({"REPLAYED TWICE"}),
        scenario=a_replay_that_is_asked_for_twice,
    ),
    "pages without the round": Variant(
        rule="E2",
        parts=Parts(outbox=PagesWithoutTheRound),
        shows=frozenset({"STUCK RETRY_WAIT"}),
        scenario=a_page_that_is_deleted_late,
    ),
    "buries earlier rounds": Variant(
        rule="E2",
        parts=Parts(bury=BuriesEarlierRounds),
        shows=frozenset({"REPLAY DEAD WITHOUT A FAULT"}),
        scenario=a_dead_letter_of_an_earlier_round,
    ),
    "swaps what has the same attempt": Variant(
        rule="E2",
        parts=Parts(ledger=SwapsWhatHasTheSameAttempt),
        shows=frozenset({"ROUND CHANGED"}),
        scenario=a_cancel_that_is_older_than_its_replay,
    ),
    "replays though canceled": Variant(
        rule="E2",
        parts=Parts(why_not_replayable=replayable_though_canceled),
        shows=frozenset({"REPLAYED THOUGH CANCELED"}),
        scenario=a_replay_after_a_cancel,
    ),
    "replays without end": Variant(
        rule="E2",
        parts=Parts(why_not_replayable=replayable_without_end),
        shows=frozenset({"REPLAYED BEYOND THE LAST ATTEMPT"}),
        scenario=a_replay_beyond_the_last_attempt,
    ),
    "no ownership": Variant(
        rule="E3",
        parts=Parts(judge_by_row=judged_without_ownership),
        shows=frozenset({"WRITTEN FOR ANOTHER"}),
        seeds=(5, 6, 10),
    ),
    "buries without judging": Variant(
        rule="E4",
        parts=Parts(bury=BuriesWithoutJudging),
        shows=frozenset({"LIVE RUN DEAD BY ANOTHER", "VOIDED RUN DEAD"}),
        scenario=a_dead_letter_of_a_run_that_lives,
    ),
    "no lateness": Variant(
        rule="E5",
        parts=Parts(judge_by_head=judged_without_lateness),
        shows=frozenset({"RAN TOO LATE"}),
        seeds=(0, 2, 6),
    ),
    "last fire beyond the end": Variant(
        rule="E5",
        parts=Parts(judge_by_head=judged_beyond_the_end),
        shows=frozenset({"FIRE_ONCE NEVER FIRED"}),
        seeds=(7, 8, 16),
    ),
    "late by a later clock": Variant(
        rule="E5",
        parts=Parts(judge_by_head=judged_by_a_later_clock),
        shows=frozenset({"LIVE RUN MISSED BY ANOTHER"}),
        scenario=a_verdict_that_is_older_than_its_clock,
    ),
    "drops at first sight": Variant(
        rule="E6",
        parts=Parts(settle_message=DropsAtFirstSight),
        shows=frozenset({"STUCK RUNNING"}),
        scenario=a_claim_that_is_still_on_its_way,
    ),
    "claims beside the slot": Variant(
        rule="E7",
        parts=Parts(ledger=ClaimsBesideTheSlot),
        shows=frozenset({"OVERLAP"}),
        scenario=two_claims_of_one_slot,
    ),
    "checks no slot beside": Variant(
        rule="E7",
        parts=Parts(ledger=ChecksNoSlotBeside),
        shows=frozenset({"SKIPPED BEHIND NOBODY"}),
        scenario=a_skip_behind_a_run_that_has_ended,
    ),
    "checks no row beside": Variant(
        rule="E7",
        parts=Parts(ledger=ChecksNoRowBeside),
        shows=frozenset({"WAITS FOR EVER"}),
        scenario=a_duplicate_that_waits_for_what_has_ended,
    ),
    "records over a request": Variant(
        rule="E7",
        parts=Parts(ledger=RecordsOverARequest),
        shows=frozenset({"REQUEST TO END FORGOTTEN"}),
        scenario=a_request_to_end_that_meets_a_backoff,
    ),
    "retries beside the slot": Variant(
        rule="E7",
        parts=Parts(judge_by_head=judged_with_retries_beside_the_slot),
        shows=frozenset({"SLOT HELD FOR EVER", "OVERLAP"}),
        seeds=(19, 24, 26),
    ),
    "ends without freeing": Variant(
        rule="E7",
        parts=Parts(ledger=EndsWithoutFreeing),
        shows=frozenset({"SLOT HELD FOR EVER"}),
        seeds=(0, 1, 4),
    ),
    "keeps the waiting place": Variant(
        rule="E7",
        parts=Parts(judge_by_head=judged_keeping_the_waiting_place),
        shows=frozenset({"WAITS FOR EVER"}),
        scenario=a_waiting_one_that_is_superseded,
    ),
    "holders behind waiters": Variant(
        rule="E7",
        parts=Parts(judge_by_head=judged_with_holders_behind_waiters),
        shows=frozenset({"HOLDER SKIPPED"}),
        seeds=(4, 12, 25),
    ),
    "behind voided holders": Variant(
        rule="E7",
        parts=Parts(judge_by_head=judged_behind_voided_holders),
        shows=frozenset({"SKIPPED BEHIND A VOIDED RUN"}),
        scenario=a_voided_run_in_its_backoff,
    ),
    "behind voided waiters": Variant(
        rule="E7",
        parts=Parts(judge_by_head=judged_behind_voided_waiters),
        shows=frozenset({"SKIPPED BEHIND A VOIDED RUN"}),
        scenario=a_voided_one_that_waits,
    ),
    "waiting ones late": Variant(
        rule="E7",
        parts=Parts(judge_by_head=judged_with_waiting_ones_late),
        shows=frozenset({"WAITING ONE MISSED"}),
        seeds=(1, 12, 25),
    ),
    "recoveries die on an edit": Variant(
        rule="P8",
        parts=Parts(plan_recoveries=RecoveriesDieOnAnEdit),
        shows=frozenset({"UNACCOUNTED"}),
        scenario=an_edit_in_the_middle_of_a_recovery,
    ),
    "recoveries survive a pause": Variant(
        rule="E8",
        parts=Parts(plan_recoveries=RecoveriesSurviveAPause),
        shows=frozenset({"RECOVERED AFTER A PAUSE"}),
        scenario=a_pause_in_the_middle_of_a_recovery,
    ),
    "next cursors wait for the recovery": Variant(
        rule="P8",
        parts=Parts(plan_cursors=NextCursorsWaitForTheRecovery),
        shows=frozenset({"STRICT LATE"}),
        scenario=planners_that_are_out_for_three_hours,
    ),
    "next cursors before the recovery": Variant(
        rule="P8",
        parts=Parts(plan_cursors=NextCursorsComeBeforeTheRecovery),
        shows=frozenset({"UNACCOUNTED"}),
        scenario=a_planner_that_dies_before_its_recovery_cursor,
    ),
    "no limit at a claim": Variant(
        rule="E5",
        parts=Parts(judge_by_head=judged_without_a_limit),
        shows=frozenset({"WRONG ONES RAN"}),
        scenario=executors_that_are_out_for_three_hours,
    ),
    "late ones stay in their lane": Variant(
        rule="P8",
        parts=Parts(judge_by_head=judged_staying_in_their_lane),
        shows=frozenset({"LATE RUN IN A FAST LANE"}),
        scenario=executors_that_are_out_for_three_hours,
    ),
    "whoever comes first": Variant(
        rule="P8",
        parts=Parts(judge_by_head=judged_whoever_comes_first),
        shows=frozenset({"NOT THE OLDEST FIRST"}),
        scenario=executors_that_are_out_for_three_hours,
    ),
    "recoveries planned early": Variant(
        rule="E9",
        parts=Parts(plan_shard=PlansRecoveriesEarly),
        shows=frozenset({"UNACCOUNTED"}),
        scenario=planners_that_are_out_for_three_hours,
    ),
    "recoveries without tokens": Variant(
        rule="E9",
        parts=Parts(plan_recoveries=RecoversWithoutTokens),
        shows=frozenset({"CAUGHT UP TOO FAST"}),
        scenario=planners_that_are_out_for_three_hours,
    ),
    "tells nobody to end": Variant(
        rule="E7",
        parts=Parts(take_callback=TellsNobodyToEnd),
        shows=frozenset({"REQUEST TO END NOT TOLD"}),
        scenario=a_target_that_is_asked_to_end,
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
    "waits for no former planner": Variant(
        rule="ADR 0013",
        parts=Parts(zone_releases=WaitsForNoFormerPlanner),
        shows=frozenset({"UNACCOUNTED"}),
        scenario=a_former_planner_that_outlives_its_release,
    ),
    "a single recorded release": Variant(
        rule="ADR 0013",
        parts=Parts(zone_releases=RecordsASingleRelease),
        shows=frozenset({"UNACCOUNTED"}),
        scenario=a_release_that_is_deployed_for_two_minutes,
    ),
    "swaps whatever is in use": Variant(
        rule="ADR 0013",
        parts=Parts(zone_releases=SwapsWhateverIsInUse),
        shows=frozenset({"UNACCOUNTED"}),
        scenario=a_deployment_at_the_end_of_a_run,
    ),
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
    "no breaker": Variant(
        rule="ADR 0021",
        parts=Parts(gates=GateParts(breakers=NeverOpens)),
        shows=frozenset({"DEAD TARGET EATS CAPACITY"}),
        scenario=a_dead_target_beside_one_that_lives,
    ),
    "shares that never run out": Variant(
        rule="ADR 0021",
        parts=Parts(gates=GateParts(running=SharesThatNeverRunOut)),
        shows=frozenset({"UNACCOUNTED", "STUCK RUNNING", "MESSAGES LEFT"}),
        scenario=an_executor_that_dies_with_its_share,
    ),
    "each executor counts only itself": Variant(
        rule="ADR 0021",
        parts=Parts(gates=GateParts(running=CountsOnlyItself)),
        shows=frozenset({"OVER RUNNING_MAX"}),
        scenario=more_at_once_than_may_run,
    ),
    "no room of what is taken": Variant(
        rule="ADR 0021",
        parts=Parts(gates=GateParts(admit=KeepsNoRoomOfWhatIsTaken)),
        shows=frozenset({"OVER RUNNING_MAX"}),
        scenario=a_run_by_callback_beside_one_that_waits,
    ),
    "no room for heartbeats": Variant(
        rule="ADR 0021",
        parts=Parts(gates=GateParts(rooms=KeepsNoRoomForHeartbeats)),
        shows=frozenset({"OVER RUNNING_MAX"}),
        scenario=a_run_by_callback_beside_one_that_waits,
    ),
    "tokens of the future used now": Variant(
        rule="ADR 0021",
        parts=Parts(gates=GateParts(tokens=TokensOfTheFutureUsedNow)),
        shows=frozenset({"TOO MANY FIRES"}),
        scenario=more_fires_than_the_rate_allows,
    ),
    "forgets what is reserved": Variant(
        rule="ADR 0021",
        parts=Parts(gates=GateParts(admit=ForgetsWhatIsReserved)),
        shows=frozenset({"UNACCOUNTED", "MESSAGES LEFT"}),
        scenario=more_fires_than_the_rate_allows,
    ),
    "held ones late": Variant(
        rule="ADR 0021",
        parts=Parts(judge_by_head=judged_with_held_ones_late),
        shows=frozenset({"HELD ONE MISSED"}),
        scenario=more_fires_than_the_rate_allows,
    ),
}
