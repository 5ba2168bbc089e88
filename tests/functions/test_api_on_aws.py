"""The API's function wired as in Lambda, on tables that moto plays."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from functions.api import handler as function
from puntual import bootstrap
from tests.contract.tables import make_tables
from tests.functions.api_gateway_events import CALLER, an_event
from tests.functions.conftest import Answered, Context

SCHEDULES = "/v1/tenants/acme/schedules"
SETTINGS = {
    "SCHEDULES_TABLE": "schedules",
    "VERSIONS_TABLE": "schedule_versions",
    "AGENDA_TABLE": "agenda",
    "OUTBOX_TABLE": "outbox",
    "OCCURRENCES_TABLE": "occurrences",
    "SHARDS_TABLE": "shards",
    "TENANTS_TABLE": "tenants",
    "IDEMPOTENCY_TABLE": "idempotency",
    "ENVIRONMENT": "prod",
    "WEBHOOK_ROOT_SECRET_ARN": "webhook-root",
    "SHARD_COUNT": "4",
    "HORIZON_SECONDS": "600",
    "RETENTION_DAYS": "30",
    "DELIVERY_TIMEOUT_MAX_SECONDS": "20",
    "ALLOW_PRIVATE_TARGETS": "false",
}


@pytest.fixture(autouse=True)
def deployed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, text in SETTINGS.items():
        monkeypatch.setenv(name, text)
    forget_wiring()
    with mock_aws():
        client = boto3.client("dynamodb")
        make_tables(client)
        client.create_table(
            TableName="idempotency",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield
    forget_wiring()


def forget_wiring() -> None:
    """Start as a new instance of the function does."""
    for wired in (*vars(bootstrap).values(), *vars(function).values()):
        if hasattr(wired, "cache_clear") and getattr(wired, "__module__", "") in {
            bootstrap.__name__,
            function.__name__,
        }:
            wired.cache_clear()


def call(method: str, path: str, body: object = None, **request: Any) -> Answered:
    answer = function.handler(an_event(method, path, body, **request), Context())
    headers = {name: values[0] for name, values in answer["multiValueHeaders"].items()}
    return Answered(status=answer["statusCode"], headers=headers, text=answer["body"])


def test_a_schedule_lives_its_whole_life() -> None:
    assert call("PUT", "/v1/admin/tenants/acme", {"quotas": {"schedules_max": 1}}).status == 200
    body = {
        "expression": "rate(1 minute)",
        "target": {"type": "webhook", "url": "https://acme.example/hook"},
        "payload": {"n": 1},
    }
    key = {"Idempotency-Key": "once"}
    made = call("POST", SCHEDULES, body, headers=key)
    assert made.status == 201, made.text
    assert made.body["author"] == CALLER
    assert call("POST", SCHEDULES, body, headers=key) == made
    assert call("POST", SCHEDULES, {**body, "payload": 2}, headers=key).status == 422
    assert call("POST", SCHEDULES, body).status == 403, "the quota is one"

    path = f"{SCHEDULES}/{made.body['id']}"
    patched = call("PATCH", path, {"payload": {"n": 2}}, headers={"If-Match": made.headers["ETag"]})
    assert (patched.status, patched.headers["ETag"]) == (200, '"2"')
    assert call("PUT", path, body, headers={"If-Match": '"1"'}).status == 412
    assert call("POST", f"{path}/pause").body["state"] == "PAUSED"
    assert call("POST", f"{path}/resume").body["state"] == "ACTIVE"

    listed = call("GET", SCHEDULES, query={"prefix": made.body["id"][:8], "state": "ACTIVE"}).body
    assert [each["id"] for each in listed["schedules"]] == [made.body["id"]]
    page = call("GET", f"{path}/occurrences", query={"limit": "3"}).body
    assert {each["state"] for each in page["occurrences"]} <= {"SCHEDULED", "ENQUEUED"}
    assert page["next_page_token"]
    ref = page["occurrences"][0]["ref"]
    assert call("GET", f"{path}/occurrences/{ref}").body["ref"] == ref

    forecast = call("GET", "/v1/tenants/acme/forecast").body
    assert forecast["schedules"] == {"active": 1, "read": 1, "unreadable": 0}
    assert forecast["minutes"] == [1] * 1_440

    canceled = call("DELETE", path)
    assert canceled.body["state"] == "CANCELED"
    assert canceled.body["already_out"]
    assert call("GET", "/v1/tenants/acme").body["usage"] == {"schedules": 0}
    assert call("POST", SCHEDULES, body, headers=key) == made


def test_bad_requests_are_problems_here_too() -> None:
    assert call("POST", SCHEDULES, {}).status == 400
    body = {"expression": "rate(1 hour)", "target": {"type": "sqs", "queue_arn": "x"}}
    assert call("POST", SCHEDULES, body).status == 404
    assert call("GET", f"{SCHEDULES}/none").status == 404
