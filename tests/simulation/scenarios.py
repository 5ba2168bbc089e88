"""Directed scenarios, for rules whose loss the seeds meet too rarely to rely on."""

from collections.abc import Callable
from datetime import timedelta

from puntual.domain.lane import Lane
from puntual.domain.message import Message
from puntual.domain.occurrence import Occurrence
from puntual.domain.policies import Misfire, MisfirePolicy, Overlap, RetryPolicy
from puntual.domain.schedule import ScheduleKey
from puntual.domain.tenant import ScheduleId
from tests.simulation.io import Cue
from tests.simulation.limit_scenarios import LIMIT_SCENARIOS
from tests.simulation.outages import (
    a_pause_in_the_middle_of_a_recovery,
    a_planner_that_dies_before_its_recovery_cursor,
    an_edit_in_the_middle_of_a_recovery,
    executors_that_are_out_for_three_hours,
    planners_that_are_out_for_three_hours,
)
from tests.simulation.releases import ReleaseStage, twice_around_the_change
from tests.simulation.scheduler import SECOND, SKEW_MAX, FunctionKind, instant_at
from tests.simulation.stage import (
    KEY,
    TIMEOUT,
    Stage,
    by_callback,
    each_hour_in_its_window,
    each_minute,
    once,
    one_at_a_time,
)
from tests.simulation.workload import TENANT
from tests.simulation.world import Parts, Verdict
from tests.zone_data import DEPLOYED, FORMER

Scenario = Callable[[Parts], Verdict]

OTHER = ScheduleKey(tenant=TENANT, schedule=ScheduleId("s4"))
"""Lies in the same shard as KEY."""

FLEXIBLE_SCHEDULES = 24
"""So many that the jitter of some would put two of their fires the wrong way round."""


def a_create_that_meets_a_planner_after_an_outage(parts: Parts) -> Verdict:
    """P1. The announcement is old; the writer stops before its transaction, a whole pass runs."""
    stage = Stage(
        parts,
        Cue(kind=FunctionKind.API, io="schedules.create", skip=1, wait=15 * SECOND),
    )
    stage.create(0, once(300), OTHER)
    stage.create(1200, once(1240))
    stage.ticks(1201)
    stage.ticks_each_minute(1300)
    return stage.finish()


def a_planner_that_meets_a_create_after_an_outage(parts: Parts) -> Verdict:
    """P1. The planner has read every bucket and stops; a writer comes and goes."""
    stage = Stage(
        parts,
        Cue(kind=FunctionKind.PLANNER, io="shards.close", wait=30 * SECOND),
    )
    stage.create(0, once(300), OTHER)
    stage.ticks(1195)
    stage.create(1210, once(1250))
    stage.ticks_each_minute(1300)
    return stage.finish()


def a_lease_that_ends_later_than_it_says(parts: Parts) -> Verdict:
    """P5. Its holder's clock is two seconds slow, and those of the others two seconds fast."""
    stage = Stage(parts, Cue(kind=FunctionKind.EXECUTOR, io="ledger.swap", after=True))
    stage.scheduler.executor_skews = [-SKEW_MAX, -SKEW_MAX, SKEW_MAX, SKEW_MAX]
    stage.create(0, once(60))
    stage.at(66, stage.queues.send_again)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_relay_that_dies_at_each_send(parts: Parts) -> Verdict:
    """P7. The stream gives up on the page; the planner finds it in the outbox."""
    stage = Stage(parts, Cue(kind=FunctionKind.RELAY, io="lanes.send", times=9))
    stage.create(0, once(600))
    stage.ticks_each_minute(30)
    return stage.finish()


