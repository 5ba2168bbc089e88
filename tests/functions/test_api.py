"""The API's function: what it answers, and what it makes of bad requests."""

import base64
import json
import logging
import random
from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.api.desk import Desk
from functions.api.handler import logger
from puntual.application.ports import CreateResult
from puntual.domain.agenda import Cursor
from puntual.domain.errors import Unavailable
from puntual.domain.forecast import RuleCount, RulePage
from puntual.domain.instant import text_of
from puntual.domain.run import RunState
from puntual.domain.schedule import Schedule, ScheduleKey, ScheduleVersion
from puntual.domain.tenant import TenantId
from tests.builders import NINE, a_note, a_rule, a_run, a_span, a_tenant, an_occurrence
from tests.control_plane_world import OWN_QUEUE, ROLE, World
from tests.fakes.hostile import HostileSchedules, Hostility
from tests.fakes.in_memory_schedules import InMemorySchedules
from tests.functions.api_gateway_events import CALLER, an_event
from tests.functions.conftest import Answered, Api, Context

SCHEDULES = "/v1/tenants/acme/schedules"
SCHEDULE = f"{SCHEDULES}/invoices"
WEBHOOK = {"type": "webhook", "url": "https://acme.example/hooks/invoices"}
BODY: dict[str, Any] = {
    "id": "invoices",
    "expression": "0 9 * * MON-FRI",
    "time_zone": "Europe/Madrid",
    "target": WEBHOOK,
    "payload": {"invoice": 7, "lines": [1, 2.5, None, "ñ"]},
}
DEFINITION = {name: value for name, value in BODY.items() if name != "id"}
FIRST = {"If-Match": '"1"'}
TOO_EARLY = "2026-11-01T00:00:00.000Z"


def created(api: Api, **fields: Any) -> Answered:
    answer = api.call("POST", SCHEDULES, {**BODY, **fields})
    assert answer.status == 201, answer.text
    return answer


def problem(answer: Answered, status: int) -> dict[str, Any]:
    assert answer.status == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    document = answer.body
    assert document["status"] == status
    assert document["type"] == "about:blank"
    assert document["title"]
    assert document["detail"]
    return document


def error(answer: Answered, status: int) -> dict[str, Any]:
    (entry,) = problem(answer, status)["errors"]
    assert set(entry) == {"field", "value", "allowed"}
    assert entry["allowed"]
    return dict(entry)


def test_h_is_shown_as_the_numbers_it_became_for_good(api: Api) -> None:
    made = created(api, expression="H H(0-5) * * MON-FRI").body
    minute, hour, *rest = made["expression"].split()
    assert int(minute) in range(60)
    assert int(hour) in range(6)
    assert rest == ["*", "*", "MON-FRI"]
    assert api.call("GET", SCHEDULE).body["expression"] == made["expression"]
    again = {**DEFINITION, "expression": "h h(0-5) * * MON-FRI"}
    replaced = api.call("PUT", SCHEDULE, again, headers=FIRST).body
    assert replaced["expression"] == made["expression"]
    others = {
        created(api, id=f"other-{number}", expression="H H * * *").body["expression"]
        for number in range(8)
    }
    assert len(others) > 1


def test_a_created_schedule_shows_its_next_five_fires(api: Api) -> None:
    answer = created(api)
    assert answer.headers["Location"] == "/v/v1/tenants/acme/schedules/invoices"
    assert answer.headers["ETag"] == '"1"'
    assert answer.headers["Content-Type"] == "application/json"
    body = answer.body
    assert body["next_fires"][0] == {
        "utc": "2026-12-01T08:00:00.000Z",
        "local": "2026-12-01T09:00:00+01:00",
    }
    assert len(body["next_fires"]) == 5
    assert body["warnings"] == []
    assert body["author"] == CALLER
    assert body["payload"] == BODY["payload"]
    assert (body["version"], body["state"]) == (1, "ACTIVE")
    assert body["misfire"] == {
        "policy": "fire_once",
        "misfire_after_seconds": 60,
        "max_lateness_seconds": None,
        "limit": 100,
    }
    assert body["retry"] == {
        "max_attempts": 5,
        "base_seconds": 10,
        "cap_seconds": 1800,
        "deadline_seconds": None,
    }


def test_what_was_created_is_what_is_shown(api: Api) -> None:
    answer = created(api)
    assert api.call("GET", SCHEDULE).body == answer.body


def test_an_alias_of_a_zone_keeps_its_spelling_with_what_it_stands_for_beside_it(
    api: Api,
) -> None:
    spelt = ("US/Eastern", "America/New_York")
    listed = (created(api, time_zone=spelt[0]), api.call("GET", SCHEDULE))
    for body in [answer.body for answer in listed] + api.call("GET", SCHEDULES).body["schedules"]:
        assert (body["time_zone"], body["canonical_time_zone"]) == spelt
    patched = api.call("PATCH", SCHEDULE, {"payload": 1}, headers=FIRST)
    assert patched.body["time_zone"] == spelt[0]


def test_a_zone_in_the_wrong_case_is_refused_with_the_right_one(api: Api) -> None:
    refused = error(api.call("POST", SCHEDULES, {**BODY, "time_zone": "europe/madrid"}), 400)
    assert (refused["field"], refused["value"]) == ("time_zone", "europe/madrid")
    assert refused["allowed"].endswith("Europe/Madrid")


def test_an_emulator_that_names_no_caller_is_served_too(api: Api) -> None:
    event = an_event("POST", SCHEDULES, BODY)
    del event["requestContext"]["identity"], event["requestContext"]["path"]
    answer = api.send(event)
    assert answer.body["author"] == "unknown"
    assert answer.headers["Location"] == SCHEDULE


def test_warnings_are_shown(api: Api) -> None:
    warnings = created(api, expression="0 9 31 * *").body["warnings"]
    assert any("31" in warning for warning in warnings)


def test_every_field_can_be_given(api: Api) -> None:
    answer = created(
        api,
        gap="fire_after",
        fold="both",
        start_at="2026-12-01T00:00:00+01:00",
        end_at="2027-12-01T00:00:00Z",
        flexible_window_seconds=86_400,
        misfire={"policy": "skip", "misfire_after_seconds": 5, "max_lateness_seconds": 60},
        retry={"max_attempts": 20, "base_seconds": 1, "cap_seconds": 2},
        overlap="queue_one",
        completion={
            "policy": "callback",
            "heartbeat_seconds": 3600,
            "max_duration_seconds": 86_400,
        },
        target={"type": "sqs", "queue_arn": OWN_QUEUE},
        payload=None,
    )
    body = answer.body
    assert body["start_at"] == "2026-11-30T23:00:00.000Z"
    assert body["target"] == {"type": "sqs", "queue_arn": OWN_QUEUE, "role_arn": None}
    assert body["flexible_window_seconds"] == 86_400
    assert body["retry"]["max_attempts"] == 20
    assert body["overlap"] == "queue_one"


