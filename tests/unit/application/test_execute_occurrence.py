from dataclasses import replace
from datetime import timedelta

import pytest

from puntual.application.settle_message import Settled
from puntual.domain.errors import Unavailable
from puntual.domain.judgement import RECORD_TIME
from puntual.domain.message import Message
from puntual.domain.policies import Policies, RetryPolicy
from puntual.domain.run import Run, RunState
from puntual.domain.schedule import ScheduleState
from puntual.domain.target import AwsTarget, Delivered, Delivery, DeliveryResult, Failed, Service
from tests.builders import NINE, TARGET, a_message, a_rule, a_run, a_version, an_occurrence
from tests.fakes.hostile import Rates
from tests.fakes.scripted_targets import ScriptedTargets
from tests.unit.application.world import World, dies, io_points

FIRE = NINE + timedelta(minutes=5)
MESSAGE = a_message(an_occurrence(scheduled_for=FIRE), enqueued_at=FIRE)
LAST = replace(a_rule(), end_at=FIRE)
REFUSED = Failed(detail="HTTP 503", retryable=True)
QUEUE = AwsTarget(
    service=Service.SQS, arn="arn:aws:sqs:eu-west-1:123456789012:puntual-target-orders"
)


def a_world(*, rule_ends: bool = False) -> World:
    world = World()
    world.clock.advance_to(FIRE)
    world.holds(a_version(rule=LAST if rule_ends else None))
    return world


def execute(world: World, message: Message = MESSAGE) -> Settled:
    return world.execute(message)


def last_sent(world: World) -> Message:
    return world.sent()[-1][1]


# Delivering


def test_an_occurrence_is_claimed_delivered_and_recorded() -> None:
    world = a_world()
    settled = execute(world)
    assert (settled.why, settled.keep) == (RunState.SUCCEEDED, False)
    run = world.run_of(MESSAGE)
    assert (run.state, run.attempt, run.enqueued_at) == (RunState.SUCCEEDED, 1, FIRE)
    assert run.attempts[0].result == "HTTP 200"
    assert world.sent() == []


def test_the_target_gets_id_attempt_payload_and_a_deadline_within_the_lease() -> None:
    world = a_world()
    execute(world)
    (delivery,) = world.targets.deliveries
    assert delivery == Delivery(
        occurrence=MESSAGE.occurrence,
        attempt=1,
        target=TARGET,
        payload='{"invoice":7}',
        deadline=FIRE + TARGET.timeout,
    )


def test_the_claim_stands_before_the_target_is_called() -> None:
    world = a_world()
    seen: list[Run] = []

    def look(_: Delivery) -> DeliveryResult:
        seen.append(world.run_of(MESSAGE))
        return Delivered(detail="HTTP 200")

    world.targets = ScriptedTargets(look)
    execute(world)
    assert seen[0].state is RunState.RUNNING
    assert seen[0].lease_until == FIRE + TARGET.timeout + RECORD_TIME


def test_a_target_in_aws_is_delivered_to_with_the_payload_of_this_attempt() -> None:
    world = World()
    world.clock.advance_to(FIRE)
    world.holds(a_version(target=QUEUE, payload='{"at":"<scheduled_for>, try <attempt>"}'))
    execute(world)
    [delivery] = world.targets.deliveries
    assert (delivery.target, delivery.round) == (QUEUE, 0)
    assert delivery.payload == '{"at":"2026-11-30T09:05:00.000Z, try 1"}'


def test_e2_the_first_attempt_of_a_round_is_told_from_a_repeat_within_it() -> None:
    world = a_world()
    world.answers(REFUSED)
    row = replace(a_run(MESSAGE.occurrence, state=RunState.RETRY_WAIT, attempt=2), round=1)
    world.ledger.swap(replace(row, round_attempt=0, not_before=FIRE), seen=None)
    execute(world)
    again = last_sent(world)
    assert again.round == 1  # also where a duplicate of an earlier round made the attempt
    world.clock.advance_to(FIRE + timedelta(minutes=1))
    execute(world, again)
    told = [(each.attempt, each.round, each.is_repeat) for each in world.targets.deliveries]
    assert told == [(3, 1, False), (4, 1, True)]


def test_p3_an_occurrence_runs_under_its_own_versions_target_and_payload() -> None:
    world = a_world()
    world.is_followed(
        a_version(version=2, payload='"new"', effective_from=FIRE + timedelta(milliseconds=1))
    )
    execute(world)
    assert [delivery.payload for delivery in world.targets.deliveries] == ['{"invoice":7}']