def an_outcome_that_comes_too_late(parts: Parts) -> Verdict:
    """E1. The first executor hangs past its lease, the second one dies with the same message."""
    verdicts = []
    for seed in range(6):  # Whether a stale receipt still deletes is the queue's to choose.
        stage = Stage(
            parts,
            Cue(kind=FunctionKind.EXECUTOR, io="ledger.record", wait=75 * SECOND),
            Cue(kind=FunctionKind.EXECUTOR, io="ledger.swap", after=True, skip=1),
            seed=seed,
        )
        stage.create(0, once(60))
        stage.ticks_each_minute(30)
        verdicts.append(stage.finish())
    failed = [verdict for verdict in verdicts if verdict.failures]
    return (failed or verdicts)[0]


def a_dead_letter_of_a_run_that_lives(parts: Parts) -> Verdict:
    """E4. A duplicate is dead-lettered while its run is under way."""
    stage = Stage(parts, Cue(kind=FunctionKind.EXECUTOR, io="ledger.record", wait=4 * SECOND))
    stage.create(0, once(60))
    occurrence = Occurrence(
        tenant=KEY.tenant, schedule=KEY.schedule, version=1, scheduled_for=instant_at(60 * SECOND)
    )
    duplicate = Message(
        occurrence=occurrence, available_at=occurrence.scheduled_for, lane=Lane.STRICT
    )
    stage.at(63, lambda: stage.queues.bury(duplicate))
    stage.ticks_each_minute(30)
    return stage.finish()


def a_claim_that_is_still_on_its_way(parts: Parts) -> Verdict:
    """E6. A claim was checked, then an edit took its instant away; the message comes again."""
    stage = Stage(
        parts,
        Cue(kind=FunctionKind.API, io="schedules.advance", wait=8 * SECOND),
        Cue(kind=FunctionKind.EXECUTOR, io="ledger.swap", wait=100 * SECOND),
        Cue(kind=FunctionKind.EXECUTOR, io="ledger.swap", after=True),
    )
    stage.create(0, each_minute(0, 70))
    stage.edit(54, once(1200))
    stage.ticks_each_minute(30)
    return stage.finish()


def a_verdict_that_is_older_than_its_clock(parts: Parts) -> Verdict:
    """E5. An executor stops with the head just read; an edit then takes its instant over.

    Its own version would call the run missed by now, and the next one has it still to run.
    """
    stage = Stage(
        parts,
        Cue(kind=FunctionKind.API, io="schedules.advance", wait=10 * SECOND),
        Cue(kind=FunctionKind.EXECUTOR, io="schedules.head", after=True, wait=70 * SECOND),
        Cue(kind=FunctionKind.RELAY, io="lanes.send", skip=1, wait=100 * SECOND),
    )
    stage.create(0, each_minute(0, 3600, misfire=Misfire.SKIP))
    stage.edit(54, once(60))
    stage.ticks_each_minute(200)
    return stage.finish()


def clocks_that_go_forward_under_windows(parts: Parts) -> Verdict:
    """P10. Fires come nearer to each other than their windows are long."""
    stage = Stage(parts)
    for number in range(FLEXIBLE_SCHEDULES):
        key = ScheduleKey(tenant=TENANT, schedule=ScheduleId(f"s{number}"))
        stage.create(0, each_hour_in_its_window(5400), key)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_planner_that_dies_after_it_deleted(parts: Parts) -> Verdict:
    """E8, E11. Fires were missed while nobody planned; the one who finds them dies at the end."""
    stage = Stage(
        parts,
        Cue(kind=FunctionKind.API, io="schedules.create", after=True),
        Cue(kind=FunctionKind.PLANNER, io="agenda.delete", after=True),
    )
    stage.create(0, each_minute(0, 290, misfire=Misfire.SKIP))
    stage.explain_misses(until=900)
    stage.ticks_each_minute(900)
    return stage.finish()


def a_writer_that_dies_after_its_transaction(parts: Parts) -> Verdict:
    """E10. It was the first of its shard."""
    stage = Stage(parts, Cue(kind=FunctionKind.API, io="schedules.create", after=True))
    stage.create(0, once(300))
    stage.ticks_each_minute(30)
    return stage.finish()


