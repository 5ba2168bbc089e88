"""Runs that end by a callback: receivers that take them, and call the deployed API back."""

import time
from typing import Any

import pytest
import urllib3

from scripts.receiver import Arrival
from tests.e2e.conftest import RETRY_QUICKLY, Stage, at_in

HEARTBEAT_SECONDS = 60
BY_CALLBACK = {
    "policy": "callback",
    "heartbeat_seconds": HEARTBEAT_SECONDS,
    "max_duration_seconds": 7200,
}
TIMEOUT_SECONDS = 20
SETTLED_SECONDS = 3.0


def taken(stage: Stage, path: str, **definition: Any) -> tuple[str, str, Arrival]:
    """Create a schedule whose only fire has arrived; give its id, that fire and the arrival."""
    expression, fire = at_in(3)
    url = f"{stage.receiver.url}/{path}"
    target = {"type": "webhook", "url": url, "timeout_seconds": TIMEOUT_SECONDS}
    made = stage.create(
        expression=expression,
        target=target,
        completion=BY_CALLBACK,
        **{"retry": RETRY_QUICKLY, **definition},
    )
    assert made["completion"] == BY_CALLBACK
    [arrival, *_] = stage.receiver.wait_for(made["id"], 1, seconds=40)
    assert arrival.is_signed
    return made["id"], fire, arrival


@pytest.mark.parametrize("path", ["works", "works-first"])
def test_a_receiver_completes_after_its_answer_or_before_it(stage: Stage, path: str) -> None:
    schedule, fire, _ = taken(stage, path)
    row = stage.wait_for_state(schedule, fire, "SUCCEEDED", seconds=30)
    assert row["attempt"] == 1
    assert row["attempts"][0]["result"] in {"done", "completed by callback"}
    time.sleep(SETTLED_SECONDS)
    assert stage.occurrence(schedule, fire)["state"] == "SUCCEEDED", "the 202 came after it"
    assert len(stage.receiver.book.of(schedule)) == 1


def test_a_fail_brings_the_next_attempt_with_a_token_of_its_own(stage: Stage) -> None:
    schedule, fire, first = taken(stage, "accepts")
    stage.wait_for_state(schedule, fire, "RUNNING", seconds=20)
    failed = first.call_back("fail", {"reason": "out of disk"})
    assert (failed.status, failed.body["state"]) == (200, "RETRY_WAIT")
    [_, second, *_] = stage.receiver.wait_for(schedule, 2, seconds=40)
    assert second.callback_url != first.callback_url
    assert second.attempt == 2
    for action in ("heartbeat", "complete"):
        stale = first.call_back(action)
        assert (stale.status, stale.body["title"]) == (409, "Conflict")
    assert stage.occurrence(schedule, fire)["state"] == "RUNNING"
    beaten = second.call_back("heartbeat")
    assert (beaten.status, beaten.body["attempt"]) == (200, 2)
    for _ in range(2):
        completed = second.call_back("complete", {"result": "42 rows"})
        assert (completed.status, completed.body["state"]) == (200, "SUCCEEDED")
    row = stage.occurrence(schedule, fire)
    assert [attempt["result"] for attempt in row["attempts"]] == ["out of disk", "42 rows"]


def test_a_receiver_that_is_never_heard_of_loses_its_lease(stage: Stage) -> None:
    schedule, fire, first = taken(stage, "accepts")
    begun = time.monotonic()
    [_, second, *_] = stage.receiver.wait_for(schedule, 2, seconds=120)
    assert time.monotonic() - begun > HEARTBEAT_SECONDS - 5
    assert first.call_back("complete").status == 409
    assert second.call_back("complete").status == 200
    row = stage.wait_for_state(schedule, fire, "SUCCEEDED", seconds=10)
    assert row["attempts"][0]["result"] == "lease ran out"


def test_under_cancel_running_a_heartbeat_tells_that_it_should_end(stage: Stage) -> None:
    schedule, first, arrival = taken(stage, "accepts", overlap="cancel_running")
    expression, second = at_in(3)
    stage.api.call(
        "PATCH",
        stage.path(schedule),
        {
            "expression": expression,
            "target": {"type": "webhook", "url": f"{stage.receiver.url}/works"},
        },
        headers={"If-Match": '"1"'},
    ).expect(200)
    until = time.monotonic() + 40
    while not arrival.call_back("heartbeat").body["cancel_requested"]:
        assert time.monotonic() < until, "nobody asked it to end"
        time.sleep(0.5)
    assert arrival.call_back("fail", {"reason": "asked"}).body["state"] == "CANCELED"
    row = stage.occurrence(schedule, first)
    assert (row["state"], row["reason"]) == ("CANCELED", "overlap after attempt 1")
    stage.wait_for_state(schedule, second, "SUCCEEDED", seconds=60)


def test_a_forged_token_is_told_nothing(stage: Stage) -> None:
    _, _, arrival = taken(stage, "accepts")
    address, _, token = arrival.callback_url.rpartition("/")
    answers = set()
    for forged in (token[:-1], token[::-1], "x", f"{token}A", arrival.key):
        answer = urllib3.request("POST", f"{address}/{forged}/complete", retries=False)
        answers.add((answer.status, answer.data))
    [(status, _)] = answers
    assert status == 404
    assert arrival.call_back("complete").status == 200
