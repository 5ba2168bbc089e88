"""Rules of catching up taken away."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from puntual.application.plan_cursors import NextFires, PlanCursors, Work
from puntual.application.plan_recoveries import PlanRecoveries
from puntual.application.plan_shard import Pass, PlanReport, PlanShard
from puntual.domain.agenda import Cursor
from puntual.domain.catch_up import CaughtUp
from puntual.domain.instant import MINUTE, minute_of
from puntual.domain.judgement import Recover, Standing, Verdict, judge
from puntual.domain.message import Message
from puntual.domain.policies import CATCH_UP_LIMIT_MAX
from puntual.domain.recovery import Granted, Slice
from puntual.domain.run import Run
from puntual.domain.schedule import Schedule
from puntual.domain.tenant import TenantId
from tests.simulation.outages import (
    a_pause_in_the_middle_of_a_recovery,
    a_planner_that_dies_before_its_recovery_cursor,
    an_edit_in_the_middle_of_a_recovery,
    executors_that_are_out_for_three_hours,
    planners_that_are_out_for_three_hours,
)
from tests.simulation.variant import Variant
from tests.simulation.world import Parts

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
    def write(self, shard: int, cursors: Sequence[Cursor], work: Work, now: datetime) -> None:
        if work.recoveries:
            wait = timedelta(minutes=15)
            work.next_cursors = [
                replace(cursor, available_at=max(cursor.available_at, now + wait))
                for cursor in work.next_cursors
            ]
        super().write(shard, cursors, work, now)


class NextCursorsComeBeforeTheRecovery(PlanCursors):
    def write(self, shard: int, cursors: Sequence[Cursor], work: Work, now: datetime) -> None:
        if work.next_cursors:
            self.agenda.put(shard, work.next_cursors)
        super().write(shard, cursors, work, now)


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


RECOVERIES: dict[str, Variant] = {
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
}
