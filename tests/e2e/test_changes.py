"""Edits, pauses, resumes and cancels inside the horizon, where a fire is planned already."""

import time
from datetime import UTC, datetime, timedelta

from tests.e2e.conftest import Stage, at_in

SETTLED_SECONDS = 6.0


def test_an_edit_replaces_a_fire_that_is_already_planned(stage: Stage) -> None:
    expression, fire = at_in(8)
    made = stage.create(expression=expression, payload={"version": 1})
    answer = stage.api.call(
        "PATCH",
        stage.path(made["id"]),
        {"payload": {"version": 2}},
        headers={"If-Match": '"1"'},
    ).expect(200)
    assert answer.headers["etag"] == '"2"'
    (arrival,) = stage.receiver.wait_for(made["id"], 1, seconds=20)
    time.sleep(2)
    assert [each.body for each in stage.receiver.book.of(made["id"])] == [b'{"version":2}']
    assert stage.wait_for_state(made["id"], fire, "SUCCEEDED", seconds=10)["id"] == arrival.key


def test_a_dry_run_writes_nothing_and_the_edit_then_does_what_it_said(stage: Stage) -> None:
    expression, _ = at_in(20)
    made = stage.create(expression=expression)
    sooner, fire = at_in(8)
    patch, first = {"expression": sooner}, {"If-Match": '"1"'}
    dry = stage.api.call(
        "PATCH", stage.path(made["id"], "?dry_run=true"), patch, headers=first
    ).expect(200)
    assert "etag" not in dry.headers
    (move,) = dry.body["changes"]["move"]
    assert move["to"]["utc"] == fire
    assert stage.api.schedule(stage.tenant, made["id"]) == made
    real = stage.api.call("PATCH", stage.path(made["id"]), patch, headers=first).expect(200)
    assert real.headers["etag"] == '"2"'
    for answer in (dry, real):
        for document in (answer.body, answer.body["changes"]):
            for name in ("dry_run", "effective_from", "from", "through"):
                document.pop(name, None)
    assert dry.body == real.body
    (arrival,) = stage.receiver.wait_for(made["id"], 1, seconds=30)
    assert arrival.scheduled_for == fire


def test_an_edit_to_another_time_drops_the_planned_fire(stage: Stage) -> None:
    expression, _ = at_in(6)
    made = stage.create(expression=expression)
    later, fire = at_in(10)
    stage.api.call(
        "PATCH", stage.path(made["id"]), {"expression": later}, headers={"If-Match": '"1"'}
    ).expect(200)
    (arrival,) = stage.receiver.wait_for(made["id"], 1, seconds=60)
    assert arrival.scheduled_for == fire
    assert len(stage.receiver.book.of(made["id"])) == 1


def test_nothing_starts_after_a_pause_answered_and_the_next_fire_follows_a_resume(
    stage: Stage,
) -> None:
    expression, paused_fire = at_in(5)
    made = stage.create(expression=expression)
    stage.api.call("POST", stage.path(made["id"], "/pause")).expect(200)
    time.sleep(SETTLED_SECONDS)
    assert stage.receiver.book.of(made["id"]) == []
    stage.wait_for_state(made["id"], paused_fire, "CANCELED", seconds=15)
    stage.api.call("POST", stage.path(made["id"], "/resume")).expect(200)
    later, fire = at_in(3)
    stage.api.call(
        "PATCH", stage.path(made["id"]), {"expression": later}, headers={"If-Match": '"3"'}
    ).expect(200)
    (arrival,) = stage.receiver.wait_for(made["id"], 1, seconds=20)
    assert arrival.scheduled_for == fire


def test_a_cancel_says_what_is_out_and_keeps_it_from_starting(stage: Stage) -> None:
    expression, fire = at_in(5)
    made = stage.create(expression=expression)
    answer = stage.api.call("DELETE", stage.path(made["id"])).expect(200).body
    assert [each["scheduled_for"] for each in answer["already_out"]] == [fire]
    assert answer["running"] == []
    stage.wait_for_state(made["id"], fire, "CANCELED", seconds=20)
    assert stage.receiver.book.of(made["id"]) == []
    assert stage.api.schedule(stage.tenant, made["id"])["state"] == "CANCELED"


def test_a_resume_before_the_fire_lets_it_run_once(stage: Stage) -> None:
    due = datetime.now(UTC) + timedelta(seconds=8)
    made = stage.create(expression=f"at({due:%Y-%m-%dT%H:%M:%S})")
    stage.api.call("POST", stage.path(made["id"], "/pause")).expect(200)
    stage.api.call("POST", stage.path(made["id"], "/resume")).expect(200)
    stage.receiver.wait_for(made["id"], 1, seconds=20)
    time.sleep(2)
    assert len(stage.receiver.book.of(made["id"])) == 1
