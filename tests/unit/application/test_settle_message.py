from dataclasses import replace
from datetime import timedelta

import pytest

from puntual.application.settle_message import (
    UNAVAILABLE_WAIT,
    VERSIONS_CACHED_MAX,
    Settled,
    VersionCache,
)
from puntual.domain.errors import Unavailable
from puntual.domain.judgement import (
    FOREIGN_WAIT,
    LOST_RACES_MAX,
    STALLED_AFTER_PARKS,
    Claim,
    Standing,
)
from puntual.domain.lane import Lane
from puntual.domain.message import PARK_MAX, Message
from puntual.domain.occurrence import Kind
from puntual.domain.policies import Misfire, MisfirePolicy, Policies
from puntual.domain.run import Note, Run, RunState
from puntual.domain.schedule import ScheduleState
from tests.builders import NINE, a_message, a_rule, a_run, a_version, an_occurrence
from tests.fakes.hostile import Rates
from tests.unit.application.world import World, dies, io_points

FIRE = NINE + timedelta(minutes=5)
MESSAGE = a_message(an_occurrence(scheduled_for=FIRE))
LAST = replace(a_rule(), end_at=FIRE)
"""A rule that ends with the fire that the tests are about."""


def a_world(*, rule_ends: bool = False) -> World:
    world = World()
    world.clock.advance_to(FIRE)
    world.holds(a_version(rule=LAST if rule_ends else None))
    return world


def claimed(message: Message, seen: Run | None, claim: Claim, standing: Standing) -> Settled:
    """Stand for a use case that always settles what it may claim."""
    assert (seen is None) == (claim.run.attempt == 1)
    assert standing.version.version == message.occurrence.version
    return Settled(why="claimed", run=claim.run)


def lost(_: Message, __: Run | None, ___: Claim, ____: Standing) -> Settled | None:
    """Stand for a use case that loses every race."""
    return None


def settle(world: World, message: Message = MESSAGE) -> Settled:
    return world.settle_message.settle(message, claimed)


def with_row(world: World, run: Run) -> World:
    assert world.ledger.swap(run, seen=None)
    return world


def parked(world: World) -> tuple[Message, timedelta]:
    [(lane, message, delay)] = world.sent()
    assert lane is message.lane
    return message, delay


# Waiting


def test_p7_a_message_that_is_too_early_is_sent_anew_for_its_time() -> None:
    world = World()
    settled = settle(world)
    assert settled == Settled(why="too early")
    assert parked(world) == (MESSAGE, timedelta(minutes=5))
    assert world.calls == ["lanes.send"], "nothing is read for what must wait anyway"


def test_a_long_wait_hops() -> None:
    world = World()
    far = a_message(an_occurrence(scheduled_for=NINE + timedelta(hours=5)))
    settle(world, far)
    assert parked(world) == (far, PARK_MAX)


def test_waiting_keeps_the_lane() -> None:
    world = World()
    settle(world, replace(MESSAGE, lane=Lane.RECOVERY))
    assert [lane for lane, _, _ in world.sent()] == [Lane.RECOVERY]


def test_p7_a_park_that_the_queue_refuses_keeps_the_received_message() -> None:
    world = World()
    world.rates = Rates(partial=1.0)
    assert settle(world) == Settled(why="too early", keep=True)
    assert world.sent() == []


def test_p7_a_queue_that_does_not_answer_keeps_the_received_message() -> None:
    world = World()
    world.rates = Rates(timed_out=1.0)
    with pytest.raises(Unavailable):
        settle(world)


def test_p7_a_table_that_does_not_answer_parks_the_message_for_a_moment() -> None:
    world = a_world()

    def unanswered(_: Message, __: Run | None, ___: Claim, ____: Standing) -> Settled | None:
        raise Unavailable("no table answered")

    settled = world.settle_message.settle(MESSAGE, unanswered)
    assert settled == Settled(why="unavailable")
    assert parked(world) == (MESSAGE, UNAVAILABLE_WAIT)


def test_p7_a_message_that_meets_a_live_lease_parks_and_reads_no_head() -> None:
    world = with_row(a_world(), a_run(MESSAGE.occurrence))
    assert settle(world).why == "live lease"
    assert world.calls == ["ledger.read", "lanes.send"]
    _, delay = parked(world)
    assert delay == timedelta(seconds=1 + 25 + 5 + 1), "lease, margin, and a second"


def test_e3_a_message_waits_behind_the_waiting_row_of_another_id() -> None:
    other = an_occurrence(version=2, scheduled_for=FIRE)
    world = with_row(a_world(), a_run(other, state=RunState.RETRY_WAIT))
    assert settle(world).why == "row of another id"
    assert parked(world)[1] == FOREIGN_WAIT