def an_executor_that_dies_after_the_last_outcome(parts: Parts) -> Verdict:
    """E11. Its message comes again and meets a terminal row."""
    cue = Cue(kind=FunctionKind.EXECUTOR, io="ledger.record", after=True)
    stage = Stage(parts, cue, seed=2)  # in which its receiver answers in time
    stage.create(0, once(60))
    stage.ticks_each_minute(30)
    return stage.finish()


SLOT_WRITE = "ledger.swap_with_slot"


def two_claims_of_one_slot(parts: Parts) -> Verdict:
    """E7. Both saw it free; the first hangs until the second has claimed, and died."""
    stage = Stage(
        parts,
        Cue(kind=FunctionKind.EXECUTOR, io=SLOT_WRITE, wait=65 * SECOND),
        Cue(kind=FunctionKind.EXECUTOR, io=SLOT_WRITE, after=True),
    )
    stage.create(0, one_at_a_time(130, Overlap.QUEUE_ONE))
    stage.ticks_each_minute(30)
    return stage.finish()


def a_skip_behind_a_run_that_has_ended(parts: Parts) -> Verdict:
    """E7. It ended between the reading of the slot and the writing of the skip."""
    stage = Stage(
        parts,
        Cue(kind=FunctionKind.EXECUTOR, io="ledger.record_and_free", wait=70 * SECOND),
        Cue(kind=FunctionKind.EXECUTOR, io=SLOT_WRITE, skip=1, wait=30 * SECOND),
    )
    stage.create(0, one_at_a_time(130, Overlap.SKIP_IF_RUNNING))
    stage.ticks_each_minute(30)
    return stage.finish()


def a_duplicate_that_waits_for_what_has_ended(parts: Parts) -> Verdict:
    """E7. One copy hangs before it takes the waiting place; to the other it is late by then."""
    stage = Stage(
        parts,
        Cue(kind=FunctionKind.EXECUTOR, io=SLOT_WRITE, after=True),
        Cue(kind=FunctionKind.EXECUTOR, io=SLOT_WRITE, skip=1, wait=80 * SECOND),
    )
    skip = MisfirePolicy(policy=Misfire.SKIP)
    stage.create(0, one_at_a_time(130, Overlap.QUEUE_ONE, misfire=skip))
    stage.explain_misses(until=900)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_waiting_one_that_is_superseded(parts: Parts) -> Verdict:
    """E7. It waits behind a run that died; an edit that began before it takes its instant away."""
    stage = Stage(
        parts,
        Cue(kind=FunctionKind.EXECUTOR, io=SLOT_WRITE, after=True),
        Cue(kind=FunctionKind.API, io="schedules.advance", wait=8 * SECOND),
    )
    stage.create(0, one_at_a_time(130, Overlap.QUEUE_ONE))
    stage.edit(118, once(1200))
    stage.ticks_each_minute(30)
    return stage.finish()


def a_voided_run_in_its_backoff(parts: Parts) -> Verdict:
    """E7. Its own message comes after the backoff only; others come before."""
    stage = Stage(parts)
    stage.create(0, one_at_a_time(250, Overlap.SKIP_IF_RUNNING, timeout=TIMEOUT))
    stage.first_call_fails()
    stage.pause(100)
    stage.resume(101)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_voided_one_that_waits(parts: Parts) -> Verdict:
    """E7. The run before it is voided too, and gone; its own message has not come yet."""
    stage = Stage(parts, Cue(kind=FunctionKind.EXECUTOR, io=SLOT_WRITE, after=True))
    lease = timedelta(seconds=60)
    stage.create(0, one_at_a_time(130, Overlap.QUEUE_ONE, timeout=lease))
    stage.pause(128)
    stage.resume(129)
    stage.edit(130, once(147, overlap=Overlap.QUEUE_ONE), seen=3)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_request_to_end_that_meets_a_backoff(parts: Parts) -> Verdict:
    """E7. An attempt has failed; before that is recorded, the run is asked to end."""
    stage = Stage(parts, Cue(kind=FunctionKind.EXECUTOR, io="ledger.record", wait=80 * SECOND))
    stage.create(0, one_at_a_time(130, Overlap.CANCEL_RUNNING))
    stage.first_call_fails()
    stage.ticks_each_minute(30)
    return stage.finish()