BAD_FIELDS: list[tuple[dict[str, Any], str, str]] = [
    ({"time_zone": "Mars/Phobos"}, "time_zone", "Mars/Phobos"),
    ({"expression": "61 * * * *"}, "expression", "61"),
    ({"expression": "0 0 30 2 *"}, "expression", "0 0 30 2 *"),
    ({"expression": 7}, "expression", "7"),
    ({"expression": "at(2026-11-30T08:00:00)", "time_zone": "UTC"}, "expression", "at("),
    ({"start_at": "2026-12-02T00:00:00Z", "end_at": "2026-12-01T00:00:00Z"}, "end_at", "2026"),
    ({"start_at": "tomorrow"}, "start_at", "tomorrow"),
    ({"start_at": "2026-12-02T00:00:00"}, "start_at", "2026-12-02T00:00:00"),
    ({"start_at": 5}, "start_at", "5"),
    ({"start_at": "0001-01-01T00:00:00Z"}, "start_at", "0001-01-01"),
    ({"start_at": "1899-12-31T23:59:59.999Z"}, "start_at", "1899-12-31"),
    ({"start_at": "0001-01-01T00:00:00+14:00"}, "start_at", "0001-01-01"),
    ({"end_at": "2400-01-01T00:00:00.001Z"}, "end_at", "2400-01-01"),
    ({"end_at": "9999-12-31T23:59:59Z"}, "end_at", "9999-12-31"),
    ({"expression": "rate(1 hour)", "start_at": "0999-01-01T00:00:00Z"}, "start_at", "0999"),
    ({"flexible_window_seconds": -1}, "flexible_window_seconds", "-1"),
    ({"flexible_window_seconds": 86_401}, "flexible_window_seconds", "86401"),
    ({"flexible_window_seconds": 1.5}, "flexible_window_seconds", "1.5"),
    ({"flexible_window_seconds": True}, "flexible_window_seconds", "true"),
    ({"flexible_window_seconds": None}, "flexible_window_seconds", ""),
    ({"gap": "leap"}, "gap", "leap"),
    ({"fold": None}, "fold", ""),
    ({"misfire": {"policy": "catch_on"}}, "misfire.policy", "catch_on"),
    ({"misfire": {"policy": "catch_up", "limit": 0}}, "misfire.limit", "0"),
    ({"misfire": {"policy": "catch_up", "limit": 1_001}}, "misfire.limit", "1001"),
    ({"misfire": {"policy": "catch_up", "limit": "9"}}, "misfire.limit", "9"),
    ({"misfire": {"misfire_after_seconds": 0}}, "misfire.misfire_after_seconds", "0"),
    ({"misfire": "skip"}, "misfire", "skip"),
    ({"overlap": "queue_two"}, "overlap", "queue_two"),
    ({"retry": {"max_attempts": 21}}, "retry.max_attempts", "21"),
    ({"retry": {"max_attempts": "5"}}, "retry.max_attempts", "5"),
    ({"retry": {"base_seconds": 60, "cap_seconds": 30}}, "retry.cap_seconds", "30"),
    ({"completion": {"policy": "later"}}, "completion.policy", "later"),
    ({"completion": {"heartbeat_seconds": 59}}, "completion.heartbeat_seconds", "59"),
    ({"completion": {"heartbeat_seconds": 3601}}, "completion.heartbeat_seconds", "3601"),
    ({"completion": {"max_duration_seconds": 59}}, "completion.max_duration_seconds", "59"),
    ({"completion": {"max_duration_seconds": 86401}}, "completion.max_duration_seconds", "86401"),
    (
        {"completion": {"heartbeat_seconds": 600, "max_duration_seconds": 300}},
        "completion.max_duration_seconds",
        "300",
    ),
    ({"completion": {"token": "x"}}, "completion.token", "x"),
    ({"completion": "callback"}, "completion", "callback"),
    ({"retry": {"jitter": True}}, "retry.jitter", "true"),
    ({"target": None}, "target", ""),
    ({"target": {}}, "target.type", ""),
    ({"target": {"type": "carrier-pigeon"}}, "target.type", "carrier-pigeon"),
    ({"target": {"type": "webhook"}}, "target.url", ""),
    ({"target": {"type": "webhook", "url": "http://acme.example"}}, "target.url", "http:"),
    ({"target": {**WEBHOOK, "url": "https://me:pw@acme.example"}}, "target.url", "https:"),
    ({"target": {**WEBHOOK, "url": "https://exa..mple.com/"}}, "target.url", "exa..mple"),
    ({"target": {**WEBHOOK, "timeout_seconds": 900}}, "target.timeout_seconds", "900"),
    ({"target": {**WEBHOOK, "method": "GET"}}, "target.method", "GET"),
    ({"target": {"type": "sqs", "queue_arn": f"{OWN_QUEUE}-2"}}, "target.queue_arn", "acme-2"),
    ({"id": "."}, "id", "."),
    ({"id": ".."}, "id", ".."),
    ({"id": "a b"}, "id", "a b"),
    ({"id": ""}, "id", ""),
    ({"id": "x" * 65}, "id", "xxx"),
    ({"id": 7}, "id", "7"),
    ({"timezone": "UTC"}, "timezone", "UTC"),
]


@pytest.mark.parametrize(("fields", "field", "value"), BAD_FIELDS)
def test_a_bad_field_is_named_with_its_value_and_nothing_is_written(
    api: Api, fields: dict[str, Any], field: str, value: str
) -> None:
    before = api.world.writes()
    entry = error(api.call("POST", SCHEDULES, {**BODY, **fields}), 400)
    assert entry["field"] == field
    assert value in (entry["value"] or "")
    assert "nput should" not in entry["allowed"]
    assert api.world.writes() == before


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        (
            {"retry": {"base_seconds": 60, "cap_seconds": 30}},
            "retry.cap_seconds: 30 is not allowed; allowed: not below retry.base_seconds",
        ),
        (
            {"misfire": {"max_lateness_seconds": 30}},
            (
                "misfire.max_lateness_seconds: 30 is not allowed; "
                "allowed: not below misfire.misfire_after_seconds"
            ),
        ),
        ({"max_runs": True}, "max_runs: true is not allowed; allowed: a whole number"),
    ],
)
def test_a_refusal_repeats_a_value_as_it_was_written(
    api: Api, fields: dict[str, Any], detail: str
) -> None:
    assert api.call("POST", SCHEDULES, {**BODY, **fields}).body["detail"] == detail


@pytest.mark.parametrize(
    ("fields", "field"), [(fields, field) for fields, field, _ in BAD_FIELDS if "id" not in fields]
)
def test_replace_and_patch_refuse_the_same(api: Api, fields: dict[str, Any], field: str) -> None:
    created(api)
    before = api.world.writes()
    replaced = api.call("PUT", SCHEDULE, {**DEFINITION, **fields}, headers=FIRST)
    assert error(replaced, 400)["field"] == field
    if any(said in fields.values() for said in (None, {}, {"type": "webhook"})):
        return  # a merge patch says something else by these
    if fields.get("target", {}).get("type") == "sqs":
        fields = {"target": {"url": None, "timeout_seconds": None, **fields["target"]}}
    patched = api.call("PATCH", SCHEDULE, fields, headers=FIRST)
    assert field in {entry["field"] for entry in problem(patched, 400)["errors"]}
    assert api.world.writes() == before


def test_several_bad_fields_are_all_named(api: Api) -> None:
    answer = api.call("POST", SCHEDULES, {"gap": "x", "retry": {"max_attempts": 0}})
    fields = {entry["field"] for entry in problem(answer, 400)["errors"]}
    assert fields == {"expression", "gap", "retry.max_attempts", "target"}


def test_what_is_allowed_is_said(api: Api) -> None:
    entry = error(api.call("POST", SCHEDULES, {**BODY, "timezone": "UTC"}), 400)
    assert "time_zone" in entry["allowed"]
    entry = error(api.call("POST", SCHEDULES, {**BODY, "gap": "leap"}), 400)
    assert entry["allowed"] == "'skip' or 'fire_after'"
    entry = error(api.call("POST", SCHEDULES, {**BODY, "retry": {"max_attempts": 21}}), 400)
    assert entry["allowed"] == "at most 20"


def test_a_payload_that_is_too_large_is_refused_and_not_repeated(api: Api) -> None:
    before = api.world.writes()
    answer = api.call("POST", SCHEDULES, {**BODY, "payload": "secret" * 11_000})
    assert error(answer, 413)["field"] == "payload"
    assert "secret" not in answer.text
    assert len(answer.text) < 1_000
    assert api.world.writes() == before


@pytest.mark.parametrize(
    "body",
    [
        "{",
        '{"payload": "secret", }',
        "[]",
        '[{"expression": "rate(1 hour)"}]',
        '"text"',
        '{"payload": NaN}',
        '{"payload": secret}',
        "[" * 100_000,
        '{"payload": ' + "9" * 5_000 + "}",
        "\ufeff{}",
    ],
)
def test_a_body_that_is_no_json_object_is_refused(api: Api, body: str) -> None:
    before = api.world.writes()
    for method, path in (("POST", SCHEDULES), ("PUT", SCHEDULE), ("PATCH", SCHEDULE)):
        answer = api.call(method, path, body, headers=FIRST)
        assert error(answer, 400)["field"] == "body"
        assert "secret" not in answer.text
    assert api.world.writes() == before


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "order-7"}])
@pytest.mark.parametrize("payload", ["1e999", '"\\ud800"', '{"\\ud800": 1}'])
def test_a_payload_that_is_no_json_after_all_is_refused(
    api: Api, payload: str, headers: dict[str, str]
) -> None:
    body = json.dumps({**BODY, "payload": "here"}).replace('"here"', payload)
    answer = api.call("POST", SCHEDULES, body, headers=headers)
    assert error(answer, 400)["field"] == "payload"


