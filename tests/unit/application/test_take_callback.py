"""Runs that end by a callback: the executor's part, heartbeats, completes and fails."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from puntual.application.settle_message import Settled
from puntual.application.take_callback import TakeCallback
from puntual.domain.callback import AttemptOver
from puntual.domain.callback_token import Ticket, UnknownCallback, token_of
from puntual.domain.errors import Unavailable
from puntual.domain.judgement import looks_at_lease
from puntual.domain.lane import Lane
from puntual.domain.message import PARK_MAX, Message
from puntual.domain.policies import (
    Completion,
    CompletionPolicy,
    MisfirePolicy,
    Overlap,
    Policies,
    RetryPolicy,
)
from puntual.domain.run import LEASE_RAN_OUT, MAX_DURATION_REACHED, Run, RunState
from puntual.domain.schedule import ScheduleState
from puntual.domain.target import Accepted, Delivered, Delivery, DeliveryResult, Failed
from tests.builders import NINE, a_message, a_rule, a_run, a_slot, a_version, an_occurrence
from tests.fakes.fixed_root_secret import FixedRootSecret
from tests.fakes.hostile import Rates
from tests.fakes.scripted_targets import ScriptedTargets
from tests.gates import failing_by
from tests.unit.application.world import World, dies, io_points

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
FIRE = NINE + 5 * MINUTE
OCCURRENCE = an_occurrence(scheduled_for=FIRE)
MESSAGE = a_message(OCCURRENCE, enqueued_at=FIRE)
TICKET = Ticket(occurrence=OCCURRENCE, attempt=1)
CALLBACK = CompletionPolicy(policy=Completion.CALLBACK, heartbeat=2 * MINUTE, max_duration=3 * HOUR)
BY_CALLBACK = Policies(completion=CALLBACK)
TAKEN = Accepted(detail="HTTP 202")
ROOT = FixedRootSecret()


def a_world(policies: Policies = BY_CALLBACK, *, rule_ends: bool = False) -> World:
    world = World()
    world.clock.advance_to(FIRE)
    rule = replace(a_rule(), end_at=FIRE) if rule_ends else None
    world.holds(a_version(policies=policies, rule=rule))
    world.answers(TAKEN)
    return world


def taker(world: World) -> TakeCallback:
    gates = world.gates_of_another("callbacks")
    return TakeCallback(
        root_secret=ROOT,
        settle_message=world.settle_message,
        fail_attempt=failing_by(gates),
        rooms=gates.rooms,
    )


def taken_by(world: World) -> Settled:
    """Let the executor deliver, and the target take it."""
    return world.execute(MESSAGE)


def last_sent(world: World) -> tuple[Lane, Message, timedelta]:
    return world.sent()[-1]


# The executor


def test_p7_an_accepted_run_holds_its_lease_and_sends_who_looks_at_it() -> None:
    world = a_world()
    settled = taken_by(world)
    assert (settled.why, settled.keep) == ("accepted", False)
    run = world.run_of(MESSAGE)
    assert (run.state, run.attempt, run.lease_until) == (RunState.RUNNING, 1, FIRE + 2 * MINUTE)
    assert run.attempts[0].result == "HTTP 202"
    lane, message, delay = last_sent(world)
    assert (lane, message) == (Lane.STRICT, MESSAGE)
    assert FIRE + delay == looks_at_lease(FIRE + 2 * MINUTE)
    assert world.calls[-2:] == ["ledger.swap", "lanes.send"]


def test_the_target_is_told_that_it_is_waited_for_only_under_callback() -> None:
    for policies, awaits in ((BY_CALLBACK, True), (Policies(), False)):
        world = a_world(policies)
        world.answers(Delivered(detail="HTTP 202"))
        taken_by(world)
        [delivery] = world.targets.deliveries
        assert delivery.awaits_callback is awaits


def test_an_answer_that_says_all_ends_the_run_under_callback_too() -> None:
    for result, state in (
        (Delivered(detail="HTTP 200"), RunState.SUCCEEDED),
        (Failed(detail="HTTP 400", retryable=False), RunState.DEAD),
    ):
        world = a_world()
        world.answers(result)
        taken_by(world)
        assert world.run_of(MESSAGE).state is state


def during_the_call(world: World, action: Callable[[], object]) -> None:
    """Let something happen after the target has begun and before its answer is recorded."""

    def script(delivery: Delivery) -> DeliveryResult:
        assert delivery.attempt == 1
        action()
        return TAKEN

    world.targets = ScriptedTargets(script)


def test_e1_a_complete_before_the_record_of_the_answer_is_kept() -> None:
    world = a_world()
    during_the_call(world, lambda: taker(world).complete(TICKET, result="done"))
    settled = taken_by(world)
    assert settled.why == RunState.SUCCEEDED
    run = world.run_of(MESSAGE)
    assert (run.state, run.attempts[0].result) == (RunState.SUCCEEDED, "done")
    assert world.sent() == []


def test_e1_a_fail_before_the_record_of_the_answer_is_kept_and_its_retry_waited_for() -> None:
    world = a_world()
    during_the_call(world, lambda: taker(world).fail(TICKET, reason="full", retry=True))
    assert taken_by(world).why == "backoff"
    assert world.run_of(MESSAGE).state is RunState.RETRY_WAIT
    assert len(world.sent()) == 2


def test_a_heartbeat_or_a_request_to_end_before_the_record_is_kept_with_it() -> None:
    world = a_world()

    def meanwhile() -> None:
        world.clock.advance(5 * SECOND)
        held = taker(world).heartbeat(TICKET)
        asked = replace(held, cancel_requested=True, write_id="asked")
        assert world.ledger.swap(asked, seen=held)

    during_the_call(world, meanwhile)
    assert taken_by(world).why == "accepted"
    run = world.run_of(MESSAGE)
    assert run.cancel_requested
    assert run.lease_until == FIRE + 5 * SECOND + 2 * MINUTE
    assert run.attempts[0].result == "HTTP 202"


def test_e1_an_answer_that_comes_after_the_next_attempt_changes_nothing() -> None:
    world = a_world()

    def meanwhile() -> None:
        seen = world.run_of(MESSAGE)
        assert world.ledger.swap(a_run(OCCURRENCE, attempt=2, write_id="next"), seen=seen)

    during_the_call(world, meanwhile)
    assert taken_by(world).why == "live lease"
    assert world.run_of(MESSAGE).write_id == "next"


def test_p7_wherever_the_executor_dies_the_run_ends() -> None:
    patient = replace(BY_CALLBACK, misfire=MisfirePolicy(after=HOUR))
    for at in io_points(a_world(patient), taken_by):
        world = a_world(patient)
        dies(world, taken_by, at=at)
        world.answers(Delivered(detail="HTTP 200"))
        world.clock.advance(5 * MINUTE)
        world.execute(MESSAGE)
        assert world.run_of(MESSAGE).state is RunState.SUCCEEDED


def test_p7_a_lease_check_that_the_queue_refuses_keeps_the_message() -> None:
    world = a_world()
    world.rates = Rates(partial=1.0)
    assert taken_by(world).keep
    assert world.run_of(MESSAGE).state is RunState.RUNNING


# The lease


def test_a_target_that_is_silent_loses_its_lease_to_the_next_attempt() -> None:
    world = a_world()
    taken_by(world)
    world.clock.advance_to(looks_at_lease(FIRE + 2 * MINUTE))
    taken_by(world)
    run = world.run_of(MESSAGE)
    assert (run.state, run.attempt) == (RunState.RUNNING, 2)
    assert [attempt.result for attempt in run.attempts] == [LEASE_RAN_OUT, "HTTP 202"]


def test_a_heartbeat_holds_the_lease_and_the_check_hops() -> None:
    world = a_world()
    taken_by(world)
    world.clock.advance(100 * SECOND)
    held = taker(world).heartbeat(TICKET)
    assert held.lease_until == FIRE + 100 * SECOND + 2 * MINUTE
    world.clock.advance_to(looks_at_lease(FIRE + 2 * MINUTE))
    assert taken_by(world).why == "live lease"
    assert world.run_of(MESSAGE).attempt == 1


def test_a_late_heartbeat_counts_as_long_as_nobody_has_taken_the_lease() -> None:
    world = a_world()
    taken_by(world)
    world.clock.advance(HOUR)
    assert taker(world).heartbeat(TICKET).lease_until == FIRE + HOUR + 2 * MINUTE


def test_a_heartbeat_that_raises_nothing_writes_nothing() -> None:
    world = a_world()
    taken_by(world)
    writes = world.calls.count("ledger.swap")
    assert taker(world).heartbeat(TICKET) == world.run_of(MESSAGE)
    assert world.calls.count("ledger.swap") == writes


def test_beyond_max_duration_no_heartbeat_counts_and_the_lease_says_why() -> None:
    world = a_world()
    taken_by(world)
    world.clock.advance_to(FIRE + 3 * HOUR - MINUTE)
    assert taker(world).heartbeat(TICKET).lease_until == FIRE + 3 * HOUR
    world.clock.advance(MINUTE)
    with pytest.raises(AttemptOver, match="max_duration; nothing was changed"):
        taker(world).heartbeat(TICKET)
    world.clock.advance_to(looks_at_lease(FIRE + 3 * HOUR))
    taken_by(world)
    run = world.run_of(MESSAGE)
    assert (run.attempt, run.attempts[0].result) == (2, MAX_DURATION_REACHED)


def test_a_run_of_two_hours_is_one_attempt_though_no_message_waits_longer_than_15_minutes() -> None:
    """Nobody stands behind its lease but heartbeats: a Lambda lives 15 minutes."""
    world = a_world(rule_ends=True)
    taken_by(world)
    hops = 0
    ends = FIRE + 2 * HOUR
    beats_at = FIRE + 90 * SECOND
    while world.run_of(MESSAGE).state is RunState.RUNNING:
        _, message, delay = last_sent(world)
        assert delay <= PARK_MAX
        looks_at = world.clock.now() + delay
        while beats_at < looks_at and beats_at < ends:
            world.clock.advance_to(beats_at)
            taker(world).heartbeat(TICKET)
            beats_at += 90 * SECOND
        if looks_at >= ends:
            world.clock.advance_to(ends)
            taker(world).complete(TICKET, result="2 hours' work")
        world.clock.advance_to(looks_at)
        hops += 1
        world.execute(message)
    run = world.run_of(MESSAGE)
    assert (run.state, run.attempt) == (RunState.SUCCEEDED, 1)
    assert run.attempts[0].result == "2 hours' work"
    assert len(world.targets.deliveries) == 1
    assert 60 <= hops <= 120
    assert len(world.sent()) == hops
    assert world.head(a_version()).state is ScheduleState.COMPLETED


# Completing


def test_a_complete_ends_the_run_and_its_repeat_finds_it_so() -> None:
    world = a_world()
    taken_by(world)
    first = taker(world).complete(TICKET, result="42 rows")
    assert (first.state, first.attempts[0].result) == (RunState.SUCCEEDED, "42 rows")
    before = world.rows()
    assert taker(world).complete(TICKET, result="42 rows") == first
    assert world.rows() == before


def test_e11_the_lease_check_of_the_last_run_completes_its_schedule() -> None:
    world = a_world(rule_ends=True)
    taken_by(world)
    taker(world).complete(TICKET, result="done")
    assert world.head(a_version()).state is ScheduleState.ACTIVE
    world.clock.advance(3 * MINUTE)
    assert taken_by(world).why == RunState.SUCCEEDED
    assert world.head(a_version()).state is ScheduleState.COMPLETED


def stale(world: World, run: Run | None) -> None:
    """Put a row in the place of the attempt's own."""
    rows = world.ledger.rows[a_version().key]
    rows.clear()
    if run is not None:
        rows[OCCURRENCE.key.run] = run