def a_backfill_of_what_a_pause_has_ended(parts: Parts) -> Verdict:
    """P3. It is asked for after the pause, so only its authorised_version lets it run."""
    stage = Stage(parts)
    stage.create(0, each_minute(0, 600))
    stage.pause(130)
    stage.resume(131)
    stage.backfill(140, 30, 125)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_backfill_while_fires_go_on(parts: Parts) -> Verdict:
    """ADR 0018. It leaves the schedule's own cursor alone: its instants' buckets are closed."""
    stage = Stage(parts)
    stage.create(0, each_minute(0, 1500))
    stage.backfill(515, 30, 125)
    stage.ticks_each_minute(30)
    return stage.finish()


def two_backfills_at_once(parts: Parts) -> Verdict:
    """ADR 0018. Each reserves its share of the rate."""
    stage = Stage(parts)
    stage.create(0, each_minute(0, 600))
    for at in (215, 216):
        stage.backfill(at, 30, 185)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_complete_before_the_answer_is_recorded(parts: Parts) -> Verdict:
    """E1. The target is done before our record of its 202, which hangs."""
    stage = Stage(parts, Cue(kind=FunctionKind.EXECUTOR, io="ledger.swap", skip=1, wait=9 * SECOND))
    stage.create(0, by_callback(once(60)))
    stage.first_calls_are_accepted()
    stage.calls_back(63, "complete", fire=60)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_heartbeat_that_meets_the_end(parts: Parts) -> Verdict:
    """E1. It has read a row that runs; the complete comes before it writes."""
    stage = Stage(parts, Cue(kind=FunctionKind.CALLBACK, io="ledger.swap", wait=9 * SECOND))
    stage.create(0, by_callback(once(60)))
    stage.first_calls_are_accepted()
    stage.calls_back(70, "heartbeat", fire=60)
    stage.calls_back(73, "complete", fire=60)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_fail_that_meets_a_complete(parts: Parts) -> Verdict:
    """E1. A target says both; the first of them hangs before it is recorded."""
    stage = Stage(parts, Cue(kind=FunctionKind.CALLBACK, io="ledger.record", wait=9 * SECOND))
    stage.create(0, by_callback(once(60)))
    stage.first_calls_are_accepted()
    stage.calls_back(70, "fail", fire=60, retry=False)
    stage.calls_back(73, "complete", fire=60)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_target_that_is_never_heard_of_again(parts: Parts) -> Verdict:
    """P7. Only the message that looks at the lease can start the next attempt."""
    stage = Stage(parts)
    stage.create(0, by_callback(once(60)))
    stage.first_calls_are_accepted()
    stage.ticks_each_minute(30)
    return stage.finish()


def a_complete_after_the_lease_is_lost(parts: Parts) -> Verdict:
    """E1. The second attempt runs when the target of the first one is done."""
    stage = Stage(parts)
    stage.create(0, by_callback(once(60)))
    stage.first_calls_are_accepted(2)
    stage.calls_back(150, "complete", fire=60, attempt=1)
    stage.calls_back(160, "complete", fire=60, attempt=2)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_target_that_is_asked_to_end(parts: Parts) -> Verdict:
    """E7. Its next heartbeat tells it, and it fails; then the one that waits may run."""
    stage = Stage(parts)
    stage.create(0, by_callback(one_at_a_time(130, Overlap.CANCEL_RUNNING, timeout=TIMEOUT)))
    stage.first_calls_are_accepted()
    stage.calls_back(100, "heartbeat", fire=60)
    stage.calls_back(140, "heartbeat", fire=60)
    stage.calls_back(150, "fail", fire=60)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_replay_of_one_that_died(parts: Parts) -> Verdict:
    """E2. It died at once; its target has been mended since."""
    stage = Stage(parts)
    stage.create(0, once(60))
    stage.calls_are_answered(400)
    stage.replay(120, of=60)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_replay_that_is_asked_for_twice(parts: Parts) -> Verdict:
    """E2. The client heard nothing; meanwhile the round has been had."""
    stage = Stage(parts)
    stage.create(0, once(60))
    stage.calls_are_answered(400, 400)
    stage.replay(120, of=60, request="again")
    stage.replay(200, of=60, request="again")
    stage.ticks_each_minute(30)
    return stage.finish()