def test_e11_the_last_run_completes_its_schedule_before_its_message_goes() -> None:
    world = a_world(rule_ends=True)
    execute(world)
    assert world.calls[-1] == "schedules.complete"
    assert world.head(a_version()).state is ScheduleState.COMPLETED


# Failing


def test_p7_a_retry_is_recorded_then_sent_and_only_then_may_the_message_go() -> None:
    world = a_world()
    world.answers(REFUSED)
    settled = execute(world)
    assert world.calls[-2:] == ["ledger.record", "lanes.send"]
    assert (settled.why, settled.keep) == (RunState.RETRY_WAIT, False)
    run = world.run_of(MESSAGE)
    assert (run.state, run.not_before) == (RunState.RETRY_WAIT, FIRE + timedelta(seconds=5))
    [(_, message, delay)] = world.sent()
    assert delay == timedelta(seconds=5)
    assert message == MESSAGE


def test_e1_an_attempt_that_was_had_ends_the_count_of_lost_races() -> None:
    world = a_world()
    world.answers(REFUSED)
    execute(world, replace(MESSAGE, lost_races=4))
    assert last_sent(world) == MESSAGE


def test_p7_a_retry_that_the_queue_refuses_keeps_the_received_message() -> None:
    world = a_world()
    world.answers(REFUSED)
    world.rates = Rates(partial=1.0)
    settled = execute(world)
    assert settled.keep
    assert world.run_of(MESSAGE).state is RunState.RETRY_WAIT
    assert world.sent() == []


def test_p7_a_message_kept_so_parks_until_its_backoff_is_over() -> None:
    world = a_world()
    world.answers(REFUSED)
    world.rates = Rates(partial=1.0)
    execute(world)
    world.rates = Rates()
    assert execute(world).why == "backoff"
    assert world.sent()[0][2] == timedelta(seconds=5)


def test_retries_go_on_until_the_target_takes_it() -> None:
    world, message = a_world(), MESSAGE
    world.answers(REFUSED)
    for _ in range(3):
        execute(world, message)
        [*_, (_, message, delay)] = world.sent()
        world.clock.advance(delay)
    world.answers(Delivered(detail="HTTP 200"))
    execute(world, message)
    run = world.run_of(MESSAGE)
    assert (run.state, run.attempt) == (RunState.SUCCEEDED, 4)
    assert [attempt.result for attempt in run.attempts] == ["HTTP 503"] * 3 + ["HTTP 200"]
    assert len({delivery.occurrence.id for delivery in world.targets.deliveries}) == 1
    assert [delivery.attempt for delivery in world.targets.deliveries] == [1, 2, 3, 4]


def test_a_failure_that_no_repeat_can_mend_is_dead_at_once() -> None:
    world = a_world(rule_ends=True)
    world.answers(Failed(detail="HTTP 410", retryable=False))
    assert execute(world).why == RunState.DEAD
    assert world.run_of(MESSAGE).reason == "HTTP 410"
    assert world.sent() == []
    assert world.head(a_version()).state is ScheduleState.COMPLETED


def test_the_last_try_of_a_round_is_dead() -> None:
    world = World()
    world.clock.advance_to(FIRE)
    world.holds(a_version(policies=Policies(retry=RetryPolicy(max_attempts=1))))
    world.answers(REFUSED)
    assert execute(world).why == RunState.DEAD


# Racing


def test_p6_a_claim_that_lost_its_race_calls_no_target() -> None:
    world = a_world()

    def another_claims(name: str) -> None:
        if name == "ledger.swap":
            world.at_io = lambda _: None
            world.ledger.swap(a_run(MESSAGE.occurrence), seen=None)

    world.at_io = another_claims
    assert execute(world).why == "live lease"
    assert world.targets.deliveries == []


def test_p5_a_takeover_names_the_write_that_it_saw() -> None:
    world = a_world()
    world.ledger.swap(a_run(MESSAGE.occurrence), seen=None)
    world.clock.advance(timedelta(minutes=2))

    def another_takes_over(name: str) -> None:
        if name == "ledger.swap":
            world.at_io = lambda _: None
            seen = world.run_of(MESSAGE)
            lease_until = world.clock.now() + timedelta(minutes=1)
            other = replace(seen, attempt=2, lease_until=lease_until, write_id="other")
            assert world.ledger.swap(other, seen=seen)

    world.at_io = another_takes_over
    assert execute(world).why == "live lease"
    assert world.targets.deliveries == []


