"""Bad input through the deployed API: a 4xx problem that names field, value and what is allowed."""

import uuid
from typing import Any

import pytest

from tests.e2e.conftest import Stage

GOOD: dict[str, Any] = {
    "expression": "rate(1 hour)",
    "target": {"type": "webhook", "url": "https://receiver.example/hook"},
}

BAD_BODIES = [
    pytest.param({"time_zone": "Mars/Olympus"}, 400, "time_zone", id="unknown zone"),
    pytest.param({"expression": "61 * * * *"}, 400, "expression", id="refused expression"),
    pytest.param({"expression": "at(2001-01-01T00:00:00)"}, 400, "expression", id="at in the past"),
    pytest.param({"expression": "0 0 31 2 *"}, 400, "expression", id="never fires"),
    pytest.param(
        {"start_at": "2031-01-02T00:00:00Z", "end_at": "2031-01-01T00:00:00Z"},
        400,
        "end_at",
        id="end before start",
    ),
    pytest.param(
        {"flexible_window_seconds": 3601},
        400,
        "flexible_window_seconds",
        id="window beyond the interval",
    ),
    pytest.param({"payload": "x" * 70_000}, 413, "payload", id="payload too large"),
    pytest.param({"surprise": 1}, 400, "surprise", id="unknown field"),
    pytest.param({"id": ".."}, 400, "id", id="bad id"),
    pytest.param(
        {"target": {"type": "webhook", "url": "ftp://receiver.example"}},
        400,
        "target.url",
        id="bad target URL",
    ),
    pytest.param(
        {"target": {"type": "sqs", "queue_arn": "arn:aws:sqs:us-east-1:000000000000:puntual-x"}},
        400,
        "target.queue_arn",
        id="foreign queue",
    ),
]


@pytest.mark.parametrize(("changed", "status", "field"), BAD_BODIES)
def test_a_bad_definition_is_refused_by_name_and_leaves_nothing(
    stage: Stage, changed: dict[str, Any], status: int, field: str
) -> None:
    answer = stage.api.call("POST", schedules_of(stage), {**GOOD, **changed})
    expect_problem(answer.headers, answer.body, status, field)
    assert answer.status == status
    assert stage.api.call("GET", schedules_of(stage)).expect(200).body["schedules"] == []


def test_malformed_json_is_refused(stage: Stage) -> None:
    answer = stage.api.call("POST", schedules_of(stage), b'{"expression": ')
    assert answer.status == 400
    assert answer.headers["content-type"].startswith("application/problem+json")


def test_an_unknown_tenant_is_not_found(stage: Stage) -> None:
    answer = stage.api.call("POST", f"v1/tenants/nobody-{uuid.uuid4().hex[:6]}/schedules", GOOD)
    assert answer.status == 404
    assert answer.body["errors"][0]["field"] == "tenant"


def test_an_id_that_is_taken_conflicts(stage: Stage) -> None:
    body = {**GOOD, "id": "twice"}
    stage.api.create(stage.tenant, body)
    answer = stage.api.call("POST", schedules_of(stage), body)
    expect_problem(answer.headers, answer.body, 409, "id")


def test_a_stale_if_match_is_refused_and_changes_nothing(stage: Stage) -> None:
    made = stage.api.create(stage.tenant, GOOD)
    path = stage.path(made["id"])
    patch = {"expression": "rate(2 hours)"}
    stage.api.call("PATCH", path, patch, headers={"If-Match": '"1"'}).expect(200)
    answer = stage.api.call("PATCH", path, {"payload": 1}, headers={"If-Match": '"1"'})
    expect_problem(answer.headers, answer.body, 412, "If-Match")
    assert stage.api.schedule(stage.tenant, made["id"])["version"] == 2
    assert stage.api.call("PATCH", path, patch).status == 428


def test_a_bad_page_token_is_refused(stage: Stage) -> None:
    answer = stage.api.call("GET", schedules_of(stage) + "?page_token=guess")
    expect_problem(answer.headers, answer.body, 400, "page_token")


def test_an_idempotency_key_gives_one_schedule_and_takes_no_other_body(stage: Stage) -> None:
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    first = stage.api.call("POST", schedules_of(stage), GOOD, headers=headers).expect(201)
    again = stage.api.call("POST", schedules_of(stage), GOOD, headers=headers).expect(201)
    assert first.body == again.body
    other = stage.api.call("POST", schedules_of(stage), {**GOOD, "payload": 2}, headers=headers)
    expect_problem(other.headers, other.body, 422, "Idempotency-Key")
    listed = stage.api.call("GET", schedules_of(stage)).expect(200).body["schedules"]
    assert len(listed) == 1


def schedules_of(stage: Stage) -> str:
    return f"v1/tenants/{stage.tenant}/schedules"


def expect_problem(headers: Any, body: Any, status: int, field: str) -> None:
    assert headers["content-type"].startswith("application/problem+json")
    assert body["status"] == status, body
    named = [error["field"] for error in body["errors"]]
    assert field in named, body
    assert all(error["allowed"] for error in body["errors"])
