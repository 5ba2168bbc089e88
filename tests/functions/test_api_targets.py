"""Targets, tries and webhook keys through the API's function."""

import io
from typing import Any

import pytest

from puntual.domain.target import Failed
from tests.control_plane_world import BUS, OWN_QUEUE, ROLE
from tests.functions.api_gateway_events import an_event
from tests.functions.conftest import Answered, Api

SCHEDULES = "/v1/tenants/acme/schedules"
TRY = "/v1/tenants/acme/targets/try"
KEYS = "/v1/tenants/acme/webhook-keys"
SECRET = "s3cr3t"  # noqa: S105 a payload, not a password

ARNS = {
    "sqs": ("queue_arn", OWN_QUEUE),
    "sns": ("topic_arn", "arn:aws:sns:us-east-1:123456789012:news"),
    "eventbridge": ("bus_arn", BUS),
    "lambda": ("function_arn", "arn:aws:lambda:us-east-1:123456789012:function:bill:live"),
    "step_functions": (
        "state_machine_arn",
        "arn:aws:states:us-east-1:123456789012:stateMachine:bill",
    ),
}


@pytest.fixture
def registered(api: Api) -> Api:
    body = {"targets": [arn for _, arn in ARNS.values()], "roles": [ROLE]}
    assert api.call("PUT", "/v1/admin/tenants/acme", body).status == 200
    return api


def refusal_of(answer: Answered) -> dict[str, Any]:
    assert answer.status == 400, answer.text
    [error] = answer.body["errors"]
    return dict(error)


def a_body(kind: str, **more: object) -> dict[str, Any]:
    field, arn = ARNS[kind]
    return {
        "expression": "rate(1 hour)",
        "target": {"type": kind, field: arn, "role_arn": ROLE, **more},
    }


@pytest.mark.parametrize("kind", ARNS)
def test_each_kind_of_target_is_shown_as_the_body_that_would_make_it(
    registered: Api, kind: str
) -> None:
    made = registered.call("POST", SCHEDULES, a_body(kind))
    assert made.status == 201, made.text
    event = {"source": "puntual", "detail_type": "Occurrence Due"}
    target = a_body(kind)["target"] | (event if kind == "eventbridge" else {})
    assert made.body["target"] == target
    path, headers = f"{SCHEDULES}/{made.body['id']}", {"If-Match": '"1"'}
    patched = registered.call("PATCH", path, {"payload": 1}, headers=headers)
    assert patched.body["target"] == target


def test_an_events_names_may_be_chosen(registered: Api) -> None:
    body = a_body("eventbridge", source="acme.orders", detail_type="Order Due")
    assert registered.call("POST", SCHEDULES, body).body["target"] == body["target"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (a_body("sqs", queue_arn="x"), "target.queue_arn"),
        (a_body("lambda", function_arn=OWN_QUEUE), "target.function_arn"),
        (a_body("sns", role_arn=None), "target.topic_arn"),
        (a_body("sns", role_arn=f"{ROLE}-2"), "target.role_arn"),
        (a_body("sns", role_arn=7), "target.role_arn"),
        (a_body("sns", external_id="mine"), "target.external_id"),
        (a_body("sns", source="acme"), "target.source"),
        (a_body("eventbridge", source="aws.s3"), "target.source"),
        (a_body("eventbridge", detail_type=""), "target.detail_type"),
        (a_body("step_functions", state_machine_arn=None), "target.state_machine_arn"),
        ({"expression": "rate(1 hour)", "target": {"type": "sns"}}, "target.topic_arn"),
    ],
)
def test_a_target_that_cannot_be_is_refused_by_its_field(
    registered: Api, body: dict[str, Any], field: str
) -> None:
    assert refusal_of(registered.call("POST", SCHEDULES, body))["field"] == field
    tried = registered.call("POST", TRY, {"target": body["target"]})
    assert refusal_of(tried)["field"] == field
    assert registered.world.targets.deliveries == []


def test_the_types_that_there_are_are_named(api: Api) -> None:
    error = refusal_of(api.call("POST", TRY, {"target": {"type": "pigeon"}}))
    assert error == {
        "field": "target.type",
        "value": "pigeon",
        "allowed": "one of webhook, sqs, sns, eventbridge, lambda, step_functions",
    }


def test_a_try_that_fails_is_an_answer_and_no_error(registered: Api) -> None:
    denied = "SNS AuthorizationError: sns:Publish is missing"
    registered.world.targets.script = lambda _: Failed(detail=denied, retryable=False)
    answer = registered.call("POST", TRY, {"target": a_body("sns")["target"], "payload": 7})
    assert answer.status == 200
    assert answer.body == {
        "result": "failed",
        "detail": denied,
        "retryable": False,
        "duration_ms": 0,
        "breaker": None,
    }


@pytest.mark.parametrize("generation", [None, "1", 0, 1.5, True])
def test_a_rotation_names_the_generation_that_it_replaces(api: Api, generation: object) -> None:
    answer = api.call("POST", f"{KEYS}/rotate", {"generation": generation})
    assert refusal_of(answer)["field"] == "generation"
    assert api.call("POST", f"{KEYS}/rotate", {}).status == 400
    assert len(api.call("GET", KEYS).body["keys"]) == 1


def test_a_rotation_of_a_generation_that_is_gone_is_a_conflict(api: Api) -> None:
    for generation in (1, 2):
        rotated = api.call("POST", f"{KEYS}/rotate", {"generation": generation})
        assert rotated.status == 200
    assert api.call("POST", f"{KEYS}/rotate", {"generation": 2}) == rotated
    stale = api.call("POST", f"{KEYS}/rotate", {"generation": 1})
    assert stale.status == 409
    assert "at generation 3, not at 1" in stale.body["detail"]


def test_keys_that_cannot_be_read_now_are_unavailable(api: Api) -> None:
    api.world.root_secret.is_out_of_reach = True
    assert api.call("GET", KEYS).status == 503


def test_keys_are_stored_by_nobody_on_the_way(api: Api) -> None:
    assert api.call("GET", KEYS).headers["Cache-Control"] == "no-store"
    rotated = api.call("POST", f"{KEYS}/rotate", {"generation": 1})
    assert rotated.headers["Cache-Control"] == "no-store"


def test_no_log_and_no_error_shows_a_key_or_a_payload(registered: Api, logged: io.StringIO) -> None:
    keys = registered.call("GET", KEYS).body["keys"]
    registered.call("POST", f"{KEYS}/rotate", {"generation": 1})
    for target in (a_body("sns")["target"], {"type": "sns", "topic_arn": "x"}, {}):
        answer = registered.call("POST", TRY, {"target": target, "payload": {"t": SECRET}})
        assert SECRET not in answer.text

    def explode(_: object) -> Failed:
        raise ZeroDivisionError

    registered.world.targets.script = explode
    event = an_event("POST", TRY, {"target": a_body("sns")["target"], "payload": SECRET})
    assert registered.send(event).status == 500
    said = logged.getvalue()
    assert "unexpected failure" in said
    for secret in (SECRET, keys[0]["key"], registered.world.root_secret.secret.decode()):
        assert secret not in said