@pytest.mark.parametrize(
    ("twice", "name"),
    [
        ('"expression": "rate(1 hour)"', "expression"),
        ('"retry": {"max_attempts": 1, "max_attempts": 2}', "max_attempts"),
        ('"payload": {"secret": {"a": [{"b": 1, "c": 2, "b": 1}]}}', "b"),
        ('"id": "invoices", "\\u0069d": "invoices"', "id"),
    ],
)
def test_a_member_that_comes_twice_is_named(api: Api, twice: str, name: str) -> None:
    before = api.world.writes()
    rest = {key: BODY[key] for key in BODY if key not in {"payload", "id"}}
    for method, path in (("POST", SCHEDULES), ("PUT", SCHEDULE), ("PATCH", SCHEDULE)):
        answer = api.call(method, path, f"{json.dumps(rest)[:-1]}, {twice}}}", headers=FIRST)
        entry = error(answer, 400)
        assert (entry["field"], entry["allowed"]) == (name, "once in an object")
        assert "secret" not in answer.text
    assert api.world.writes() == before


def nested(depth: int) -> str:
    """Give the text of a create whose payload is so deep, by turns an array and an object."""
    payload = "".join('{"a":' if n % 2 else "[" for n in range(depth)) + "7"
    payload += "".join("}" if n % 2 else "]" for n in reversed(range(depth)))
    return json.dumps({**BODY, "payload": "here"}).replace('"here"', payload)


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "order-7"}])
def test_a_payload_may_be_a_hundred_deep_and_no_deeper(api: Api, headers: dict[str, str]) -> None:
    before = api.world.writes()
    for depth in (101, 300, 3_000):
        entry = error(api.call("POST", SCHEDULES, nested(depth), headers=headers), 400)
        assert entry["field"] == "payload"
        assert "at most 100 deep" in entry["allowed"]
    assert error(api.call("POST", SCHEDULES, nested(200_000), headers=headers), 400)
    assert api.world.writes() == before
    answer = api.call("POST", SCHEDULES, nested(100), headers=headers)
    assert answer.status == 201, answer.text
    api.world.clock.advance(timedelta(seconds=1))
    again = api.call("POST", SCHEDULES, nested(100), headers=headers)
    assert again.status == (201 if headers else 409), again.text


def test_a_change_is_refused_for_its_depth_too(api: Api) -> None:
    created(api)
    before = api.world.writes()
    for method, field, body in (
        ("PUT", "payload", {**DEFINITION, "payload": json.loads(nested(300))["payload"]}),
        ("PATCH", "payload", {"payload": json.loads(nested(300))["payload"]}),
        ("PATCH", "retry", {"retry": json.loads(nested(300))["payload"]}),
    ):
        answer = api.call(method, SCHEDULE, body, headers=FIRST)
        assert error(answer, 400)["field"] == field
    assert api.world.writes() == before


def test_a_missing_body_is_refused(api: Api) -> None:
    created(api)
    for method, path in (("POST", SCHEDULES), ("PUT", SCHEDULE), ("PATCH", SCHEDULE)):
        assert error(api.call(method, path, headers=FIRST), 400)["field"] == "body"


def test_a_body_that_is_not_utf8_is_refused(api: Api) -> None:
    event = an_event("POST", SCHEDULES, base64.b64encode(b"\xff\xfe{}").decode())
    event["isBase64Encoded"] = True
    assert error(api.send(event), 400)["field"] == "body"


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "application/merge-patch+json"]
)
def test_a_body_is_read_as_json_whatever_type_it_claims(api: Api, kind: str) -> None:
    assert api.call("POST", SCHEDULES, BODY, headers={"Content-Type": kind}).status == 201


# An id is never decoded: IAM judges the path as it was written, and %61cme is not acme there.
@pytest.mark.parametrize(
    "name", ["a%20b", "ñ", ".", "..", "x" * 65, "%2E", "%2e%2e", "%61cme", "%25", "%", "%zz", "%FF"]
)
def test_bad_ids_in_the_path_are_refused(api: Api, name: str) -> None:
    assert error(api.call("GET", f"/v1/tenants/{name}/schedules"), 400)["field"] == "tenant"
    path = f"{SCHEDULES}/{name}"
    for method, ending in (
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("GET", "/occurrences"),
    ):
        assert error(api.call(method, path + ending), 400)["field"] == "schedule"


def test_an_unknown_tenant_is_not_found(api: Api) -> None:
    before = api.world.writes()
    for method, path, body in (
        ("POST", "/v1/tenants/nobody/schedules", BODY),
        ("GET", "/v1/tenants/nobody/schedules", None),
        ("GET", "/v1/tenants/nobody", None),
        ("GET", "/v1/tenants/nobody/usage", None),
        ("GET", "/v1/admin/tenants/nobody", None),
        ("PUT", "/v1/tenants/nobody/schedules/a", DEFINITION),
    ):
        entry = error(api.call(method, path, body, headers=FIRST), 404)
        assert (entry["field"], entry["value"]) == ("tenant", "nobody")
    assert api.world.writes() == before


