"""No attempt starts later than the deadline after the first one of its round."""

from dataclasses import replace
from datetime import timedelta

import pytest

from puntual.domain.judgement import Claim, End, Standing, failed, judge
from puntual.domain.policies import Policies, RetryPolicy
from puntual.domain.run import Attempt, Run, RunState
from puntual.domain.target import Failed
from tests.builders import NINE, a_message, a_run, a_schedule, a_version

SECOND = timedelta(seconds=1)
BEGAN = NINE + SECOND
"""When the attempts of `a_run` begin."""

RETRY = RetryPolicy(max_attempts=9, base=timedelta(seconds=10), deadline=timedelta(seconds=60))
DOWN = Failed(detail="HTTP 503", retryable=True)


def after(seconds: float, *, chance: float = 0.5, failure: Failed = DOWN, **facts: object) -> Run:
    run = replace(a_run(attempt=3), **facts)  # type: ignore[arg-type]  # of a row
    now = BEGAN + timedelta(seconds=seconds)
    return failed(run, failure, retry=RETRY, chance=chance, now=now)


@pytest.mark.parametrize(
    ("seconds", "chance", "waits"),
    [(10, 0.5, 20), (40, 0.5, 10), (40, 0.999, 19.98), (59, 0.5, 0.5), (60, 0, 0)],
)
def test_chance_never_leads_beyond_the_deadline(
    seconds: float, chance: float, waits: float
) -> None:
    run = after(seconds, chance=chance)
    assert run.state is RunState.RETRY_WAIT
    assert run.not_before is not None
    wait = run.not_before - BEGAN - timedelta(seconds=seconds)
    assert wait == pytest.approx(timedelta(seconds=waits), abs=timedelta(milliseconds=1))


def test_behind_the_deadline_a_failure_is_the_end() -> None:
    run = after(60.001, chance=0)
    assert (run.state, run.reason) == (RunState.DEAD, "deadline: HTTP 503")
    assert run.died_at == BEGAN + timedelta(seconds=60.001)


def test_a_receiver_that_asks_for_more_time_than_there_is_gets_none() -> None:
    asks = replace(DOWN, retry_after=timedelta(seconds=30))
    assert after(29, failure=asks).state is RunState.RETRY_WAIT
    assert after(31, failure=asks).reason == "deadline: HTTP 503"


def test_a_refusal_and_spent_attempts_keep_their_own_reason() -> None:
    assert after(90, failure=replace(DOWN, retryable=False)).reason == "HTTP 503"
    assert after(90, round_attempt=9).reason == "HTTP 503"


def test_each_round_has_a_deadline_of_its_own() -> None:
    first = a_run(attempt=3).attempts
    own = Attempt(number=4, started_at=BEGAN + timedelta(hours=5), round=1)
    run = after(5 * 3600 + 10, round=1, round_attempt=1, attempts=(*first, own))
    assert run.state is RunState.RETRY_WAIT


@pytest.mark.parametrize("state", [RunState.RETRY_WAIT, RunState.RUNNING])
@pytest.mark.parametrize(("seconds", "dead"), [(60, False), (60.001, True)])
def test_a_message_that_comes_behind_the_deadline_ends_its_run(
    state: RunState, seconds: float, *, dead: bool
) -> None:
    version = a_version(policies=Policies(retry=RETRY))
    standing = Standing(asked_at=NINE, head=a_schedule(version), version=version, until=None)
    row = replace(a_run(state=state), lease_until=None)
    verdict = judge(a_message(), row, standing, BEGAN + timedelta(seconds=seconds))
    if dead:
        assert isinstance(verdict, End)
        assert (verdict.run.state, verdict.run.reason) == (RunState.DEAD, "deadline")
    else:
        assert isinstance(verdict, Claim)


def test_a_round_that_has_not_begun_is_never_behind_its_deadline() -> None:
    version = a_version(policies=Policies(retry=RETRY))
    standing = Standing(asked_at=NINE, head=a_schedule(version), version=version, until=None)
    row = replace(a_run(state=RunState.RETRY_WAIT), round=1, round_attempt=0)
    verdict = judge(a_message(), row, standing, BEGAN + timedelta(days=1))
    assert isinstance(verdict, Claim)