CALLS: dict[str, Callable[[TakeCallback], Run]] = {
    "heartbeat": lambda take: take.heartbeat(TICKET),
    "complete": lambda take: take.complete(TICKET, result="done"),
    "fail": lambda take: take.fail(TICKET, reason="full", retry=True),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize(
    "row",
    [
        None,
        a_run(OCCURRENCE, attempt=2),
        a_run(OCCURRENCE, state=RunState.RETRY_WAIT, attempt=2),
        a_run(OCCURRENCE, state=RunState.SUCCEEDED, attempt=2),
        a_run(an_occurrence(scheduled_for=FIRE, version=2)),
    ],
    ids=["gone", "running", "waiting", "ended", "another id"],
)
def test_e1_a_stale_token_changes_nothing(
    call: Callable[[TakeCallback], Run], row: Run | None
) -> None:
    world = a_world()
    taken_by(world)
    stale(world, row)
    before, sent = world.rows(), len(world.sent())
    with pytest.raises(AttemptOver, match="attempt 1 has ended; nothing was changed"):
        call(taker(world))
    assert (world.rows(), len(world.sent())) == (before, sent)


@pytest.mark.parametrize(
    ("call", "state"),
    [
        *(("heartbeat", state) for state in RunState if state is not RunState.RUNNING),
        ("complete", RunState.RETRY_WAIT),
        ("complete", RunState.DEAD),
        ("complete", RunState.CANCELED),
        ("fail", RunState.SUCCEEDED),
    ],
)
def test_e1_what_has_ended_otherwise_is_not_changed(call: str, state: RunState) -> None:
    world = a_world()
    taken_by(world)
    stale(world, a_run(OCCURRENCE, state=state))
    before = world.rows()
    with pytest.raises(AttemptOver):
        CALLS[call](taker(world))
    assert world.rows() == before


@pytest.mark.parametrize("call", ["heartbeat", "complete", "fail"])
def test_e1_a_call_that_loses_its_race_is_judged_by_what_came_first(call: str) -> None:
    world = a_world()
    taken_by(world)
    world.clock.advance(SECOND)

    def meanwhile(name: str) -> None:
        if name in {"ledger.swap", "ledger.record"}:
            stale(world, a_run(OCCURRENCE, attempt=2, write_id="next"))

    world.at_io = meanwhile
    with pytest.raises(AttemptOver):
        CALLS[call](taker(world))
    assert world.run_of(MESSAGE).write_id == "next"


def test_a_complete_that_loses_to_a_complete_has_succeeded() -> None:
    world = a_world()
    taken_by(world)
    done = a_run(OCCURRENCE, state=RunState.SUCCEEDED, write_id="other")
    world.at_io = lambda name: stale(world, done) if name == "ledger.record" else None
    assert taker(world).complete(TICKET, result="done") == done


def test_p9_repeated_writes_of_callbacks_are_known_again() -> None:
    for call in CALLS.values():
        world = a_world()
        taken_by(world)
        world.rates = Rates(repeated=1.0)
        call(taker(world))


# Failing


def test_a_fail_waits_for_its_backoff_and_sends_the_message_of_the_retry() -> None:
    world = a_world(replace(BY_CALLBACK, retry=RetryPolicy(base=MINUTE)))
    taken_by(world)
    world.clock.advance(30 * SECOND)
    run = taker(world).fail(TICKET, reason="out of disk", retry=True)
    assert (run.state, run.reason) == (RunState.RETRY_WAIT, "out of disk")
    assert run.not_before == FIRE + MINUTE
    assert world.calls[-2:] == ["ledger.record", "lanes.send"]
    assert last_sent(world) == (Lane.STRICT, MESSAGE, 30 * SECOND)
    world.clock.advance(30 * SECOND)
    world.execute(last_sent(world)[1])
    assert world.run_of(MESSAGE).attempt == 2


def test_a_repeated_fail_is_answered_as_the_first_and_sends_nothing_more() -> None:
    world = a_world()
    taken_by(world)
    first = taker(world).fail(TICKET, reason="full", retry=True)
    sent = len(world.sent())
    assert taker(world).fail(TICKET, reason="full", retry=True) == first
    assert len(world.sent()) == sent


@pytest.mark.parametrize(
    ("retry", "max_attempts"), [(False, 5), (True, 1)], ids=["for good", "attempts spent"]
)
def test_a_fail_that_is_not_retried_is_dead(retry: bool, max_attempts: int) -> None:  # noqa: FBT001 a row of the table
    world = a_world(replace(BY_CALLBACK, retry=RetryPolicy(max_attempts=max_attempts)))
    taken_by(world)
    sent = len(world.sent())
    run = taker(world).fail(TICKET, reason="no such invoice", retry=retry)
    assert (run.state, run.reason) == (RunState.DEAD, "no such invoice")
    assert len(world.sent()) == sent


@pytest.mark.parametrize(
    ("window", "late", "lane"),
    [
        (timedelta(0), timedelta(0), Lane.STRICT),
        (MINUTE, timedelta(0), Lane.FLEXIBLE),
        (MINUTE, 2 * MINUTE, Lane.RECOVERY),
    ],
)
def test_the_retry_goes_by_the_lane_that_the_run_came_by(
    window: timedelta, late: timedelta, lane: Lane
) -> None:
    world = a_world(replace(BY_CALLBACK, window=window, misfire=MisfirePolicy(after=MINUTE)))
    world.clock.advance(late)
    world.execute(replace(MESSAGE, enqueued_at=FIRE + late, lane=lane))
    taker(world).fail(TICKET, reason="full", retry=True)
    sent_by, message, _ = last_sent(world)
    assert (sent_by, message.lane, message.enqueued_at) == (lane, lane, FIRE + late)


def test_p7_where_the_retry_message_is_not_sent_the_lease_check_finds_the_retry() -> None:
    world = a_world()
    taken_by(world)
    dies(world, lambda it: taker(it).fail(TICKET, reason="full", retry=True), at=4)
    assert world.calls[-1] == "lanes.send"
    assert world.run_of(MESSAGE).state is RunState.RETRY_WAIT
    world.clock.advance(3 * MINUTE)
    world.execute(MESSAGE)
    assert world.run_of(MESSAGE).attempt == 2


# The slot


QUEUED = replace(BY_CALLBACK, overlap=Overlap.CANCEL_RUNNING)
NEXT = a_message(an_occurrence(scheduled_for=FIRE + 5 * MINUTE))


def test_e7_the_holder_keeps_the_slot_while_heartbeats_hold_its_lease() -> None:
    world = a_world(replace(BY_CALLBACK, overlap=Overlap.SKIP_IF_RUNNING))
    taken_by(world)
    world.clock.advance_to(FIRE + 4 * MINUTE)
    taker(world).heartbeat(TICKET)
    world.clock.advance_to(FIRE + 5 * MINUTE)
    assert world.execute(NEXT).why == RunState.SKIPPED_OVERLAP


@pytest.mark.parametrize(
    ("call", "state"),
    [("complete", RunState.SUCCEEDED), ("fail", RunState.CANCELED)],
)
def test_e7_a_run_that_is_asked_to_end_hears_it_and_ends(call: str, state: RunState) -> None:
    world = a_world(QUEUED)
    taken_by(world)
    world.clock.advance_to(FIRE + 4 * MINUTE)
    assert not taker(world).heartbeat(TICKET).cancel_requested
    world.clock.advance_to(FIRE + 5 * MINUTE)
    assert world.execute(NEXT).why == "waits for the slot"
    world.clock.advance(30 * SECOND)
    assert taker(world).heartbeat(TICKET).cancel_requested
    run = CALLS[call](taker(world))
    assert run.state is state
    assert run.reason == ("overlap after attempt 1" if state is RunState.CANCELED else "")
    world.execute(NEXT)
    assert world.run_of(NEXT).state is RunState.RUNNING
    assert world.ledger.slot(a_version().key).is_run_by(NEXT.occurrence.id)


def test_e7_a_fail_for_good_of_what_was_asked_to_end_is_canceled_too() -> None:
    world = a_world(QUEUED)
    taken_by(world)
    seen = world.run_of(MESSAGE)
    assert world.ledger.swap(replace(seen, cancel_requested=True, write_id="asked"), seen=seen)
    run = taker(world).fail(TICKET, reason="stopped", retry=False)
    assert (run.state, run.reason) == (RunState.CANCELED, "overlap after attempt 1")
    assert taker(world).fail(TICKET, reason="stopped", retry=False) == run


def test_e7_a_complete_frees_the_slot_with_its_row() -> None:
    world = a_world(QUEUED)
    taken_by(world)
    assert world.ledger.slot(a_version().key).running == a_slot(running=OCCURRENCE).running
    taker(world).complete(TICKET, result="done")
    assert world.calls[-1] == "ledger.record_and_free"
    assert world.ledger.slot(a_version().key).running is None


def test_e4_a_dead_letter_meets_the_lease_that_heartbeats_hold() -> None:
    world = a_world()
    taken_by(world)
    world.clock.advance(100 * SECOND)
    taker(world).heartbeat(TICKET)
    world.clock.advance(100 * SECOND)
    assert world.bury(MESSAGE).why == "live lease"
    world.clock.advance(10 * MINUTE)
    assert world.bury(MESSAGE).why == RunState.DEAD


# Tokens


def test_a_token_of_ours_is_read_and_no_other() -> None:
    world = a_world()
    assert taker(world).ticket(token_of(TICKET, root=ROOT.read())) == TICKET
    with pytest.raises(UnknownCallback):
        taker(world).ticket("forged")
    assert world.calls == []


def test_without_the_root_no_token_is_judged() -> None:
    secret = FixedRootSecret()
    secret.is_out_of_reach = True
    with pytest.raises(Unavailable):
        replace(taker(a_world()), root_secret=secret).ticket("any")