def test_an_unknown_schedule_is_not_found(api: Api) -> None:
    for method, ending, body in (
        ("GET", "", None),
        ("PUT", "", DEFINITION),
        ("PATCH", "", {}),
        ("DELETE", "", None),
        ("POST", "/pause", None),
        ("POST", "/resume", None),
        ("GET", "/occurrences", None),
        ("GET", "/occurrences/2026-11-30T09:00:00.000Z", None),
    ):
        answer = api.call(method, SCHEDULE + ending, body, headers=FIRST)
        assert error(answer, 404)["field"] == "schedule"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/health"),
        ("GET", "/v1"),
        ("POST", f"{SCHEDULE}/explode"),
        ("GET", "/"),
        ("GET", "/v1/tenants/acme/"),
        ("GET", "/v1/tenants/acme//"),
        ("GET", "/v1/tenants/acme/\n"),
        ("PUT", "/v1/admin/tenants/acme/"),
        ("PUT", "/v1/tenants/acme/../../admin/tenants/acme"),
        ("PUT", "/v1/admin//tenants/acme"),
        ("GET", "/v1/admin"),
        ("GET", f"{SCHEDULE}/"),
    ],
)
def test_an_unknown_route_is_not_found(api: Api, method: str, path: str) -> None:
    problem(api.call(method, path), 404)


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", "/v1/tenants/acme", "GET"),
        ("POST", "/v1/admin/tenants/acme", "GET, PUT"),
        ("PUT", "/v1/admin/tenants", "GET"),
        ("DELETE", SCHEDULES, "GET, POST"),
        ("POST", SCHEDULE, "DELETE, GET, PATCH, PUT"),
        ("GET", f"{SCHEDULE}/pause", "POST"),
        ("HEAD", f"{SCHEDULE}/occurrences", "GET"),
        ("PUT", f"{SCHEDULE}/occurrences/2026-11-30T09:00:00.000Z", "GET"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(
    api: Api, method: str, path: str, allow: str
) -> None:
    answer = api.call(method, path)
    problem(answer, 405)
    assert answer.headers["Allow"] == allow


def test_a_duplicate_id_is_a_conflict_that_names_it(api: Api) -> None:
    created(api)
    api.world.clock.advance(timedelta(seconds=1))
    before = api.world.writes()
    entry = error(api.call("POST", SCHEDULES, BODY), 409)
    assert (entry["field"], entry["value"]) == ("id", "invoices")
    assert api.world.writes() == before


def test_a_tenant_at_its_quota_is_refused(api: Api) -> None:
    api.world.tenants.register(a_tenant(schedules_max=0))
    assert error(api.call("POST", SCHEDULES, BODY), 403)["field"] == "schedules_max"


def test_a_change_needs_if_match(api: Api) -> None:
    created(api)
    before = api.world.writes()
    for method, body in (("PUT", DEFINITION), ("PATCH", {"payload": 1})):
        assert error(api.call(method, SCHEDULE, body), 428)["field"] == "If-Match"
    assert api.world.writes() == before


@pytest.mark.parametrize("etag", ["1", "*", 'W/"1"', '"one"', '"1", "2"', ""])
def test_an_if_match_that_is_no_etag_of_ours_is_refused(api: Api, etag: str) -> None:
    created(api)
    answer = api.call("PUT", SCHEDULE, DEFINITION, headers={"If-Match": etag})
    assert error(answer, 400)["field"] == "If-Match"


def test_a_stale_if_match_is_told_the_current_etag(api: Api) -> None:
    created(api)
    api.call("PATCH", SCHEDULE, {"payload": 1}, headers=FIRST)
    before = api.world.writes()
    for method, ending, body in (
        ("PUT", "", DEFINITION),
        ("PATCH", "", {"payload": 2}),
        ("DELETE", "", None),
        ("POST", "/pause", None),
        ("POST", "/resume", None),
    ):
        answer = api.call(method, SCHEDULE + ending, body, headers=FIRST)
        entry = error(answer, 412)
        assert answer.headers["ETag"] == '"2"'
        assert entry["field"] == "If-Match"
        assert '"1"' in entry["value"]
        assert '"2"' in entry["allowed"]
    assert api.world.writes() == before


def test_a_replaced_schedule_is_what_the_body_says(api: Api) -> None:
    created(api, retry={"max_attempts": 9})
    body = {"expression": "rate(1 hour)", "target": WEBHOOK}
    answer = api.call("PUT", SCHEDULE, body, headers=FIRST)
    assert answer.status == 200
    assert answer.headers["ETag"] == '"2"'
    shown = api.call("GET", SCHEDULE)
    document = answer.body
    assert (document.pop("dry_run"), document.pop("changes")["rule_changed"]) == (False, True)
    assert shown.body == document
    assert (shown.body["time_zone"], shown.body["retry"]["max_attempts"]) == ("UTC", 5)


def test_a_patch_changes_what_it_names_and_null_restores_a_default(api: Api) -> None:
    created(api, retry={"max_attempts": 9, "base_seconds": 3}, gap="fire_after")
    patch: dict[str, Any] = {
        "retry": {"max_attempts": 7},
        "gap": None,
        "payload": {"invoice": None, "new": {}},
    }
    answer = api.call(
        "PATCH",
        SCHEDULE,
        patch,
        headers={**FIRST, "Content-Type": "application/merge-patch+json"},
    )
    assert answer.status == 200, answer.text
    body = answer.body
    assert body["retry"] == {
        "max_attempts": 7,
        "base_seconds": 3,
        "cap_seconds": 1800,
        "deadline_seconds": None,
    }
    assert body["gap"] == "skip"
    assert body["payload"] == {"lines": BODY["payload"]["lines"], "new": {}}
    assert body["expression"] == BODY["expression"]


@pytest.mark.parametrize(
    ("expression", "most"),
    [
        ("rate(5 minutes)", 300),
        ("rate(2 days)", 86_400),
        ("0,7,20 9-17 * * 1-5", 420),
        ("0 9 1 * *", 86_400),
        ("at(2026-12-01T09:00:00)", 86_400),
    ],
)
def test_a_window_is_at_most_the_smallest_interval_of_the_rule(
    api: Api, expression: str, most: int
) -> None:
    created(api, expression=expression, flexible_window_seconds=most)
    before = api.world.writes()
    body = {**BODY, "id": "other", "expression": expression, "flexible_window_seconds": most + 1}
    entry = error(api.call("POST", SCHEDULES, body), 400)
    assert (entry["field"], entry["value"]) == ("flexible_window_seconds", str(most + 1))
    assert str(most) in entry["allowed"]
    if most < 86_400:
        assert entry["allowed"] == f"0 to {most}, the smallest interval of {expression}"
    assert api.world.writes() == before


def test_a_patch_of_the_rule_alone_may_make_its_window_too_large(api: Api) -> None:
    created(api, expression="rate(1 hour)", flexible_window_seconds=3_600)
    answer = api.call("PATCH", SCHEDULE, {"expression": "rate(1 minute)"}, headers=FIRST)
    assert error(answer, 400)["allowed"] == "0 to 60, the smallest interval of rate(1 minute)"
    patch = {"expression": "rate(1 minute)", "flexible_window_seconds": None}
    answer = api.call("PATCH", SCHEDULE, patch, headers=FIRST)
    assert (answer.status, answer.body["flexible_window_seconds"]) == (200, 0)


def test_the_api_says_ahead_when_a_run_may_start_and_says_it_each_time(api: Api) -> None:
    created(api, expression="0 * * * *", flexible_window_seconds=3_600)
    query = {"from": text_of(NINE), "to": text_of(NINE + timedelta(hours=5))}
    fires = api.call("GET", f"{SCHEDULE}/occurrences", query=query).body["occurrences"]
    waits = [
        datetime.fromisoformat(fire["available_at"]) - datetime.fromisoformat(fire["scheduled_for"])
        for fire in fires
    ]
    assert len(set(waits)) == len(waits) == 6
    assert all(timedelta(0) <= wait < timedelta(hours=1) for wait in waits)
    ((_, cursor),) = api.world.agenda.cursors()
    assert text_of(cursor.available_at) == fires[0]["available_at"]
    api.world.clock.advance(timedelta(minutes=30))
    again = api.call("GET", f"{SCHEDULE}/occurrences", query=query).body["occurrences"]
    assert [fire["available_at"] for fire in again] == [fire["available_at"] for fire in fires]


def test_a_fire_in_its_window_that_a_planner_canceled_is_shown_as_it_is_listed(api: Api) -> None:
    created(api, expression="0 9 * * *", time_zone="UTC", flexible_window_seconds=86_400)
    api.world.clock.advance(timedelta(minutes=1))
    api.call("POST", f"{SCHEDULE}/pause")
    ref = f"{SCHEDULE}/occurrences/{text_of(NINE)}"
    shown = api.call("GET", ref).body
    assert (shown["state"], shown["available_at"] > text_of(api.world.clock.now())) == (
        "SCHEDULED",
        True,
    )
    assert shown["reason"].startswith("voided")
    api.world.put(a_span(NINE, NINE, state=RunState.CANCELED, reason="voided"))
    (listed,) = api.call("GET", f"{SCHEDULE}/occurrences").body["occurrences"]
    assert api.call("GET", ref).body == listed
    assert listed["state"] == "CANCELED"


def test_a_patch_can_change_the_kind_of_target(api: Api) -> None:
    created(api)
    target = {"type": "sqs", "queue_arn": OWN_QUEUE, "url": None, "timeout_seconds": None}
    answer = api.call("PATCH", SCHEDULE, {"target": target}, headers=FIRST)
    assert answer.body["target"] == {"type": "sqs", "queue_arn": OWN_QUEUE, "role_arn": None}


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"nothing": None}, "nothing"),
        ({"retry": {"nothing": None}}, "retry.nothing"),
        ({"id": "other"}, "id"),
        ({"expression": None}, "expression"),
    ],
)
def test_a_patch_of_what_nobody_knows_is_refused(
    api: Api, patch: dict[str, Any], field: str
) -> None:
    created(api)
    assert error(api.call("PATCH", SCHEDULE, patch, headers=FIRST), 400)["field"] == field