def test_p9_a_claim_whose_answer_was_lost_and_repeated_is_known_as_our_own() -> None:
    world = a_world()
    world.rates = Rates(repeated=1.0)
    assert execute(world).why == RunState.SUCCEEDED
    assert len(world.targets.deliveries) == 1


def test_a_process_that_froze_after_its_claim_does_not_call_the_target() -> None:
    world = a_world()

    def freeze(name: str) -> None:
        if name == "ledger.swap":
            world.clock.advance(TARGET.timeout / 2)

    world.at_io = freeze  # before the write and after it: the whole timeout
    settled = execute(world)
    assert world.targets.deliveries == []
    assert settled.why == "live lease", "its own: it waits until that has run out"
    assert last_sent(world).occurrence == MESSAGE.occurrence


def test_e1_an_outcome_that_lost_its_race_is_judged_anew_and_the_row_stays_the_winners() -> None:
    world = a_world()

    def be_superseded(_: Delivery) -> DeliveryResult:
        seen = world.run_of(MESSAGE)
        lease_until = world.clock.now() + timedelta(minutes=1)
        other = replace(seen, attempt=2, lease_until=lease_until, write_id="other")
        assert world.ledger.swap(other, seen=seen)
        return Delivered(detail="HTTP 200")

    world.targets = ScriptedTargets(be_superseded)
    settled = execute(world)
    assert (settled.why, settled.keep) == ("live lease", False)
    assert world.run_of(MESSAGE).attempt == 2
    assert world.run_of(MESSAGE).state is RunState.RUNNING
    assert world.sent(), "the message is never deleted because of a lost write"


def test_e1_an_outcome_does_not_overwrite_a_terminal_row() -> None:
    world = a_world()

    def be_canceled(_: Delivery) -> DeliveryResult:
        seen = world.run_of(MESSAGE)
        ended = replace(seen, state=RunState.CANCELED, lease_until=None, write_id="other")
        assert world.ledger.swap(ended, seen=seen)
        return Delivered(detail="HTTP 200")

    world.targets = ScriptedTargets(be_canceled)
    assert execute(world).why == RunState.CANCELED
    assert world.run_of(MESSAGE).state is RunState.CANCELED


def test_a_table_that_does_not_answer_keeps_the_message() -> None:
    world = a_world()
    world.rates = Rates(throttled=1.0)
    with pytest.raises(Unavailable):
        execute(world)
    assert world.targets.deliveries == []


# Dying


def received_again(world: World, message: Message) -> None:
    """Receive what is not deleted, and all that was sent, until nothing is left to do."""
    waiting = [message]
    seen = len(world.sent())
    for _ in range(60):
        if not waiting:
            return
        world.clock.advance(timedelta(seconds=40))
        settled = execute(world, waiting[0])
        if not settled.keep:
            waiting.pop(0)
        sent = world.sent()
        waiting += [each for _, each, _ in sent[seen:]]
        seen = len(sent)
    raise AssertionError("it never ends")


@pytest.mark.parametrize("crash", io_points(a_world(rule_ends=True), execute))
def test_after_a_crash_at_any_io_the_occurrence_still_ends_well(crash: int) -> None:
    world = a_world(rule_ends=True)
    dies(world, execute, at=crash)
    received_again(world, MESSAGE)
    assert world.run_of(MESSAGE).state is RunState.SUCCEEDED
    assert 1 <= len(world.targets.deliveries) <= 2
    assert world.head(a_version()).state is ScheduleState.COMPLETED


def a_failing_world() -> World:
    world = a_world()
    answers = iter([REFUSED])
    world.targets = ScriptedTargets(lambda _: next(answers, Delivered(detail="HTTP 200")))
    return world


@pytest.mark.parametrize("crash", io_points(a_failing_world(), execute))
def test_p7_after_a_crash_at_any_io_of_a_failed_attempt_it_is_tried_again(crash: int) -> None:
    world = a_failing_world()
    dies(world, execute, at=crash)
    received_again(world, MESSAGE)
    assert world.run_of(MESSAGE).state is RunState.SUCCEEDED
    attempts = [delivery.attempt for delivery in world.targets.deliveries]
    assert attempts == sorted(set(attempts)), "no attempt is ever made twice"
