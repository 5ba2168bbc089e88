"""Occurrences of one schedule that meet: executor and undeliverable with the slot (E7)."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from puntual.application.settle_message import Settled
from puntual.domain.judgement import SLOT_WAIT
from puntual.domain.message import PARK_MAX, Message
from puntual.domain.occurrence import Kind, Occurrence
from puntual.domain.policies import Misfire, MisfirePolicy, Overlap, Policies
from puntual.domain.run import Run, RunState
from puntual.domain.schedule import ScheduleState, ScheduleVersion
from puntual.domain.slot import Place, Slot
from puntual.domain.target import Delivered, Delivery, DeliveryResult, Failed
from tests.builders import NINE, a_message, a_rule, a_run, a_slot, a_version, an_occurrence
from tests.fakes.hostile import Rates
from tests.fakes.scripted_targets import ScriptedTargets
from tests.unit.application.world import World, dies, io_points

MINUTE = timedelta(minutes=1)
FIRST = a_message(an_occurrence(scheduled_for=NINE + 5 * MINUTE))
SECOND = a_message(an_occurrence(scheduled_for=NINE + 10 * MINUTE))
THIRD = a_message(an_occurrence(scheduled_for=NINE + 15 * MINUTE))
DUE = SECOND.occurrence.scheduled_for
KEY = a_version().key
REFUSED = Failed(detail="HTTP 503", retryable=True)
APART = [overlap for overlap in Overlap if overlap is not Overlap.ALLOW]
NEVER_LATE = MisfirePolicy(after=timedelta(days=1))


def apart(overlap: Overlap, *, misfire: MisfirePolicy = NEVER_LATE) -> Policies:
    return Policies(overlap=overlap, misfire=misfire)


def a_world(overlap: Overlap, *, now: datetime = DUE, rule_ends: bool = False) -> World:
    """Give a world in which the second fire has just come."""
    world = World()
    world.clock.advance_to(now)
    rule = replace(a_rule(), end_at=DUE) if rule_ends else None
    world.holds(a_version(policies=apart(overlap), rule=rule))
    return world


def with_holder(
    world: World, *, state: RunState = RunState.RUNNING, lives_for: timedelta = 9 * MINUTE
) -> Run:
    """Let the first occurrence be in the slot: running, or in its backoff."""
    run = replace(a_run(FIRST.occurrence, state=state, write_id="first"))
    if state is RunState.RUNNING:
        run = replace(run, lease_until=world.clock.now() + lives_for)
    else:
        run = replace(run, not_before=world.clock.now() + lives_for)
    assert world.ledger.swap(run, seen=None)
    world.ledger.slots[KEY] = a_slot(running=FIRST.occurrence)
    return run


def slot(world: World) -> tuple[Occurrence | None, Occurrence | None]:
    found: Slot = world.ledger.slot(KEY)
    return _occurrence(found.running), _occurrence(found.waiting)


def _occurrence(place: Place | None) -> Occurrence | None:
    return None if place is None else place.occurrence


def sent(world: World) -> tuple[Message, timedelta]:
    *_, (_, message, delay) = world.sent()
    return message, delay


# Allow


def test_under_allow_no_slot_is_read_or_written() -> None:
    world = a_world(Overlap.ALLOW)
    world.ledger.swap(a_run(FIRST.occurrence), seen=None)
    assert world.execute(SECOND).why == RunState.SUCCEEDED
    assert not [name for name in world.calls if "slot" in name or "free" in name]
    assert world.ledger.slots == {}


def test_a_run_under_allow_is_in_no_ones_way() -> None:
    world = a_world(Overlap.ALLOW)
    world.ledger.swap(replace(a_run(FIRST.occurrence), lease_until=DUE + 9 * MINUTE), seen=None)
    policies = apart(Overlap.SKIP_IF_RUNNING)
    world.is_followed(a_version(version=2, policies=policies, effective_from=DUE - MINUTE))
    second = a_message(replace(SECOND.occurrence, version=2))
    assert world.execute(second).why == RunState.SUCCEEDED


# One alone


@pytest.mark.parametrize("overlap", APART)
def test_a_run_is_in_the_slot_from_its_claim_to_its_end(overlap: Overlap) -> None:
    world = a_world(overlap)
    seen = []

    def look(_: Delivery) -> DeliveryResult:
        seen.append(slot(world))
        return Delivered(detail="HTTP 200")

    world.targets = ScriptedTargets(look)
    assert world.execute(SECOND).why == RunState.SUCCEEDED
    assert seen == [(SECOND.occurrence, None)]
    assert slot(world) == (None, None)


@pytest.mark.parametrize("overlap", APART)
def test_a_run_in_its_backoff_is_in_the_slot(overlap: Overlap) -> None:
    world = a_world(overlap)
    world.answers(REFUSED)
    assert world.execute(SECOND).why == RunState.RETRY_WAIT
    assert slot(world) == (SECOND.occurrence, None)
    world.clock.advance(MINUTE)
    world.answers(Delivered(detail="HTTP 200"))
    assert world.execute(SECOND).why == RunState.SUCCEEDED
    assert slot(world) == (None, None)


def test_p9_a_claim_and_an_end_that_are_repeated_are_known_as_our_own() -> None:
    world = a_world(Overlap.QUEUE_ONE)
    world.rates = Rates(repeated=1.0)
    assert world.execute(SECOND).why == RunState.SUCCEEDED
    assert len(world.targets.deliveries) == 1
    assert slot(world) == (None, None)


def test_a_dead_run_leaves_the_slot() -> None:
    world = a_world(Overlap.QUEUE_ONE)
    world.answers(Failed(detail="HTTP 410", retryable=False))
    assert world.execute(SECOND).why == RunState.DEAD
    assert slot(world) == (None, None)


# Two that meet


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.RETRY_WAIT])
def test_under_skip_if_running_the_second_is_skipped_and_says_behind_whom(
    state: RunState,
) -> None:
    world = a_world(Overlap.SKIP_IF_RUNNING, rule_ends=True)
    with_holder(world, state=state)
    assert world.execute(SECOND).why == RunState.SKIPPED_OVERLAP
    run = world.run_of(SECOND)
    assert (run.reason, run.attempt) == ("2026-11-30T09:05:00.000Z was running", 0)
    assert world.targets.deliveries == []
    assert slot(world) == (FIRST.occurrence, None)
    assert world.head(a_version()).state is ScheduleState.COMPLETED


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.RETRY_WAIT])
def test_under_queue_one_the_second_waits_and_the_third_is_skipped(state: RunState) -> None:
    world = a_world(Overlap.QUEUE_ONE, now=THIRD.occurrence.scheduled_for)
    holder = with_holder(world, state=state)
    assert world.execute(SECOND).why == "waits for the slot"
    assert sent(world) == (SECOND, SLOT_WAIT)
    assert world.execute(THIRD).why == RunState.SKIPPED_OVERLAP
    assert slot(world) == (FIRST.occurrence, SECOND.occurrence)
    assert world.run_of(FIRST) == holder, "nobody asked it to end"
    assert world.ledger.read(SECOND.occurrence.key) is None


def test_the_one_that_waits_runs_when_the_first_has_ended() -> None:
    world = a_world(Overlap.QUEUE_ONE)
    holder = with_holder(world)
    world.execute(SECOND)
    ended = replace(holder, state=RunState.DEAD, lease_until=None, write_id="ended")
    assert world.ledger.record_and_free(ended)
    world.clock.advance(SLOT_WAIT)
    assert world.execute(SECOND).why == RunState.SUCCEEDED
    assert slot(world) == (None, None)


def test_the_first_comes_again_before_the_one_that_waits() -> None:
    world = a_world(Overlap.QUEUE_ONE)
    with_holder(world, lives_for=-MINUTE)
    assert world.execute(SECOND).why == "waits for the slot"
    assert world.execute(FIRST).why == RunState.SUCCEEDED
    assert slot(world) == (None, SECOND.occurrence)
    assert world.execute(SECOND).why == RunState.SUCCEEDED


def test_a_claim_that_another_overtook_takes_no_slot() -> None:
    world = a_world(Overlap.QUEUE_ONE)

    def another_claims(name: str) -> None:
        if name == "ledger.swap_with_slot":
            world.at_io = lambda _: None
            with_holder(world)

    world.at_io = another_claims
    assert world.execute(SECOND).why == "waits for the slot"
    assert world.targets.deliveries == []


def test_a_skip_behind_a_run_that_has_just_ended_is_judged_anew() -> None:
    world = a_world(Overlap.SKIP_IF_RUNNING)
    holder = with_holder(world)

    def the_holder_ends(name: str) -> None:
        if name == "ledger.swap_with_slot":
            world.at_io = lambda _: None
            ended = replace(holder, state=RunState.SUCCEEDED, write_id="ended")
            assert world.ledger.record_and_free(ended)

    world.at_io = the_holder_ends
    assert world.execute(SECOND).why == RunState.SUCCEEDED


# Asking it to end


def test_under_cancel_running_a_live_run_is_asked_and_the_new_one_waits() -> None:
    world = a_world(Overlap.CANCEL_RUNNING)
    holder = with_holder(world)
    assert world.execute(SECOND).why == "waits for the slot"
    run = world.run_of(FIRST)
    assert run == replace(holder, cancel_requested=True, write_id=run.write_id)
    calls = len(world.calls)
    world.clock.advance(SLOT_WAIT)
    assert world.execute(SECOND).why == "waits for the slot"
    assert "ledger.swap_with_slot" not in world.calls[calls:], "it asks once"


def test_a_run_that_was_asked_and_succeeds_has_succeeded() -> None:
    world = a_world(Overlap.CANCEL_RUNNING, now=DUE - timedelta(seconds=5))

    def be_asked(_: Delivery) -> DeliveryResult:
        world.clock.advance_to(DUE)
        if len(world.targets.deliveries) == 1:
            assert world.execute(SECOND).why == "waits for the slot"
        return Delivered(detail="HTTP 200")

    world.targets = ScriptedTargets(be_asked)
    assert world.execute(FIRST).why == RunState.SUCCEEDED
    assert slot(world) == (None, SECOND.occurrence)
    assert world.execute(SECOND).why == RunState.SUCCEEDED


def test_a_run_that_was_asked_and_fails_is_canceled_instead_of_tried_again() -> None:
    world = a_world(Overlap.CANCEL_RUNNING, now=DUE - timedelta(seconds=5))

    def be_asked(_: Delivery) -> DeliveryResult:
        world.clock.advance_to(DUE)
        assert world.execute(SECOND).why == "waits for the slot"
        return REFUSED

    world.targets = ScriptedTargets(be_asked)
    assert world.execute(FIRST).why == RunState.CANCELED
    run = world.run_of(FIRST)
    assert (run.reason, run.cancel_requested) == ("overlap after attempt 1", True)
    assert [attempt.result for attempt in run.attempts] == ["HTTP 503"]
    assert slot(world) == (None, SECOND.occurrence)


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.RETRY_WAIT])
def test_under_cancel_running_the_new_one_ends_a_run_without_a_live_lease(
    state: RunState,
) -> None:
    world = a_world(Overlap.CANCEL_RUNNING)
    waits = state is RunState.RETRY_WAIT
    with_holder(world, state=state, lives_for=MINUTE if waits else -MINUTE)
    assert world.execute(SECOND).why == RunState.SUCCEEDED
    run = world.run_of(FIRST)
    assert (run.state, run.reason) == (RunState.CANCELED, "overlap after attempt 1")
    assert slot(world) == (None, None)
    assert world.execute(FIRST).why == RunState.CANCELED, "its own message is let go"


# Versions that end


def paused(world: World) -> ScheduleVersion:
    """Let a pause and a resume come, which void the first version."""
    pause = a_version(
        version=2, state=ScheduleState.PAUSED, effective_from=DUE + timedelta(seconds=1)
    )
    world.is_followed(pause, min_valid_version=2)
    resumed = a_version(
        version=3,
        policies=apart(Overlap.SKIP_IF_RUNNING),
        effective_from=DUE + timedelta(seconds=2),
    )
    world.is_followed(resumed, min_valid_version=2)
    return resumed


def test_whoever_meets_a_voided_run_without_a_live_lease_cancels_it_first() -> None:
    world = a_world(Overlap.QUEUE_ONE, now=THIRD.occurrence.scheduled_for)
    with_holder(world, state=RunState.RETRY_WAIT)
    paused(world)
    third = a_message(replace(THIRD.occurrence, version=3))
    assert world.execute(third).why == RunState.SUCCEEDED
    run = world.run_of(FIRST)
    assert (run.state, run.reason) == (RunState.CANCELED, "voided after attempt 1")


def test_a_voided_one_that_waits_is_replaced_and_its_message_ends_it() -> None:
    world = a_world(Overlap.QUEUE_ONE)
    world.ledger.slots[KEY] = a_slot(waiting=SECOND.occurrence)
    paused(world)
    world.clock.advance_to(THIRD.occurrence.scheduled_for)
    third = a_message(replace(THIRD.occurrence, version=3))
    assert world.execute(third).why == RunState.SUCCEEDED
    assert world.execute(SECOND).why == RunState.CANCELED


def test_a_voided_one_that_waits_leaves_with_its_own_row() -> None:
    world = a_world(Overlap.QUEUE_ONE)
    with_holder(world)
    world.execute(SECOND)
    paused(world)
    assert world.execute(SECOND).why == RunState.CANCELED
    assert slot(world) == (FIRST.occurrence, None)


def superseded_world() -> World:
    """Let the second wait, and an edit take its instant over."""
    world = a_world(Overlap.QUEUE_ONE)
    with_holder(world)
    assert world.execute(SECOND).why == "waits for the slot"
    world.is_followed(a_version(version=2, effective_from=DUE))
    return world


def test_e6_a_superseded_one_gives_its_waiting_place_back_before_its_second_look() -> None:
    world = superseded_world()
    assert world.execute(SECOND).why == "superseded, second look"
    assert slot(world) == (FIRST.occurrence, None)
    assert sent(world) == (replace(SECOND, looks=1), PARK_MAX)


def test_a_message_that_meets_anothers_end_at_its_key_gives_its_waiting_place_back() -> None:
    world = superseded_world()
    other = replace(SECOND.occurrence, version=2)
    world.ledger.swap(a_run(other, state=RunState.SUCCEEDED), seen=None)
    assert world.execute(SECOND).why == RunState.SUCCEEDED
    assert slot(world) == (FIRST.occurrence, None)


def test_e6_a_place_that_changed_while_it_was_given_back_is_judged_anew() -> None:
    world = superseded_world()

    def the_holder_ends(name: str) -> None:
        if name == "ledger.swap_with_slot":
            world.at_io = lambda _: None
            ended = replace(world.run_of(FIRST), state=RunState.SUCCEEDED, write_id="ended")
            assert world.ledger.record_and_free(ended)

    world.at_io = the_holder_ends
    assert world.execute(SECOND).why == "superseded, second look"
    assert slot(world) == (None, None)


# Lateness


def test_e5_one_that_waits_is_never_late_but_for_max_lateness() -> None:
    misfire = MisfirePolicy(policy=Misfire.SKIP, max_lateness=10 * MINUTE)
    world = World()
    world.clock.advance_to(DUE)
    world.holds(a_version(policies=apart(Overlap.QUEUE_ONE, misfire=misfire)))
    with_holder(world, lives_for=timedelta(hours=1))
    world.execute(SECOND)
    world.clock.advance(9 * MINUTE)
    assert world.execute(SECOND).why == "waits for the slot"
    world.clock.advance(2 * MINUTE)
    assert world.execute(SECOND).why == RunState.MISSED
    assert slot(world) == (FIRST.occurrence, None)


# Undeliverable


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.RETRY_WAIT])
def test_e4_a_buried_run_leaves_the_slot(state: RunState) -> None:
    world = a_world(Overlap.QUEUE_ONE)
    with_holder(world, state=state, lives_for=-MINUTE)
    assert world.bury(FIRST).why == RunState.DEAD
    assert slot(world) == (None, None)


def test_e4_a_buried_message_without_a_row_leaves_its_waiting_place() -> None:
    world = a_world(Overlap.QUEUE_ONE)
    world.ledger.slots[KEY] = a_slot(waiting=SECOND.occurrence)
    assert world.bury(SECOND).why == RunState.DEAD
    assert slot(world) == (None, None)


def test_e4_a_dead_letter_that_must_wait_for_the_slot_goes_back_to_its_lane() -> None:
    world = a_world(Overlap.QUEUE_ONE)
    with_holder(world)
    assert world.bury(SECOND).why == "waits for the slot"
    assert sent(world) == (SECOND, SLOT_WAIT)


# Dying


def holder_in_backoff(overlap: Overlap) -> World:
    world = a_world(overlap, rule_ends=True)
    with_holder(world, state=RunState.RETRY_WAIT, lives_for=timedelta(0))
    return world


def execute_second(world: World) -> Settled:
    return world.execute(SECOND)


def all_settled(world: World) -> None:
    """Receive both messages, and all that was sent, until nothing is left to do."""
    waiting, seen = [FIRST, SECOND], len(world.sent())
    for _ in range(90):
        if not waiting:
            return
        world.clock.advance(timedelta(seconds=40))
        message = waiting.pop(0)
        if world.execute(message).keep:
            waiting.append(message)
        waiting += [each for _, each, _ in world.sent()[seen:]]
        seen = len(world.sent())
    raise AssertionError("it never ends")


CRASHES = [
    pytest.param(overlap, crash, id=f"{overlap} {crash}")
    for overlap in APART
    for crash in io_points(holder_in_backoff(overlap), execute_second)
]


@pytest.mark.parametrize(("overlap", "crash"), CRASHES)
def test_after_a_crash_at_any_io_of_the_second_both_end_and_the_slot_is_empty(
    overlap: Overlap, crash: int
) -> None:
    world = holder_in_backoff(overlap)
    dies(world, execute_second, at=crash)
    all_settled(world)
    assert world.run_of(FIRST).state.is_terminal
    assert world.run_of(SECOND).state.is_terminal
    assert slot(world) == (None, None)
    assert world.head(a_version()).state is ScheduleState.COMPLETED


def one_alone() -> World:
    return a_world(Overlap.QUEUE_ONE)


def failing_alone() -> World:
    world = a_world(Overlap.QUEUE_ONE)
    answers = iter([REFUSED])
    world.targets = ScriptedTargets(lambda _: next(answers, Delivered(detail="HTTP 200")))
    return world


ALONE = [
    pytest.param(made, crash, id=f"{made.__name__} {crash}")
    for made in (one_alone, failing_alone)
    for crash in io_points(made(), execute_second)
]


@pytest.mark.parametrize(("made", "crash"), ALONE)
def test_after_a_crash_at_any_io_of_a_run_alone_it_ends_and_the_slot_is_empty(
    made: Callable[[], World], crash: int
) -> None:
    world = made()
    dies(world, execute_second, at=crash)
    all_settled(world)
    assert world.run_of(SECOND).state is RunState.SUCCEEDED
    assert slot(world) == (None, None)


def test_a_manual_run_takes_the_slot_too() -> None:
    world = a_world(Overlap.QUEUE_ONE)
    manual = an_occurrence(scheduled_for=DUE, kind=Kind.MANUAL, request_id="r1")
    with_holder(world)
    assert world.execute(a_message(manual)).why == "waits for the slot"
    assert slot(world) == (FIRST.occurrence, manual)