def a_replay_after_a_cancel(parts: Parts) -> Verdict:
    """E2. It is refused."""
    stage = Stage(parts)
    stage.create(0, once(60))
    stage.calls_are_answered(400)
    stage.cancel(90)
    stage.replay(120, of=60)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_replay_beyond_the_last_attempt(parts: Parts) -> Verdict:
    """E2. It is refused."""
    second = timedelta(seconds=1)
    stage = Stage(parts)
    stage.create(0, once(60, retry=RetryPolicy(max_attempts=20, base=second, cap=second)))
    stage.calls_are_answered(*(503 for _ in range(20)))
    stage.replay(240, of=60)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_page_that_is_deleted_late(parts: Parts) -> Verdict:
    """E2. It was sent, its round is over and the next one is opened before it is deleted."""
    stage = Stage(parts, Cue(kind=FunctionKind.RELAY, io="outbox.delete", skip=1, wait=20 * SECOND))
    stage.create(0, once(60))
    stage.calls_are_answered(400, 400)
    stage.replay(120, of=60)
    stage.replay(126, of=60)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_dead_letter_of_an_earlier_round(parts: Parts) -> Verdict:
    """E2. A duplicate was received too often; the message of the new round is on its way."""
    stage = Stage(parts, Cue(kind=FunctionKind.RELAY, io="lanes.send", skip=1, wait=30 * SECOND))
    stage.create(0, once(60))
    stage.calls_are_answered(400)
    stage.replay(120, of=60)
    occurrence = Occurrence(
        tenant=KEY.tenant, schedule=KEY.schedule, version=1, scheduled_for=instant_at(60 * SECOND)
    )
    duplicate = Message(
        occurrence=occurrence, available_at=occurrence.scheduled_for, lane=Lane.STRICT
    )
    stage.at(123, lambda: stage.queues.bury(duplicate))
    stage.ticks_each_minute(30)
    return stage.finish()


def a_cancel_that_is_older_than_its_replay(parts: Parts) -> Verdict:
    """E2. Judged voided by one executor, ended by another, resumed and replayed, all meanwhile."""
    stage = Stage(
        parts,
        Cue(kind=FunctionKind.EXECUTOR, io="ledger.swap", skip=1, wait=40 * SECOND),
        Cue(kind=FunctionKind.RELAY, io="lanes.send", skip=1, wait=60 * SECOND),
    )
    stage.create(0, once(60))
    stage.first_call_fails()
    stage.pause(61)
    stage.at(80, stage.queues.send_again)
    stage.resume(85)
    stage.replay(90, of=60)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_replay_in_its_backoff(parts: Parts) -> Verdict:
    """E2. It holds the slot, its own version is voided, and another one of the schedule comes."""
    stage = Stage(parts)
    stage.create(0, one_at_a_time(130, Overlap.QUEUE_ONE))
    stage.calls_are_answered(400, 503)
    stage.pause(70)
    stage.resume(75)
    stage.replay(80, of=60)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_former_planner_that_outlives_its_release(parts: Parts) -> Verdict:
    """ADR 0013. It moves on what the replanner has just written, by the rules of its own release.

    The replanner dies after it has written a version, and before it plans its fire inline.
    """
    stage = ReleaseStage(
        parts,
        Cue(kind=FunctionKind.PLANNER, io="agenda.due", wait=120 * SECOND),
        Cue(kind=FunctionKind.REPLANNER, io="shards.get"),
    )
    stage.starts_with(FORMER)
    stage.create(0, twice_around_the_change())
    stage.former_planners(30)
    stage.notes(60, DEPLOYED)
    stage.replans(120, 1000, 1100)
    stage.ticks_each_minute(300)
    return stage.finish()


