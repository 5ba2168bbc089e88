"""Messages that a gate held: not before then, and not late for it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from puntual.domain.gate import BY_FIRES
from puntual.domain.judgement import Claim, End, Park, Standing, Verdict, before_row, judge
from puntual.domain.message import Message
from puntual.domain.policies import Misfire, MisfirePolicy, Policies
from puntual.domain.run import RunState
from tests.builders import NINE, a_message, a_schedule, a_version, an_occurrence

SECOND = timedelta(seconds=1)
FIRE = NINE + timedelta(minutes=5)
HELD_UNTIL = FIRE + timedelta(minutes=10)
MESSAGE = replace(
    a_message(an_occurrence(scheduled_for=FIRE)), held_until=HELD_UNTIL, held_by=BY_FIRES
)


def verdict(message: Message, misfire: MisfirePolicy, *, after: timedelta) -> Verdict:
    version = a_version(policies=Policies(misfire=misfire))
    now = HELD_UNTIL + after
    at = Standing(asked_at=now, head=a_schedule(version), version=version, until=None)
    return judge(message, None, at, now)


def test_a_message_is_held_until_then_and_says_by_whom() -> None:
    assert before_row(MESSAGE, HELD_UNTIL - SECOND) == Park(until=HELD_UNTIL, why=BY_FIRES)
    assert before_row(MESSAGE, HELD_UNTIL) is None


@pytest.mark.parametrize("policy", [Misfire.SKIP, Misfire.FIRE_ONCE])
def test_e5_what_a_gate_held_is_late_from_then_on(policy: Misfire) -> None:
    misfire = MisfirePolicy(policy=policy)
    in_time = verdict(MESSAGE, misfire, after=60 * SECOND)
    assert isinstance(in_time, Claim)
    too_late = verdict(MESSAGE, misfire, after=61 * SECOND)
    assert isinstance(too_late, End)
    assert too_late.run.state is RunState.MISSED
    unheld = replace(MESSAGE, held_until=None)
    assert isinstance(verdict(unheld, misfire, after=timedelta(0)), End)


def test_a_hold_of_before_its_time_makes_nothing_later() -> None:
    held = replace(MESSAGE, held_until=FIRE - timedelta(hours=1))
    assert held.starts_at == FIRE


def test_max_lateness_counts_the_time_at_a_gate_too() -> None:
    misfire = MisfirePolicy(max_lateness=timedelta(minutes=10))
    assert isinstance(verdict(MESSAGE, misfire, after=timedelta(0)), Claim)
    found = verdict(MESSAGE, misfire, after=SECOND)
    assert isinstance(found, End)
    assert (found.run.reason, found.run.held_by) == ("max_lateness", BY_FIRES)


def test_a_row_tells_who_held_its_first_attempt() -> None:
    found = verdict(MESSAGE, MisfirePolicy(), after=timedelta(0))
    assert isinstance(found, Claim)
    assert (found.run.held_until, found.run.held_by) == (HELD_UNTIL, BY_FIRES)


def test_after_an_attempt_nothing_is_left_of_a_hold() -> None:
    held = replace(MESSAGE, holds=3, tokens=("fires",), blocked_since=FIRE, lost_races=1)
    assert held.tried() == a_message(an_occurrence(scheduled_for=FIRE))