def test_an_edit_shows_what_it_does_to_each_fire(api: Api) -> None:
    """In the zone of the rule that has it; it is ten in Madrid."""
    created(api, expression="0 11 * * *")
    patch = {"expression": "0 12 * * MON-FRI", "time_zone": "Europe/Athens"}
    changes = api.call("PATCH", SCHEDULE, {**patch, "payload": 1}, headers=FIRST).body["changes"]
    assert {name: changes[name] for name in ("rule_changed", "from", "through", "complete")} == {
        "rule_changed": True,
        "from": "2026-11-30T09:00:00.001Z",
        "through": "2027-02-28T09:00:00.001Z",
        "complete": True,
    }
    assert (changes["compared"], changes["unchanged"], changes["appear"]) == (155, 65, [])
    assert changes["vanish"][0] == {
        "utc": "2026-12-05T10:00:00.000Z",
        "local": "2026-12-05T11:00:00+01:00",
    }
    assert (len(changes["vanish"]), changes["move"]) == (25, [])
    assert changes["summary"] == "25 fires vanish, 65 stay."
    later = {"expression": "0 13 * * MON-FRI", "time_zone": "Europe/Madrid"}
    changes = api.call("PATCH", SCHEDULE, later, headers={"If-Match": '"2"'}).body["changes"]
    assert changes["move"][0] == {
        "from": {"utc": "2026-11-30T10:00:00.000Z", "local": "2026-11-30T12:00:00+02:00"},
        "to": {"utc": "2026-11-30T12:00:00.000Z", "local": "2026-11-30T13:00:00+01:00"},
    }
    assert changes["next"] == {
        "before": changes["move"][0]["from"],
        "after": changes["move"][0]["to"],
    }


def test_an_edit_of_anything_but_the_rule_says_so(api: Api) -> None:
    created(api)
    answer = api.call("PATCH", SCHEDULE, {"payload": 1}, headers=FIRST).body
    following = answer["next_fires"][0]
    assert answer["changes"] == {
        "rule_changed": False,
        "summary": "No fire changes: the rule stays as it was.",
        "next": {"before": following, "after": following},
        "from": "2026-11-30T09:00:00.001Z",
        "through": "2027-02-28T09:00:00.001Z",
        "complete": True,
        "compared": 0,
        "unchanged": 0,
        "appear": [],
        "vanish": [],
        "move": [],
    }


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_dry_run_answers_as_the_edit_then_does_and_writes_nothing(api: Api, method: str) -> None:
    created(api)
    before = api.world.writes()
    body = {**DEFINITION, "expression": "0 7 * * *"}
    dry = api.call(method, SCHEDULE, body, headers=FIRST, query={"dry_run": "true"})
    assert dry.status == 200, dry.text
    assert "ETag" not in dry.headers
    assert api.world.writes() == before
    real = api.call(method, SCHEDULE, body, headers=FIRST, query={"dry_run": "false"})
    assert real.headers["ETag"] == '"2"'
    assert (dry.body.pop("dry_run"), real.body.pop("dry_run")) == (True, False)
    assert {**dry.body, "dry_run": False} == real.body


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_dry_run_is_refused_as_the_edit_would_be(api: Api, method: str) -> None:
    query = {"dry_run": "true"}
    assert error(api.call(method, SCHEDULE, DEFINITION, headers=FIRST, query=query), 404)
    created(api)
    assert error(api.call(method, SCHEDULE, DEFINITION, query=query), 428)
    stale = api.call(method, SCHEDULE, DEFINITION, headers={"If-Match": '"2"'}, query=query)
    assert (error(stale, 412)["field"], stale.headers["ETag"]) == ("If-Match", '"1"')
    bad = {**DEFINITION, "time_zone": "Mars/Phobos"}
    refused = api.call(method, SCHEDULE, bad, headers=FIRST, query=query)
    assert error(refused, 400)["field"] == "time_zone"
    api.call("DELETE", SCHEDULE)
    problem(api.call(method, SCHEDULE, DEFINITION, headers={"If-Match": '"2"'}, query=query), 409)


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize("said", ["1", "yes", "True", "TRUE", "", "true,false"])
def test_a_dry_run_is_true_or_false_and_nothing_else(api: Api, method: str, said: str) -> None:
    created(api)
    before = api.world.writes()
    answer = api.call(method, SCHEDULE, DEFINITION, headers=FIRST, query={"dry_run": said})
    entry = error(answer, 400)
    assert (entry["field"], entry["value"]) == ("dry_run", said)
    assert entry["allowed"] == "'true' or 'false'"
    assert api.world.writes() == before


def test_a_dry_run_that_is_asked_for_twice_is_refused(api: Api) -> None:
    created(api)
    event = an_event("PATCH", SCHEDULE, {"payload": 1}, headers=FIRST, query={"dry_run": "false"})
    event["multiValueQueryStringParameters"] = {"dry_run": ["true", "false"]}
    assert error(api.send(event), 400)["field"] == "dry_run"


@pytest.mark.parametrize(
    ("method", "ending", "body"),
    [
        ("POST", "/pause", None),
        ("POST", "/resume", None),
        ("DELETE", "", None),
        ("PATCH", "", {"payload": 1}),
    ],
)
def test_a_dry_run_where_there_is_none_is_refused(
    api: Api, method: str, ending: str, body: object
) -> None:
    created(api)
    name = "dryrun" if method == "PATCH" else "dry_run"
    answer = api.call(method, SCHEDULE + ending, body, headers=FIRST, query={name: "true"})
    assert error(answer, 400)["field"] == "query"


def test_a_schedule_is_paused_and_resumed_as_often_as_one_likes(api: Api) -> None:
    created(api)
    for path, state, etag in (
        ("/pause", "PAUSED", '"2"'),
        ("/pause", "PAUSED", '"2"'),
        ("/resume", "ACTIVE", '"3"'),
        ("/resume", "ACTIVE", '"3"'),
    ):
        answer = api.call("POST", SCHEDULE + path)
        assert (answer.status, answer.body["state"], answer.headers["ETag"]) == (200, state, etag)


@pytest.mark.parametrize("ending", ["/pause", "/resume"])
def test_a_pause_and_a_resume_take_no_body(api: Api, ending: str) -> None:
    created(api)
    before = api.world.writes()
    entry = error(api.call("POST", SCHEDULE + ending, {"until": "2026-12-01T00:00:00Z"}), 400)
    assert (entry["field"], entry["allowed"]) == ("until", "nothing")
    assert api.world.writes() == before


def test_a_cancel_says_what_it_met_and_may_be_repeated(api: Api) -> None:
    created(api, expression="rate(1 minute)")
    key = ScheduleKey(tenant=a_tenant().tenant, schedule=a_run().occurrence.schedule)
    api.world.put(
        a_run(an_occurrence(scheduled_for=NINE + timedelta(minutes=1)), state=RunState.DEAD),
        a_run(an_occurrence(scheduled_for=NINE + timedelta(minutes=2))),
    )
    api.world.clock.advance(timedelta(minutes=2, seconds=5))
    first = api.call("DELETE", SCHEDULE)
    assert first.status == 200
    assert first.body["state"] == "CANCELED"
    assert [each["scheduled_for"][11:16] for each in first.body["running"]] == ["09:02"]
    assert [each["state"] for each in first.body["finished"]] == ["DEAD"]
    assert first.body["already_out"][0]["scheduled_for"] == "2026-11-30T09:03:00.000Z"
    assert first.body["complete"] is True
    again = api.call("DELETE", SCHEDULE)
    assert (again.status, again.text) == (200, first.text)
    head = api.world.schedules.head(key)
    assert head is not None
    assert head.version == 2
    for method, ending, body in (("POST", "/pause", None), ("PUT", "", DEFINITION)):
        problem(api.call(method, SCHEDULE + ending, body, headers={"If-Match": '"2"'}), 409)