def a_release_that_is_deployed_for_two_minutes(parts: Parts) -> Verdict:
    """ADR 0013. Its planners move a schedule on, and then the one before it is deployed again."""
    stage = ReleaseStage(parts)
    stage.starts_with(DEPLOYED)
    stage.create(0, twice_around_the_change())
    stage.notes(20, FORMER)
    stage.former_planners(30)
    stage.notes(140, DEPLOYED)
    stage.replans(1100)
    stage.ticks_each_minute(140)
    return stage.finish()


def a_deployment_at_the_end_of_a_run(parts: Parts) -> Verdict:
    """ADR 0013. The replanner stops before it says that all is done; another release comes by."""
    stage = ReleaseStage(
        parts, Cue(kind=FunctionKind.REPLANNER, io="zone_releases.swap", wait=90 * SECOND)
    )
    stage.starts_with(DEPLOYED, FORMER)
    stage.create(0, twice_around_the_change())
    stage.replans(5)
    stage.notes(20, FORMER)
    stage.former_planners(30)
    stage.notes(140, DEPLOYED)
    stage.replans(1100)
    stage.ticks_each_minute(140)
    return stage.finish()


SCENARIOS: tuple[Scenario, ...] = (
    a_create_that_meets_a_planner_after_an_outage,
    a_planner_that_meets_a_create_after_an_outage,
    a_lease_that_ends_later_than_it_says,
    a_relay_that_dies_at_each_send,
    an_outcome_that_comes_too_late,
    a_dead_letter_of_a_run_that_lives,
    a_claim_that_is_still_on_its_way,
    a_verdict_that_is_older_than_its_clock,
    clocks_that_go_forward_under_windows,
    a_planner_that_dies_after_it_deleted,
    a_writer_that_dies_after_its_transaction,
    an_executor_that_dies_after_the_last_outcome,
    two_claims_of_one_slot,
    a_skip_behind_a_run_that_has_ended,
    a_duplicate_that_waits_for_what_has_ended,
    a_waiting_one_that_is_superseded,
    a_voided_run_in_its_backoff,
    a_voided_one_that_waits,
    a_request_to_end_that_meets_a_backoff,
    a_backfill_of_what_a_pause_has_ended,
    a_backfill_while_fires_go_on,
    two_backfills_at_once,
    a_complete_before_the_answer_is_recorded,
    a_heartbeat_that_meets_the_end,
    a_fail_that_meets_a_complete,
    a_target_that_is_never_heard_of_again,
    a_complete_after_the_lease_is_lost,
    a_target_that_is_asked_to_end,
    a_replay_of_one_that_died,
    a_replay_that_is_asked_for_twice,
    a_replay_after_a_cancel,
    a_replay_beyond_the_last_attempt,
    a_page_that_is_deleted_late,
    a_dead_letter_of_an_earlier_round,
    a_cancel_that_is_older_than_its_replay,
    a_replay_in_its_backoff,
    a_former_planner_that_outlives_its_release,
    a_release_that_is_deployed_for_two_minutes,
    a_deployment_at_the_end_of_a_run,
    *LIMIT_SCENARIOS,
    planners_that_are_out_for_three_hours,
    executors_that_are_out_for_three_hours,
    an_edit_in_the_middle_of_a_recovery,
    a_pause_in_the_middle_of_a_recovery,
    a_planner_that_dies_before_its_recovery_cursor,
)
