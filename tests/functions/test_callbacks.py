"""The function that targets call back: its answers, and what it never says."""

import base64
import io
import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from logging import StreamHandler
from typing import Any

import pytest

from functions.callbacks.handler import ACTIONS, BODY_BYTES_MAX, handler, logger
from puntual import bootstrap
from puntual.domain.callback_token import Ticket, token_of
from puntual.domain.lane import Lane
from puntual.domain.policies import Completion, CompletionPolicy, Policies
from puntual.domain.run import RESULT_BYTES_MAX, Run, RunState
from tests.builders import a_run, a_version, an_occurrence, written_as
from tests.functions.deployed import ROOT, Deployed, LambdaContext, deployed, recorded

EVENT = recorded("http_api_callback")
BY_CALLBACK = Policies(completion=CompletionPolicy(policy=Completion.CALLBACK))
HEARTBEAT, COMPLETE, FAIL = ACTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    world: Deployed
    run: Run

    @property
    def token(self) -> str:
        ticket = Ticket(occurrence=self.run.occurrence, attempt=self.run.attempt)
        return token_of(ticket, root=ROOT.encode())

    def call(self, route: str, body: object = None, *, token: str | None = None) -> Any:
        answer = handler(an_event(route, token or self.token, body), LambdaContext())
        answer["document"] = json.loads(answer["body"])
        return answer

    def row(self) -> Run | None:
        return self.world.ledger.read(self.run.occurrence.key)


