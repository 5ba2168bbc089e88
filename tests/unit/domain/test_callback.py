from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from puntual.domain.callback import (
    COMPLETED,
    FAILED,
    accepted,
    completed,
    ends_at,
    lapse_of,
    reason_of,
    renewed,
    result_of,
    retry_of,
)
from puntual.domain.errors import Rejected
from puntual.domain.policies import Completion, CompletionPolicy
from puntual.domain.run import (
    DETAIL_LENGTH_MAX,
    LEASE_RAN_OUT,
    MAX_DURATION_REACHED,
    RESULT_BYTES_MAX,
    Run,
    RunState,
)
from tests.builders import NINE, a_run, an_occurrence

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
RUN = a_run()
STARTED = RUN.attempts[-1].started_at
POLICY = CompletionPolicy(
    policy=Completion.CALLBACK, heartbeat=2 * MINUTE, max_duration=timedelta(hours=2)
)
ENDS = STARTED + POLICY.max_duration


@pytest.mark.parametrize(
    ("now", "lease"),
    [
        (STARTED, STARTED + 2 * MINUTE),
        (STARTED + 90 * MINUTE, STARTED + 92 * MINUTE),
        (ENDS - 3 * MINUTE, ENDS - MINUTE),
        (ENDS - MINUTE, ENDS),
        (ENDS, ENDS),
        (ENDS + MINUTE, ENDS),
    ],
)
def test_a_heartbeat_holds_the_lease_up_to_the_longest_duration(
    now: datetime, lease: datetime
) -> None:
    assert renewed(RUN, POLICY, now=now) == replace(RUN, lease_until=lease)
    assert ends_at(RUN, POLICY) == ENDS


def test_leases_only_rise() -> None:
    """The claim's own may be longer, where the target has long to answer; clocks differ."""
    long = replace(RUN, lease_until=STARTED + 14 * MINUTE)
    assert renewed(long, POLICY, now=STARTED) == long
    beyond = replace(RUN, lease_until=ENDS + MINUTE)
    assert renewed(beyond, POLICY, now=ENDS) == beyond


def test_the_duration_counts_from_the_start_of_the_newest_attempt() -> None:
    third = a_run(attempt=3)
    later = replace(third.attempts[-1], started_at=STARTED + timedelta(hours=1))
    third = replace(third, attempts=(*third.attempts[:-1], later))
    assert ends_at(third, POLICY) == ENDS + timedelta(hours=1)


def test_what_was_accepted_says_by_which_answer() -> None:
    run = accepted(RUN, POLICY, detail="HTTP 202", now=STARTED + SECOND)
    assert (run.state, run.attempt) == (RunState.RUNNING, 1)
    assert run.lease_until == STARTED + SECOND + 2 * MINUTE
    assert (run.attempts[-1].result, run.attempts[-1].finished_at) == ("HTTP 202", None)


def test_what_was_asked_to_end_stays_so() -> None:
    asked = replace(RUN, cancel_requested=True)
    assert renewed(asked, POLICY, now=STARTED).cancel_requested
    assert accepted(asked, POLICY, detail="HTTP 202", now=STARTED).cancel_requested


def test_a_completed_run_keeps_the_whole_result() -> None:
    result = "r" * RESULT_BYTES_MAX
    run = completed(RUN, result=result, now=STARTED + MINUTE)
    assert (run.state, run.lease_until) == (RunState.SUCCEEDED, None)
    assert run.attempts[-1].result == result
    assert run.attempts[-1].finished_at == STARTED + MINUTE


@pytest.mark.parametrize(
    ("run", "policy", "why"),
    [
        (RUN, POLICY, LEASE_RAN_OUT),
        (replace(RUN, lease_until=ENDS), POLICY, MAX_DURATION_REACHED),
        (replace(RUN, lease_until=ENDS), CompletionPolicy(), LEASE_RAN_OUT),
        (replace(RUN, attempts=()), POLICY, LEASE_RAN_OUT),
        (a_run(state=RunState.RETRY_WAIT), POLICY, LEASE_RAN_OUT),
    ],
)
def test_a_lease_runs_out_for_want_of_heartbeats_or_by_its_longest_duration(
    run: Run, policy: CompletionPolicy, why: str
) -> None:
    assert lapse_of(run, policy) == why


def test_rows_tell_whether_a_token_s_attempt_runs() -> None:
    mine = an_occurrence()
    assert RUN.runs_attempt(mine, 1)
    assert not RUN.runs_attempt(mine, 2)
    assert not RUN.runs_attempt(an_occurrence(version=2), 1)
    ended = a_run(state=RunState.SUCCEEDED)
    assert ended.is_attempt(mine, 1)
    assert not ended.runs_attempt(mine, 1)


@pytest.mark.parametrize("text", ["42 rows", "é" * (RESULT_BYTES_MAX // 2), "\u0000"])
def test_a_result_is_any_short_text(text: str) -> None:
    assert result_of(text) == text
    assert result_of(None) == COMPLETED


@pytest.mark.parametrize(
    "value", ["", "r" * (RESULT_BYTES_MAX + 1), "é" * RESULT_BYTES_MAX, "\ud800", 1, True, {}, []]
)
def test_another_result_is_refused_and_not_shown(value: object) -> None:
    with pytest.raises(Rejected) as caught:
        result_of(value)
    assert caught.value.field == "result"
    assert isinstance(caught.value.value, str)
    assert "rrr" not in caught.value.value


@pytest.mark.parametrize("value", ["", "r" * (DETAIL_LENGTH_MAX + 1), "\udfff", 1, [], {}])
def test_a_reason_is_a_line_of_text(value: object) -> None:
    assert reason_of("out of disk") == "out of disk"
    assert reason_of(None) == FAILED
    with pytest.raises(Rejected, match="reason"):
        reason_of(value)


@pytest.mark.parametrize("value", [True, False])
def test_retry_is_true_or_false(value: object) -> None:
    assert retry_of(value) is value


@pytest.mark.parametrize("value", [None, "true", 1, 0, []])
def test_another_retry_is_refused(value: object) -> None:
    with pytest.raises(Rejected, match="retry"):
        retry_of(value)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("", "text of 0 characters"),
        (None, "null"),
        (0, "a number"),
        (1.5, "a number"),
        ([], "an array"),
        ({}, "an object"),
    ],
)
def test_what_is_refused_is_named_as_json_names_it(value: object, shown: str) -> None:
    with pytest.raises(Rejected) as caught:
        retry_of(value)
    assert caught.value.value == shown
    with pytest.raises(Rejected) as caught:
        result_of(True)  # noqa: FBT003 the value that is refused
    assert (caught.value.value, caught.value.allowed) == (
        "true",
        "text of 1 to 1024 bytes in UTF-8",
    )


def test_by_default_the_answer_ends_an_attempt() -> None:
    assert not CompletionPolicy().is_by_callback
    assert POLICY.is_by_callback
    assert NINE < ENDS