def test_p5_a_row_in_backoff_parks_until_its_time() -> None:
    world = a_world()
    waiting = a_run(MESSAGE.occurrence, state=RunState.RETRY_WAIT)
    with_row(world, replace(waiting, not_before=FIRE + timedelta(seconds=40)))
    assert settle(world).why == "backoff"
    assert parked(world)[1] == timedelta(seconds=40)


# Letting go


@pytest.mark.parametrize("state", [state for state in RunState if state.is_terminal])
def test_a_message_of_a_terminal_row_is_let_go(state: RunState) -> None:
    world = with_row(a_world(), a_run(MESSAGE.occurrence, state=state))
    assert settle(world).why == state
    assert world.sent() == []
    assert world.head(a_version()).state is ScheduleState.ACTIVE


def test_e11_the_last_message_completes_its_schedule_before_it_is_let_go() -> None:
    world = with_row(a_world(rule_ends=True), a_run(MESSAGE.occurrence, state=RunState.DEAD))
    settle(world)
    assert world.head(a_version()).state is ScheduleState.COMPLETED


def test_e11_what_a_person_asked_for_completes_nothing() -> None:
    manual = an_occurrence(scheduled_for=FIRE, kind=Kind.MANUAL, request_id="r1")
    world = with_row(a_world(rule_ends=True), a_run(manual, state=RunState.SUCCEEDED))
    settle(world, a_message(manual))
    assert world.head(a_version()).state is ScheduleState.ACTIVE


def test_e11_the_last_message_of_a_version_that_was_edited_completes_nothing() -> None:
    world = with_row(a_world(rule_ends=True), a_run(MESSAGE.occurrence, state=RunState.SUCCEEDED))
    edited = a_version(version=2, effective_from=FIRE + timedelta(seconds=1))
    world.is_followed(edited)
    settle(world)
    assert world.head(edited).state is ScheduleState.ACTIVE


def test_a_message_of_a_schedule_that_is_gone_is_let_go_once_its_row_is_terminal() -> None:
    world = with_row(World(), a_run(MESSAGE.occurrence, state=RunState.SUCCEEDED))
    world.clock.advance_to(FIRE)
    assert settle(world).why == RunState.SUCCEEDED


def test_a_message_whose_schedule_never_existed_is_our_own_fault() -> None:
    world = World()
    world.clock.advance_to(FIRE)
    with pytest.raises(LookupError):
        settle(world)


# Dropping


def superseded_world() -> World:
    world = a_world()
    world.is_followed(a_version(version=2, effective_from=FIRE))
    return world


def voided_world() -> World:
    """Give a pause that came in the very instant of the fire, which it owns."""
    world = a_world()
    pause = a_version(version=2, state=ScheduleState.PAUSED, effective_from=FIRE)
    world.is_followed(pause, min_valid_version=2)
    return world


def test_e6_a_superseded_message_is_looked_at_again_after_an_executors_life() -> None:
    world = superseded_world()
    assert settle(world).why == "superseded, second look"
    again, delay = parked(world)
    assert (again, delay) == (replace(MESSAGE, looks=1), PARK_MAX)


def test_e6_at_the_second_look_it_is_dropped_and_leaves_nothing() -> None:
    world = superseded_world()
    assert settle(world, replace(MESSAGE, looks=1)) == Settled(why="superseded")
    assert (world.sent(), world.rows()) == ([], [])


def test_e6_a_claim_that_was_on_its_way_is_met_at_the_second_look() -> None:
    world = superseded_world()
    settle(world)
    again, delay = parked(world)
    with_row(world, a_run(MESSAGE.occurrence))
    world.clock.advance(delay)
    assert settle(world, again).why == "claimed", "its lease has run out: the row is the id's own"


def test_p3_a_voided_message_at_an_instant_of_another_version_leaves_one_note() -> None:
    world = voided_world()
    settle(world)
    world.clock.advance(PARK_MAX)
    settle(world, replace(MESSAGE, looks=1))
    [note] = world.rows()
    assert isinstance(note, Note)
    assert note.noted_at == FIRE, "put if absent"
    assert note.key != MESSAGE.occurrence.key


def test_e11_a_dropped_message_completes_the_schedule_that_it_may_have_ended() -> None:
    world = World()
    world.clock.advance_to(FIRE)
    manual = an_occurrence(scheduled_for=FIRE, kind=Kind.MANUAL, request_id="r1")
    world.holds(a_version(rule=LAST), min_valid_version=2)
    settle(world, replace(a_message(manual), looks=1))
    assert world.head(a_version()).state is ScheduleState.ACTIVE, "a manual run ends nothing"