def an_event(route: str, token: str, body: object) -> Any:
    """Give the recorded event for another call; text goes as it is, anything else as JSON."""
    event = deepcopy(EVENT)
    event["routeKey"] = event["requestContext"]["routeKey"] = route
    path = route.removeprefix("POST ").replace("{token}", token)
    event["rawPath"] = event["requestContext"]["http"]["path"] = path
    event["pathParameters"]["token"] = token
    if body is not None:
        event["body"] = body if isinstance(body, str) else json.dumps(body)
    return event


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A run that its target took half a minute ago."""
    started = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=30)
    occurrence = an_occurrence(scheduled_for=started)
    run = replace(a_run(occurrence), lease_until=started + timedelta(minutes=2))
    with deployed() as world:
        world.creates(a_version(policies=BY_CALLBACK, effective_from=started - timedelta(hours=1)))
        assert world.ledger.swap(run, seen=None)
        yield Stage(world=world, run=run)


@pytest.fixture
def said() -> Iterator[io.StringIO]:
    text = io.StringIO()
    registered = logger.registered_handler
    assert isinstance(registered, StreamHandler)
    before = registered.setStream(text)
    yield text
    registered.setStream(before)


def test_a_heartbeat_raises_the_lease_and_tells_what_the_run_is(stage: Stage) -> None:
    answer = stage.call(HEARTBEAT)
    assert answer["statusCode"] == 200
    assert answer["headers"]["Content-Type"] == "application/json"
    row = stage.row()
    assert row is not None
    assert row.lease_until is not None
    assert stage.run.lease_until is not None
    assert row.lease_until > stage.run.lease_until
    assert answer["document"] == {
        "state": "RUNNING",
        "attempt": 1,
        "lease_until": row.lease_until.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "not_before": None,
        "cancel_requested": False,
    }


def test_e7_a_heartbeat_tells_of_the_request_to_end(stage: Stage) -> None:
    asked = replace(written_as(stage.run, "asked"), cancel_requested=True)
    assert stage.world.ledger.swap(asked, seen=stage.run)
    assert stage.call(HEARTBEAT)["document"]["cancel_requested"] is True
    assert stage.call(FAIL, {"retry": False})["document"]["state"] == "CANCELED"


@pytest.mark.parametrize("body", [None, "", " ", {}, {"result": "42 rows"}])
def test_a_complete_may_say_a_result_and_be_repeated(stage: Stage, body: object) -> None:
    first = stage.call(COMPLETE, body)
    assert (first["statusCode"], first["document"]["state"]) == (200, "SUCCEEDED")
    before = stage.row()
    again = stage.call(COMPLETE, body)
    assert (again["statusCode"], again["document"]) == (200, first["document"])
    assert stage.row() == before


def test_p7_a_fail_leaves_a_retry_and_its_message(stage: Stage) -> None:
    answer = stage.call(FAIL, {"reason": "out of disk", "retry": True})
    assert (answer["statusCode"], answer["document"]["state"]) == (200, "RETRY_WAIT")
    assert answer["document"]["not_before"]
    assert stage.world.waiting(Lane.STRICT) == 1
    row = stage.row()
    assert row is not None
    assert row.reason == "out of disk"


def test_a_fail_for_good_is_dead(stage: Stage) -> None:
    assert stage.call(FAIL, {"retry": False})["document"]["state"] == "DEAD"
    assert stage.world.waiting(Lane.STRICT) == 0


@pytest.mark.parametrize("route", ACTIONS)
def test_e1_a_stale_token_gets_409_and_changes_nothing(stage: Stage, route: str) -> None:
    next_attempt = a_run(stage.run.occurrence, attempt=2, write_id="next")
    assert stage.world.ledger.swap(next_attempt, seen=stage.run)
    answer = stage.call(route)
    assert answer["statusCode"] == 409
    assert answer["headers"]["Content-Type"] == "application/problem+json"
    assert answer["document"] == {
        "type": "about:blank",
        "title": "Conflict",
        "status": 409,
        "detail": "attempt 1 has ended; nothing was changed",
    }
    assert stage.row() == next_attempt


@pytest.mark.parametrize("route", ACTIONS)
@pytest.mark.parametrize("token", ["forged", "x" * 5_000, "é", "a.b"])
def test_any_other_token_is_answered_alike_before_a_table_is_read(
    stage: Stage, route: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("a table was read")

    monkeypatch.setattr(bootstrap.dynamodb_client(), "get_item", never)
    for body in (None, "not JSON"):
        answer = stage.call(route, body, token=token)
        assert answer["statusCode"] == 404
        assert answer["document"] == {
            "type": "about:blank",
            "title": "Not Found",
            "status": 404,
            "detail": "There is no such callback.",
        }


@pytest.mark.parametrize(
    ("route", "body", "field", "allowed"),
    [
        (HEARTBEAT, {"result": "x"}, "body", "no members"),
        (COMPLETE, {"reason": "x"}, "body", "only result"),
        (COMPLETE, {"result": 7}, "result", "text of 1 to 1024 bytes in UTF-8"),
        (COMPLETE, {"result": "r" * (RESULT_BYTES_MAX + 1)}, "result", "1 to 1024 bytes"),
        (FAIL, {"reason": ""}, "reason", "text of 1 to 200 characters"),
        (FAIL, {"retry": "yes"}, "retry", "true or false"),
        (FAIL, {"retry": None}, "retry", "true or false"),
        (FAIL, {"result": "x"}, "body", "only reason, retry"),
        (FAIL, "[]", "body", "one JSON object"),
        (FAIL, "{", "body", "one JSON object"),
        (FAIL, "[" * 4_000, "body", "one JSON object"),
        (FAIL, '{"retry": NaN}', "body", "one JSON object"),
        (FAIL, '{"retry": true, "retry": false}', "body", "each name once"),
    ],
)
def test_what_is_wrong_with_a_body_is_named_and_nothing_changes(
    stage: Stage, route: str, body: object, field: str, allowed: str
) -> None:
    answer = stage.call(route, body)
    assert answer["statusCode"] == 400
    [error] = answer["document"]["errors"]
    assert error["field"] == field
    assert allowed in error["allowed"]
    assert stage.row() == stage.run


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (1, "a number"),
        (True, "true"),
        ([], "an array"),
        ({}, "an object"),
        ("x" * 2_000, "text of 2000 characters"),
    ],
)
def test_a_refused_value_is_named_by_its_kind_in_json(
    stage: Stage, value: object, told: str
) -> None:
    [error] = stage.call(COMPLETE, {"result": value})["document"]["errors"]
    assert error["value"] == told


def test_a_large_body_is_refused_unread(stage: Stage) -> None:
    answer = stage.call(COMPLETE, {"result": "r" * BODY_BYTES_MAX})
    assert answer["statusCode"] == 413
    assert stage.call(COMPLETE, "x" * 1_000_000)["statusCode"] == 413
    assert stage.row() == stage.run


def test_a_large_body_in_base64_is_refused_by_its_own_size(stage: Stage) -> None:
    event = an_event(COMPLETE, stage.token, None)
    event["body"] = base64.b64encode(b"x" * 20_000).decode()
    event["isBase64Encoded"] = True
    answer = handler(event, LambdaContext())
    assert answer["statusCode"] == 413
    assert json.loads(answer["body"])["errors"][0]["value"] == "20000 bytes"


def test_a_body_in_base64_is_read(stage: Stage) -> None:
    event = an_event(COMPLETE, stage.token, None)
    event["body"] = base64.b64encode('{"result":"¡olé!"}'.encode()).decode()
    event["isBase64Encoded"] = True
    assert handler(event, LambdaContext())["statusCode"] == 200
    row = stage.row()
    assert row is not None
    assert row.attempts[-1].result == "¡olé!"


def test_the_longest_result_is_taken_however_it_is_written(stage: Stage) -> None:
    body = json.dumps({"result": "\u0001" * RESULT_BYTES_MAX})
    assert stage.call(COMPLETE, body)["statusCode"] == 200


def test_a_queue_that_is_gone_is_no_failure_of_the_caller(stage: Stage) -> None:
    """The retry is recorded, and the message that looks at the lease finds it."""
    stage.world.sqs.delete_queue(QueueUrl=stage.world.queue_urls[Lane.STRICT])
    stage.call(FAIL, {"retry": True})
    row = stage.row()
    assert row is not None
    assert row.state is RunState.RETRY_WAIT


def test_an_unexpected_failure_is_a_problem_too(stage: Stage) -> None:
    stage.world.dynamodb.delete_table(TableName="occurrences")
    answer = stage.call(HEARTBEAT)
    assert answer["statusCode"] == 500
    assert answer["document"]["detail"] == "An unexpected failure; it was logged."


@pytest.mark.parametrize("route", ACTIONS)
def test_no_log_and_no_answer_shows_a_token_a_result_or_a_reason(
    stage: Stage, said: io.StringIO, route: str
) -> None:
    bodies = {COMPLETE: {"result": "s3cr3t"}, FAIL: {"reason": "s3cr3t"}}
    answers = [stage.call(route, bodies.get(route)), stage.call(route, "{")]
    answers += [stage.call(route, token=stage.token[:-1])]
    stage.world.dynamodb.delete_table(TableName="occurrences")
    answers += [stage.call(route)]
    shown = said.getvalue() + "".join(answer["body"] for answer in answers)
    assert "called back" in shown
    assert stage.run.occurrence.id in shown
    for secret in (stage.token[:-1], "s3cr3t", ROOT):
        assert secret not in shown


def test_a_row_never_holds_a_token(stage: Stage) -> None:
    stage.call(HEARTBEAT)
    rows = stage.world.dynamodb.scan(TableName="occurrences")["Items"]
    assert stage.token not in json.dumps(rows)
