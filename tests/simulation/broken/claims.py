"""Rules of claims and outcomes taken away: whose row it is, and who may still write it."""

from dataclasses import replace
from datetime import datetime, timedelta

from puntual.application.bury_message import BuryMessage
from puntual.application.execute_occurrence import ExecuteOccurrence
from puntual.application.settle_message import Settled, SettleMessage
from puntual.domain.judgement import Drop, Park, Standing, Verdict, before_head, buried, judge
from puntual.domain.message import Message
from puntual.domain.occurrence import RunKey
from puntual.domain.policies import Misfire
from puntual.domain.run import LEASE_MARGIN, Run
from puntual.domain.schedule import ScheduleKey, ScheduleVersion
from puntual.domain.target import DeliveryResult
from tests.fakes.in_memory_ledger import Row
from tests.simulation.scenarios.callbacks import a_fail_that_meets_a_complete
from tests.simulation.scenarios.claims import (
    a_claim_that_is_still_on_its_way,
    a_dead_letter_of_a_run_that_lives,
    a_lease_that_ends_later_than_it_says,
    a_retry_that_is_due_in_time_and_comes_too_late,
    a_verdict_that_is_older_than_its_clock,
    an_outcome_that_comes_too_late,
)
from tests.simulation.scheduler import FunctionKind
from tests.simulation.variant import Variant
from tests.simulation.watched import WatchedLedger, WatchedSchedules
from tests.simulation.world import Parts

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


# ADR 0019: the deadline of retries.


def judged_without_deadline(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    retry = replace(standing.policies.retry, deadline=None)
    policies = replace(standing.policies, retry=retry)
    version = replace(standing.version, policies=policies)
    return judge(message, row, replace(standing, version=version), now)


# P6: one run per scheduled time over versions.


class KeysWithTheVersion(WatchedLedger):
    def _row(self, key: RunKey) -> Row | None:
        return super()._row(self._own(key))

    def _put(self, key: RunKey, row: Row) -> None:
        super()._put(self._own(key) if isinstance(row, Run) else key, row)

    def _own(self, key: RunKey) -> RunKey:
        message = self.scheduler.handled
        if message is None or key != message.occurrence.key:
            return key
        return replace(key, run=f"{key.run}/v{message.occurrence.version}")


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


CLAIMS: dict[str, Variant] = {
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
        seeds=(9, 10),
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
    "callbacks whatever the state": Variant(
        rule="E1",
        parts=Parts(ledger=RecordsWhateverTheState),
        shows=frozenset({"TERMINAL ROW REOPENED"}),
        scenario=a_fail_that_meets_a_complete,
    ),
    "no deadline at a claim": Variant(
        rule="ADR 0019",
        parts=Parts(judge_by_head=judged_without_deadline),
        shows=frozenset({"STARTED BEHIND ITS DEADLINE"}),
        scenario=a_retry_that_is_due_in_time_and_comes_too_late,
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
}