def test_schedules_are_listed_in_pages(api: Api) -> None:
    for name in ("b", "a", "c"):
        created(api, id=name)
    first = api.call("GET", SCHEDULES, query={"limit": "2"}).body
    token = first["next_page_token"]
    assert [each["id"] for each in first["schedules"]] == ["a", "b"]
    second = api.call("GET", SCHEDULES, query={"limit": "2", "page_token": token}).body
    assert [each["id"] for each in second["schedules"]] == ["c"]
    assert second["next_page_token"] is None
    assert first["schedules"][0]["next_fire"]["utc"] == "2026-12-01T08:00:00.000Z"
    api.call("POST", f"{SCHEDULES}/c/pause")
    paused = api.call("GET", SCHEDULES, query={"state": "PAUSED"}).body["schedules"]
    assert [(each["id"], each["next_fire"]) for each in paused] == [("c", None)]


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        (SCHEDULES, {"limit": "0"}, "limit"),
        (SCHEDULES, {"limit": "101"}, "limit"),
        (SCHEDULES, {"limit": "many"}, "limit"),
        (SCHEDULES, {"state": "ASLEEP"}, "state"),
        (SCHEDULES, {"prefix": "a/b"}, "prefix"),
        (SCHEDULES, {"page_token": "bogus"}, "page_token"),
        (SCHEDULES, {"sate": "PAUSED"}, "query"),
        (f"{SCHEDULE}/occurrences", {"limit": "1000"}, "limit"),
        (f"{SCHEDULE}/occurrences", {"state": "LOST"}, "state"),
        (f"{SCHEDULE}/occurrences", {"from": "yesterday"}, "from"),
        (f"{SCHEDULE}/occurrences", {"to": "2026-11-30T09:00:00"}, "to"),
        (f"{SCHEDULE}/occurrences", {"from": "2027-01-01T00:00:00Z", "to": TOO_EARLY}, "to"),
        (f"{SCHEDULE}/occurrences", {"from": "0001-01-01T00:00:00Z"}, "from"),
        (f"{SCHEDULE}/occurrences", {"from": "9999-12-31T23:30:00Z"}, "from"),
        (f"{SCHEDULE}/occurrences", {"to": "0001-01-01T00:00:00Z"}, "to"),
        (f"{SCHEDULE}/occurrences", {"to": "2400-01-01T00:00:00.001Z"}, "to"),
        (f"{SCHEDULE}/occurrences", {"page_token": "bogus"}, "page_token"),
        (f"{SCHEDULE}/occurrences/0001-01-01T00:00:00.000Z", {}, "occurrence"),
        (f"{SCHEDULE}/occurrences/1899-12-31T23:59:59.999Z", {}, "occurrence"),
        (f"{SCHEDULE}/occurrences/9999-12-31T23:59:59.999Z", {}, "occurrence"),
        (f"{SCHEDULE}/occurrences/9999-12-31T23:59:59.999Z~v2", {}, "occurrence"),
        (f"{SCHEDULE}/occurrences/nine-o-clock", {}, "occurrence"),
        (SCHEDULE, {"verbose": "1"}, "query"),
    ],
)  # fmt: skip
def test_a_bad_query_is_named(api: Api, path: str, query: dict[str, str], field: str) -> None:
    created(api)
    entry = error(api.call("GET", path, query=query), 400)
    assert entry["field"] == field
    if query:
        said = (text.removesuffix("Z") for text in (*query.values(), *query))
        assert any(text in entry["value"] for text in said)


@pytest.mark.parametrize("instant", ["1900-01-01T00:00:00.000Z", "2400-01-01T00:00:00.000Z"])
def test_the_ends_of_the_calendar_can_be_asked_for(api: Api, instant: str) -> None:
    created(api)
    for query in ({"from": instant}, {"to": instant}, {"from": instant, "to": instant}):
        page = api.call("GET", f"{SCHEDULE}/occurrences", query=query)
        assert page.status == 200, page.text
        assert "1900" <= page.body["from"] <= page.body["to"] <= "2400-01-01T00:00:00.000Z"
    answer = api.call("GET", f"{SCHEDULE}/occurrences/{instant}")
    assert error(answer, 404)["field"] == "occurrence"


def test_occurrences_are_listed_and_shown(api: Api) -> None:
    created(api, expression="rate(1 minute)")
    fire = NINE + timedelta(minutes=2)
    api.world.put(
        a_run(an_occurrence(scheduled_for=fire), state=RunState.SUCCEEDED),
        a_span(NINE + timedelta(minutes=1), NINE + timedelta(minutes=1)),
    )
    api.world.clock.advance(timedelta(minutes=3, seconds=30))
    page = api.call("GET", f"{SCHEDULE}/occurrences", query={"limit": "4"}).body
    span, run, due, to_come = page["occurrences"]
    assert (page["from"], page["to"]) == ("2026-11-29T09:03:30.000Z", "2026-11-30T10:03:30.000Z")
    assert (span["state"], span["first"], span["last"]) == (
        "MISSED",
        "2026-11-30T09:01:00.000Z",
        "2026-11-30T09:01:00.000Z",
    )
    assert (run["state"], run["attempt"], run["lag_seconds"]) == ("SUCCEEDED", 1, 0.0)
    assert run["enqueued_at"] == run["available_at"]
    assert (due["state"], to_come["state"]) == ("ENQUEUED", "SCHEDULED")
    assert page["next_page_token"]
    shown = api.call("GET", f"{SCHEDULE}/occurrences/{run['ref']}").body
    assert shown == run
    assert shown["attempts"][0]["number"] == 1
    answer = api.call("GET", f"{SCHEDULE}/occurrences/2026-11-30T09:00:07Z")
    assert error(answer, 404)["field"] == "occurrence"


@pytest.mark.parametrize(
    "ref",
    [
        "2026-11-30T09%3A02%3A00.000Z",
        "2026-11-30T09%3a02%3a00.000Z",
        "%32026-11-30T09:02:00%2E000Z",
        "2026-11-30T09:02:00.000Z",
    ],
)
def test_a_ref_is_read_as_the_gateway_leaves_it(api: Api, ref: str) -> None:
    created(api, expression="rate(1 minute)")
    shown = api.call("GET", f"{SCHEDULE}/occurrences/{ref}")
    assert shown.status == 200, shown.text
    assert shown.body["ref"] == "2026-11-30T09:02:00.000Z"


def test_a_notes_ref_is_read_with_its_mark_encoded(api: Api) -> None:
    created(api, expression="rate(1 minute)")
    api.world.put(a_note(an_occurrence(scheduled_for=NINE)))
    shown = api.call("GET", f"{SCHEDULE}/occurrences/2026-11-30T09%3A00%3A00.000Z%7Ev1")
    assert shown.body["ref"] == "2026-11-30T09:00:00.000Z~v1"


@pytest.mark.parametrize("ref", ["%", "%zz", "%FF", "%253A", "2026-11-30T09%253A02%253A00.000Z"])
def test_a_ref_is_decoded_once(api: Api, ref: str) -> None:
    created(api)
    answer = api.call("GET", f"{SCHEDULE}/occurrences/{ref}")
    assert error(answer, 400)["field"] == "occurrence"


def test_a_tenant_is_registered_and_shown_with_its_usage(api: Api) -> None:
    created(api)
    body = {"quotas": {"schedules_max": 5, "running_max": 7}, "targets": [OWN_QUEUE]}
    registered = api.call("PUT", "/v1/admin/tenants/acme", body)
    assert registered.status == 200
    assert registered.body == {
        "tenant": "acme",
        "quotas": {
            "schedules_max": 5,
            "fires_per_minute_max": None,
            "running_max": 7,
            "catch_ups_per_minute": 60,
            "retries_per_minute": 600,
            "smallest_interval_seconds": 60,
            "weight": 1,
        },
        "targets": [OWN_QUEUE],
        "roles": [],
        "principals": [],
        "target_limits": [],
        "external_id": "puntual/prod/acme",
        "usage": {"schedules": 1},
    }
    assert api.call("GET", "/v1/tenants/acme").body == registered.body
    assert api.call("GET", "/v1/admin/tenants/acme").body == registered.body
    assert api.call("PUT", "/v1/admin/tenants/new", {}).body["usage"] == {"schedules": 0}


def target_limits(**limit: object) -> dict[str, Any]:
    return {"target_limits": [{"target": "https://acme.example", **limit}]}


