"""Receivers that fail, and functions that die on the way."""

import time
from typing import Any

import pytest

from scripts.functions import kill_function
from tests.e2e.conftest import RETRY_QUICKLY, Stage, at_in

KILLED_SECONDS = 150.0
"""A killed executor's message comes back after its visibility, and its lease must run out."""


def test_a_500_is_tried_again_under_the_same_key(stage: Stage) -> None:
    expression, fire = at_in(2)
    made = stage.create("fails-once", expression=expression, retry=RETRY_QUICKLY)
    first, second = stage.receiver.wait_for(made["id"], 2, seconds=30)
    assert (first.status, second.status) == (500, 200)
    assert first.key == second.key
    assert (first.attempt, second.attempt) == (1, 2)
    row = stage.wait_for_state(made["id"], fire, "SUCCEEDED", seconds=10)
    assert [attempt["result"] for attempt in row["attempts"]] == ["HTTP 500", "HTTP 200"]


def test_a_receiver_that_stays_down_ends_dead_with_its_last_error(stage: Stage) -> None:
    expression, fire = at_in(2)
    made = stage.create("down", expression=expression, retry=RETRY_QUICKLY)
    row = stage.wait_for_state(made["id"], fire, "DEAD", seconds=40)
    assert row["reason"] == "HTTP 503"
    assert len(stage.receiver.book.of(made["id"])) == RETRY_QUICKLY["max_attempts"]


def test_a_receiver_that_stays_down_is_given_up_at_the_deadline(stage: Stage) -> None:
    expression, fire = at_in(2)
    retry = {"max_attempts": 20, "base_seconds": 2, "cap_seconds": 2, "deadline_seconds": 6}
    made = stage.create("down", expression=expression, retry=retry)
    row = stage.wait_for_state(made["id"], fire, "DEAD", seconds=40)
    assert row["reason"].startswith("deadline")
    assert row["last_error"] == "HTTP 503"
    assert 1 < row["attempt"] < retry["max_attempts"]


def test_a_refusal_is_final_at_once(stage: Stage) -> None:
    expression, fire = at_in(2)
    made = stage.create("refuses", expression=expression, retry=RETRY_QUICKLY)
    row = stage.wait_for_state(made["id"], fire, "DEAD", seconds=20)
    assert row["reason"] == "HTTP 400"
    assert len(stage.receiver.book.of(made["id"])) == 1


def test_a_receiver_that_hangs_is_cut_off_and_tried_again(stage: Stage) -> None:
    expression, fire = at_in(2)
    target = {"type": "webhook", "url": f"{stage.receiver.url}/hangs", "timeout_seconds": 2}
    retry = {**RETRY_QUICKLY, "max_attempts": 2}
    made = stage.create(expression=expression, target=target, retry=retry)
    row = stage.wait_for_state(made["id"], fire, "DEAD", seconds=40)
    assert "timeout" in row["reason"]
    assert len(row["attempts"]) == 2


@pytest.mark.disruptive
def test_an_executor_killed_in_the_middle_of_a_call_is_followed_by_another_attempt(
    stage: Stage,
) -> None:
    expression, fire = at_in(2)
    target = {"type": "webhook", "url": f"{stage.receiver.url}/hangs-first", "timeout_seconds": 15}
    made = stage.create(expression=expression, target=target, retry=RETRY_QUICKLY)
    assert stage.receiver.wait_for(made["id"], 1, seconds=30)
    assert kill_function(stage.outputs["functions"]["executor"])
    arrivals = stage.receiver.wait_for(made["id"], 2, seconds=KILLED_SECONDS)
    assert [arrival.attempt for arrival in arrivals] == [1, 2]
    assert len({arrival.key for arrival in arrivals}) == 1
    row = stage.wait_for_state(made["id"], fire, "SUCCEEDED", seconds=30)
    assert [attempt["result"] for attempt in row["attempts"]] == ["lease ran out", "HTTP 200"]


@pytest.mark.disruptive
def test_planners_killed_again_and_again_delay_nothing_that_is_planned_ahead(
    stage: Stage,
) -> None:
    made = stage.create(expression="* * * * *")
    planner = stage.outputs["functions"]["planner"]
    end, killed = time.monotonic() + 70, 0
    while time.monotonic() < end:
        killed += kill_function(planner)
        time.sleep(0.05)
    assert killed
    arrivals = stage.receiver.wait_for(made["id"], 3, seconds=200)
    fires = [arrival.scheduled_for for arrival in arrivals]
    assert len(set(fires)) == len(fires) >= 3


def test_unsigned_calls_are_refused_with_a_problem(stage: Stage) -> None:
    answer = stage.api.call("GET", f"v1/tenants/{stage.tenant}/schedules", signed=False)
    assert answer.status == 403
    problem: dict[str, Any] = answer.body
    assert answer.headers["content-type"].startswith("application/problem+json")
    assert problem["status"] == 403