# Ending


def test_p3_what_was_due_before_a_pause_becomes_canceled() -> None:
    world = a_world()
    pause = a_version(
        version=2, state=ScheduleState.PAUSED, effective_from=FIRE + timedelta(milliseconds=1)
    )
    world.is_followed(pause, min_valid_version=2)
    assert settle(world).why == RunState.CANCELED
    assert world.run_of(MESSAGE).reason == "voided"


def test_e5_a_message_that_is_late_under_skip_leaves_a_missed_row_at_its_key() -> None:
    world = World()
    skip = Policies(misfire=MisfirePolicy(policy=Misfire.SKIP))
    world.holds(a_version(rule=LAST, policies=skip))
    world.clock.advance_to(FIRE + timedelta(seconds=61))
    assert settle(world).why == RunState.MISSED
    assert world.run_of(MESSAGE).state is RunState.MISSED
    assert world.head(a_version()).state is ScheduleState.COMPLETED


def test_e1_a_terminal_write_that_lost_its_race_is_judged_anew() -> None:
    world = World()
    skip = Policies(misfire=MisfirePolicy(policy=Misfire.SKIP))
    world.holds(a_version(policies=skip))
    world.clock.advance_to(FIRE + timedelta(seconds=61))

    def a_claim_comes_between(name: str) -> None:
        if name == "ledger.swap":
            world.at_io = lambda _: None
            row = replace(a_run(MESSAGE.occurrence), lease_until=FIRE + timedelta(minutes=9))
            with_row(world, row)

    world.at_io = a_claim_comes_between
    assert settle(world).why == "live lease"
    assert world.run_of(MESSAGE).state is RunState.RUNNING


# Losing


def test_e1_after_three_lost_races_in_one_receive_the_message_parks_for_a_second() -> None:
    world = a_world()
    settled = world.settle_message.settle(MESSAGE, lost)
    assert settled == Settled(why="lost races")
    assert world.calls.count("ledger.read") == LOST_RACES_MAX
    assert parked(world) == (replace(MESSAGE, lost_races=1), timedelta(seconds=1))


def test_e1_five_such_parks_raise_an_alarm() -> None:
    world, message, stalled = a_world(), MESSAGE, []
    for _ in range(STALLED_AFTER_PARKS):
        stalled.append(world.settle_message.settle(message, lost).stalled)
        _, message, _ = world.sent()[-1]
    assert stalled == [False] * 4 + [True]


def test_a_race_that_is_won_at_the_third_try_parks_nothing() -> None:
    world, tries = a_world(), []

    def third_wins(
        message: Message, seen: Run | None, claim: Claim, at: Standing
    ) -> Settled | None:
        tries.append(claim)
        return claimed(message, seen, claim, at) if len(tries) == 3 else None

    assert world.settle_message.settle(MESSAGE, third_wins).why == "claimed"
    assert world.sent() == []


# Reading


def test_p3_the_end_of_a_version_is_never_taken_from_the_cache() -> None:
    world = a_world()
    settle(world)
    world.is_followed(a_version(version=2, effective_from=FIRE))
    assert settle(world).why == "superseded, second look"


def test_the_heads_own_version_is_read_once() -> None:
    world = a_world()
    settle(world)
    settle(world)
    assert world.calls.count("schedules.version") == 1
    assert world.calls.count("schedules.head") == 2


def test_the_head_is_read_after_the_row_since_a_pause_may_come_between() -> None:
    world = a_world()
    settle(world)
    assert world.calls == ["ledger.read", "schedules.head", "schedules.version"]


def test_the_cache_of_versions_is_bounded_and_forgets_the_oldest() -> None:
    cache = VersionCache()
    versions = [a_version(version=number) for number in range(1, VERSIONS_CACHED_MAX + 2)]
    for version in versions:
        cache.put(version)
    assert cache.get(versions[0].key, 1) is None
    assert cache.get(versions[-1].key, versions[-1].version) is versions[-1]


# Dying


@pytest.mark.parametrize("crash", io_points(voided_world(), settle))
def test_after_a_crash_at_any_io_a_dropped_message_ends_as_without_it(crash: int) -> None:
    world = voided_world()
    dies(world, settle, at=crash)
    settle(world)
    [note] = world.rows()
    assert isinstance(note, Note)
    assert world.sent(), "a second look is on its way"