ANYBODY = "arn:aws:iam::123456789012:root"
USER = "arn:aws:iam::123456789012:user/ana"
INTERVAL_OF_10E30 = {"quotas": {"smallest_interval_seconds": 10**30}}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/admin/tenants/..", {}, "tenant"),
        ("/v1/admin/tenants/acme", {"quotas": 5}, "quotas"),
        ("/v1/admin/tenants/acme", {"quotas": {"schedules_max": -1}}, "quotas.schedules_max"),
        ("/v1/admin/tenants/acme", {"quotas": {"schedules_max": "5"}}, "quotas.schedules_max"),
        ("/v1/admin/tenants/acme", {"quotas": {"schedules_max": None}}, "quotas.schedules_max"),
        ("/v1/admin/tenants/acme", {"quotas": {"running_max": 0}}, "quotas.running_max"),
        ("/v1/admin/tenants/acme", {"quotas": {"weight": 101}}, "quotas.weight"),
        ("/v1/admin/tenants/acme", {"quotas": {"fires_max": 1}}, "quotas.fires_max"),
        ("/v1/admin/tenants/acme", INTERVAL_OF_10E30, "quotas.smallest_interval_seconds"),
        ("/v1/admin/tenants/acme", {"schedules_max": 5}, "schedules_max"),
        ("/v1/admin/tenants/acme", {"targets": "arn"}, "targets"),
        ("/v1/admin/tenants/acme", {"targets": ["arn:aws:sqs:x:1:y"]}, "targets.0"),
        ("/v1/admin/tenants/acme", {"roles": ["arn:aws:iam::123456789012:role/admin"]}, "roles.0"),
        ("/v1/admin/tenants/acme", {"roles": [f"{ROLE}{n}" for n in range(21)]}, "roles"),
        ("/v1/admin/tenants/acme", {"principals": "arn"}, "principals"),
        ("/v1/admin/tenants/acme", {"principals": [ANYBODY]}, "principals.0"),
        ("/v1/admin/tenants/acme", {"principals": [f"{USER}{n}" for n in range(51)]}, "principals"),
        ("/v1/admin/tenants/acme", {"target_limits": {}}, "target_limits"),
        ("/v1/admin/tenants/acme", target_limits(target=1), "target_limits.0.target"),
        ("/v1/admin/tenants/acme", target_limits(running="1"), "target_limits.0.running"),
        ("/v1/admin/tenants/acme", target_limits(running=0), "target_limits.0.running"),
        ("/v1/admin/tenants/acme", target_limits(per_minute=0), "target_limits.0.per_minute"),
        ("/v1/admin/tenants/acme", target_limits(per_second=1), "target_limits.per_second"),
        ("/v1/admin/tenants/acme", target_limits(target="acme.example"), "target_limits.0.target"),
        ("/v1/admin/tenants/acme", target_limits(), "target_limits.0.per_minute"),
        ("/v1/admin/tenants/acme", {"external_id": "puntual/prod/globex"}, "external_id"),
        ("/v1/admin/tenants/acme", {"weight": 2}, "weight"),
    ],
)
def test_a_bad_registration_is_refused(
    api: Api, path: str, body: dict[str, Any], field: str
) -> None:
    before = api.world.writes()
    assert error(api.call("PUT", path, body), 400)["field"] == field
    assert api.world.writes() == before


KEY = {"Idempotency-Key": "order-7"}
NAMELESS = {name: value for name, value in BODY.items() if name != "id"}


@pytest.mark.parametrize("body", [BODY, NAMELESS])
def test_the_same_key_and_body_get_the_same_answer(api: Api, body: dict[str, Any]) -> None:
    first = api.call("POST", SCHEDULES, body, headers=KEY)
    api.world.clock.advance(timedelta(hours=2))
    reordered = dict(reversed(body.items()))
    again = api.call("POST", SCHEDULES, reordered, headers=KEY)
    assert first.status == 201
    assert again == first
    assert len(api.world.schedules.head_rows) == 1


WRITTEN_OUT: dict[str, Any] = {
    "gap": "skip",
    "fold": "auto",
    "start_at": None,
    "end_at": None,
    "flexible_window_seconds": 0,
    "misfire": {
        "policy": "fire_once",
        "misfire_after_seconds": 60,
        "max_lateness_seconds": None,
        "limit": 100,
    },
    "retry": {"max_attempts": 5, "base_seconds": 10, "cap_seconds": 1800, "deadline_seconds": None},
    "overlap": "allow",
    "completion": {
        "policy": "response",
        "heartbeat_seconds": 120,
        "max_duration_seconds": 7200,
    },
    "target": {**WEBHOOK, "timeout_seconds": 10},
}


@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_a_default_is_the_same_request_written_out_or_left_out(api: Api, name: str) -> None:
    first = api.call("POST", SCHEDULES, BODY, headers=KEY)
    again = api.call("POST", SCHEDULES, {**BODY, name: WRITTEN_OUT[name]}, headers=KEY)
    assert again == first


def test_the_same_request_may_be_written_otherwise(api: Api) -> None:
    body: dict[str, Any] = {**NAMELESS, "start_at": "2026-12-01T00:00:00Z", "payload": None}
    first = api.call("POST", SCHEDULES, body, headers=KEY)
    assert first.status == 201
    body |= {"start_at": "2026-12-01T01:00:00.0+01:00", "id": None, "misfire": {}}
    del body["payload"]
    assert api.call("POST", SCHEDULES, body, headers=KEY) == first


@pytest.mark.parametrize("payload", [1, 1.0, True, "1", None, [], {}, [1], {"a": None}])
def test_payloads_that_the_target_could_tell_apart_are_other_requests(
    api: Api, payload: object
) -> None:
    api.call("POST", SCHEDULES, {**BODY, "payload": payload}, headers=KEY)
    for other in (1, 1.0, True, "1", None, [], {}, [1], {"a": None}):
        answer = api.call("POST", SCHEDULES, {**BODY, "payload": other}, headers=KEY)
        same = json.dumps(other) == json.dumps(payload)
        assert answer.status == (201 if same else 422), answer.text


def test_the_same_key_with_another_body_is_refused(api: Api) -> None:
    api.call("POST", SCHEDULES, BODY, headers=KEY)
    before = api.world.writes()
    for body in ({**BODY, "payload": 8}, {**BODY, "id": "other"}, NAMELESS):
        entry = error(api.call("POST", SCHEDULES, body, headers=KEY), 422)
        assert (entry["field"], entry["value"]) == ("Idempotency-Key", "order-7")
    assert api.world.writes() == before


def test_a_key_belongs_to_its_tenant(api: Api) -> None:
    api.world.tenants.register(a_tenant("globex"))
    ours = api.call("POST", SCHEDULES, NAMELESS, headers=KEY)
    theirs = api.call("POST", "/v1/tenants/globex/schedules", NAMELESS, headers=KEY)
    assert (ours.status, theirs.status) == (201, 201)
    assert ours.body["id"] != theirs.body["id"]


@pytest.mark.parametrize("key", ["", "a b", "x" * 129, "ñ"])
def test_a_bad_idempotency_key_is_refused(api: Api, key: str) -> None:
    answer = api.call("POST", SCHEDULES, BODY, headers={"Idempotency-Key": key})
    assert error(answer, 400)["field"] == "Idempotency-Key"


def test_a_refused_request_does_not_use_its_key_up(api: Api) -> None:
    bad = {**BODY, "time_zone": "Mars/Phobos"}
    assert api.call("POST", SCHEDULES, bad, headers=KEY).status == 400
    assert api.call("POST", SCHEDULES, BODY, headers=KEY).status == 201


@dataclass(frozen=True, slots=True)
class _Dying(HostileSchedules):
    """The transaction is done, then the function is gone, or only its answer is."""

    end: BaseException

    def create(
        self, head: Schedule, version: ScheduleVersion, cursor: Cursor | None, *, shard: int
    ) -> CreateResult:
        self.inner.create(head, version, cursor, shard=shard)
        raise self.end


def dying(api: Api, end: BaseException) -> Desk:
    quiet = Hostility(source=random.Random(1))
    plane = api.world.plane_on(_Dying(api.world.schedules, quiet, end))
    return Desk(plane=plane, idempotency=api.desk.idempotency)


@pytest.mark.parametrize("body", [BODY, NAMELESS])
def test_a_crash_after_the_transaction_gives_one_schedule_and_the_same_answer(
    api: Api, body: dict[str, Any]
) -> None:
    untroubled = Api(world=World(), desk=api.desk)
    untroubled.desk = Desk(plane=untroubled.world.plane, idempotency=api.desk.idempotency)
    expected = untroubled.call("POST", SCHEDULES, body, headers=KEY)
    forget(api)

    well = api.desk
    # Killed at its time limit: the record stays in progress, and its time is over at once.
    api.context = Context(remaining_milliseconds=0)
    api.desk = dying(api, SystemExit("killed"))
    with pytest.raises(SystemExit):
        api.call("POST", SCHEDULES, body, headers=KEY)

    api.desk, api.context = well, Context()
    api.world.clock.advance(timedelta(seconds=30))
    again = api.call("POST", SCHEDULES, body, headers=KEY)
    assert again == expected
    assert api.call("POST", SCHEDULES, body, headers=KEY) == expected
    assert len(api.world.schedules.head_rows) == 1
    assert api.world.planned() == untroubled.world.planned()


