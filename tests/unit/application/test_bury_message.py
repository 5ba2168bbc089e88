from dataclasses import replace
from datetime import timedelta

import pytest

from puntual.application.settle_message import Settled
from puntual.domain.errors import Unavailable
from puntual.domain.message import PARK_MAX, Message
from puntual.domain.run import Note, RunState
from puntual.domain.schedule import ScheduleState
from tests.builders import NINE, a_message, a_rule, a_run, a_version, an_occurrence
from tests.fakes.hostile import Rates
from tests.unit.application.world import World, dies, io_points

FIRE = NINE + timedelta(minutes=5)
MESSAGE = a_message(an_occurrence(scheduled_for=FIRE))
LONG_AFTER = FIRE + timedelta(minutes=2)


def a_world(*, rule_ends: bool = False) -> World:
    world = World()
    world.clock.advance_to(LONG_AFTER)
    world.holds(a_version(rule=replace(a_rule(), end_at=FIRE) if rule_ends else None))
    return world


def bury(world: World, message: Message = MESSAGE) -> Settled:
    return world.bury(message)


def test_e4_a_message_without_a_row_leaves_a_dead_one() -> None:
    world = a_world()
    assert bury(world).why == RunState.DEAD
    run = world.run_of(MESSAGE)
    assert (run.state, run.reason, run.attempt) == (RunState.DEAD, "undeliverable", 0)
    assert world.targets.deliveries == []


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.RETRY_WAIT])
def test_e4_its_own_expired_or_waiting_row_becomes_dead(state: RunState) -> None:
    world = a_world()
    world.ledger.swap(a_run(MESSAGE.occurrence, state=state, attempt=2), seen=None)
    assert bury(world).why == RunState.DEAD
    assert (world.run_of(MESSAGE).state, world.run_of(MESSAGE).attempt) == (RunState.DEAD, 2)


def test_e4_a_live_lease_is_waited_for_in_the_lane() -> None:
    world = a_world()
    run = replace(a_run(MESSAGE.occurrence), lease_until=LONG_AFTER + timedelta(seconds=30))
    world.ledger.swap(run, seen=None)
    assert bury(world) == Settled(why="live lease")
    [(lane, message, delay)] = world.sent()
    assert (lane, message, delay) == (MESSAGE.lane, MESSAGE, timedelta(seconds=36))
    assert world.run_of(MESSAGE) == run


def test_e4_the_row_of_another_id_is_waited_for() -> None:
    world = a_world()
    other = a_run(an_occurrence(version=2, scheduled_for=FIRE), state=RunState.RETRY_WAIT)
    world.ledger.swap(other, seen=None)
    assert bury(world).why == "row of another id"
    assert world.run_of(MESSAGE) == other


def test_e4_a_terminal_row_lets_the_message_go() -> None:
    world = a_world()
    world.ledger.swap(a_run(MESSAGE.occurrence, state=RunState.SUCCEEDED), seen=None)
    assert bury(world).why == RunState.SUCCEEDED
    assert world.run_of(MESSAGE).state is RunState.SUCCEEDED


def test_e4_a_voided_message_leaves_a_note_and_a_superseded_one_nothing() -> None:
    world = a_world()
    pause = a_version(version=2, state=ScheduleState.PAUSED, effective_from=FIRE)
    world.is_followed(pause, min_valid_version=2)
    bury(world)
    [note] = world.rows()
    assert isinstance(note, Note)
    assert world.sent()[0][2] == PARK_MAX

    world = a_world()
    world.is_followed(a_version(version=2, effective_from=FIRE))
    bury(world)
    assert bury(world, replace(MESSAGE, looks=1)) == Settled(why="superseded")
    assert world.rows() == []


def test_e4_a_message_that_is_not_due_goes_back_to_its_lane() -> None:
    world = World()
    assert bury(world).why == "too early"
    assert len(world.sent()) == 1


def test_e4_dead_is_written_only_over_what_was_seen() -> None:
    world = a_world()

    def a_claim_comes_between(name: str) -> None:
        if name == "ledger.swap":
            world.at_io = lambda _: None
            run = replace(a_run(MESSAGE.occurrence), lease_until=LONG_AFTER + timedelta(minutes=1))
            world.ledger.swap(run, seen=None)

    world.at_io = a_claim_comes_between
    assert bury(world).why == "live lease"
    assert world.run_of(MESSAGE).state is RunState.RUNNING


def test_e11_the_last_message_that_is_buried_completes_its_schedule() -> None:
    world = a_world(rule_ends=True)
    bury(world)
    assert world.head(a_version()).state is ScheduleState.COMPLETED


def test_a_table_that_does_not_answer_keeps_the_message() -> None:
    world = a_world()
    world.rates = Rates(throttled=1.0)
    with pytest.raises(Unavailable):
        bury(world)
    assert world.rows() == []


@pytest.mark.parametrize("crash", io_points(a_world(rule_ends=True), bury))
def test_after_a_crash_at_any_io_burying_again_ends_in_the_same_state(crash: int) -> None:
    world = a_world(rule_ends=True)
    dies(world, bury, at=crash)
    bury(world)
    assert world.run_of(MESSAGE).state is RunState.DEAD
    assert world.head(a_version()).state is ScheduleState.COMPLETED


def test_e2_a_dead_letter_of_an_earlier_round_goes_back_and_ends_nothing() -> None:
    world = a_world()
    waits = replace(a_run(MESSAGE.occurrence, state=RunState.RETRY_WAIT), round=1, round_attempt=0)
    world.ledger.swap(waits, seen=None)
    assert bury(world) == Settled(why="of an earlier round")
    assert world.run_of(MESSAGE) == waits
    [(lane, message, _)] = world.sent()
    assert (lane, message) == (MESSAGE.lane, MESSAGE)


def test_e4_a_dead_letter_of_the_rows_own_round_ends_it() -> None:
    world = a_world()
    waits = replace(a_run(MESSAGE.occurrence, state=RunState.RETRY_WAIT), round=1, round_attempt=0)
    world.ledger.swap(waits, seen=None)
    assert bury(world, replace(MESSAGE, round=1)).why == RunState.DEAD
    assert world.run_of(MESSAGE).died_at == LONG_AFTER