def forget(api: Api) -> None:
    """Empty the idempotency table, as if the other stack had its own."""
    client = api.desk.idempotency.client  # type: ignore[attr-defined]
    for item in client.scan(TableName="idempotency")["Items"]:
        client.delete_item(TableName="idempotency", Key={"id": item["id"]})


def test_a_request_in_progress_holds_its_key_for_the_functions_time_limit_only(api: Api) -> None:
    well = api.desk
    api.desk = dying(api, SystemExit("killed"))
    with pytest.raises(SystemExit):
        api.call("POST", SCHEDULES, BODY, headers=KEY)
    api.desk = well
    answer = api.call("POST", SCHEDULES, BODY, headers=KEY)
    problem(answer, 409)
    assert answer.headers["Retry-After"] == "1"
    client = api.desk.idempotency.client  # type: ignore[attr-defined]
    (record,) = client.scan(TableName="idempotency")["Items"]
    seconds = int(record["in_progress_expiration"]["N"]) / 1000 - int(record["expiration"]["N"])
    assert seconds + 24 * 60 * 60 <= 30


def test_a_lost_answer_is_a_503_and_its_repeat_a_201(api: Api) -> None:
    well = api.desk
    api.desk = dying(api, Unavailable("timed out after it took effect"))
    answer = api.call("POST", SCHEDULES, BODY, headers=KEY)
    problem(answer, 503)
    assert answer.headers["Retry-After"] == "1"
    api.desk = well
    assert api.call("POST", SCHEDULES, BODY, headers=KEY).status == 201


def test_an_idempotency_table_out_of_reach_is_a_503(api: Api) -> None:
    api.desk.idempotency.client.delete_table(TableName="idempotency")  # type: ignore[attr-defined]
    before = api.world.writes()
    problem(api.call("POST", SCHEDULES, BODY, headers=KEY), 503)
    assert api.world.writes() == before


def test_an_unexpected_failure_is_logged_and_tells_nothing(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    api.desk = dying(api, RuntimeError("the password is hunter2"))
    answer = api.call("POST", SCHEDULES, BODY)
    problem(answer, 500)
    assert "hunter2" not in answer.text
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert (record.name, record.getMessage()) == (logger.name, "unexpected failure")
    assert record.exc_info is not None


def test_a_request_is_one_line_of_log_without_body_and_headers(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    created(api, payload="a-secret")
    (record,) = [record for record in caplog.records if record.name == logger.name]
    line = vars(record)
    assert record.getMessage() == "answered"
    assert (line["method"], line["path"], line["status"]) == ("POST", SCHEDULES, 201)
    assert line["caller"] == CALLER
    assert "a-secret" not in str(line)
    assert "Signature" not in str(line)


FORECAST = "/v1/tenants/acme/forecast"


def test_a_forecast_says_when_how_many_and_by_whom(api: Api) -> None:
    for name in ("a", "b", "c"):
        created(api, id=name, expression="0 10 * * *")
    created(api, id="d", expression="7 */12 * * *", time_zone="UTC")
    body = api.call("GET", FORECAST).body
    minutes = body.pop("minutes")
    assert len(minutes) == 1_440
    assert {minute: fires for minute, fires in enumerate(minutes) if fires} == {
        0: 3,
        187: 1,
        907: 1,
    }
    hint, replacement = body.pop("hints")
    assert hint.startswith("60% of the fires fall on minute 0")
    assert replacement == (
        "3 of them come from 0 10 * * * in Europe/Madrid; H 10 * * * would spread them."
    )
    daily = {"expression": "0 10 * * *", "time_zone": "Europe/Madrid"}
    twice = {"expression": "7 */12 * * *", "time_zone": "UTC"}
    assert body == {
        "tenant": "acme",
        "from": "2026-11-30T09:00:00.000Z",
        "to": "2026-12-01T09:00:00.000Z",
        "schedules": {"active": 4, "read": 4, "unreadable": 0},
        "sampled": False,
        "sampled_share": 1.0,
        "fires": 5,
        "minute_0_share": 0.6,
        "peak": {"minute": "2026-11-30T09:00:00.000Z", "fires": 3},
        "busiest": [
            {
                "minute": "2026-11-30T09:00:00.000Z",
                "fires": 3,
                "expressions": [{**daily, "fires": 3}],
            },
            {
                "minute": "2026-11-30T12:07:00.000Z",
                "fires": 1,
                "expressions": [{**twice, "fires": 1}],
            },
            {
                "minute": "2026-12-01T00:07:00.000Z",
                "fires": 1,
                "expressions": [{**twice, "fires": 1}],
            },
        ],
        "distinct_expressions": 2,
        "expressions": [
            {**daily, "schedules": 3, "fires": 3, "minute_0_fires": 3},
            {**twice, "schedules": 1, "fires": 2, "minute_0_fires": 0},
        ],
    }


def test_a_forecast_of_nothing_is_empty(api: Api) -> None:
    body = api.call("GET", FORECAST).body
    assert body["minutes"] == [0] * 1_440
    assert (body["fires"], body["minute_0_share"], body["peak"]) == (0, None, None)
    assert body["hints"] == body["busiest"] == body["expressions"] == []


def test_a_forecast_of_a_tenant_that_nobody_knows_is_refused(api: Api) -> None:
    entry = error(api.call("GET", "/v1/tenants/nobody/forecast"), 404)
    assert (entry["field"], entry["value"]) == ("tenant", "nobody")
    assert error(api.call("GET", FORECAST, query={"hours": "3"}), 400)["field"] == "query"
    assert api.call("POST", FORECAST).status == 405


def test_a_second_forecast_at_once_is_told_when_to_come_back(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    assert api.call("GET", FORECAST).status == 200
    refused = api.call("GET", FORECAST)
    assert (refused.status, refused.headers["Retry-After"]) == (429, "5")
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert "once in 5 seconds" in refused.body["detail"]
    logged = [record.getMessage() for record in caplog.records if record.name == logger.name]
    assert logged == ["answered", "answered"], "a tenant must not fill the log with warnings"
    api.world.clock.advance(timedelta(seconds=5))
    assert api.call("GET", FORECAST).status == 200


def test_a_forecast_from_a_part_says_so(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    class Throttled(InMemorySchedules):
        def active_rules(self, tenant: TenantId) -> Generator[RulePage]:
            assert tenant == "acme"
            counts = (RuleCount(a_rule("0 9 * * *"), 7), RuleCount(a_rule("of the future"), 1))
            yield RulePage(counts=counts, share=0.03125)

    world = api.world
    schedules = Throttled(agenda=world.agenda, tenants=world.tenants)
    desk = Desk(plane=world.plane_on(schedules), idempotency=api.desk.idempotency)
    body = Api(world=world, desk=desk).call("GET", FORECAST).body
    assert (body["sampled"], body["sampled_share"]) == (True, 0.0312)
    assert body["schedules"] == {"active": 256, "read": 8, "unreadable": 1}
    assert body["fires"] == sum(body["minutes"]) == 224
    (left_out,) = [vars(record) for record in caplog.records if record.msg == "rules left out"]
    assert (left_out["schedules"], left_out["example"]) == (1, "of the future")


@pytest.mark.parametrize("inner", ["retry", "misfire", "target"])
@pytest.mark.parametrize("value", [1, None, {}])
def test_a_payload_within_another_member_is_refused_by_its_name(
    api: Api, inner: str, value: object
) -> None:
    created(api)
    answer = api.call("PATCH", SCHEDULE, {inner: {"payload": value}}, headers=FIRST)
    assert error(answer, 400)["field"] == f"{inner}.payload"


@pytest.mark.parametrize(
    "text",
    ["2026-W49-1T00:00:00Z", "20261201T000000Z", "2026-12-01T00:00:00+23:59:59", "2026-12-01T00Z"],
)
def test_only_instants_of_rfc_3339_are_taken(api: Api, text: str) -> None:
    assert (
        error(api.call("POST", SCHEDULES, {**BODY, "start_at": text}), 400)["field"] == "start_at"
    )
