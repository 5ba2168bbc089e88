"""Trigger, backfill and max_runs through the API's function."""

from datetime import timedelta
from typing import Any

import pytest

from puntual.domain.occurrence import Kind
from puntual.domain.run import RunState
from tests.builders import a_note, a_run, an_occurrence
from tests.functions.conftest import Answered, Api

INVOICES = "/v1/tenants/acme/schedules/invoices"
TRIGGER = f"{INVOICES}/trigger"
BACKFILL = f"{INVOICES}/backfill"
KEY = {"Idempotency-Key": "k-1"}
RANGE = {"from": "2026-11-30T09:00:00Z", "until": "2026-11-30T09:30:00+00:00"}
TARGET = {"type": "webhook", "url": "https://acme.example/hooks/invoices"}


@pytest.fixture
def made(api: Api) -> Api:
    """It is ten, and the schedule has fired every five minutes since nine."""
    api.world.created("rate(5 minutes)")
    api.world.clock.advance(timedelta(hours=1))
    return api


def refusal_of(answer: Answered, status: int = 400) -> dict[str, Any]:
    assert answer.status == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    [error] = answer.body["errors"]
    return dict(error)


@pytest.mark.parametrize("body", [None, {}])
def test_a_trigger_says_where_its_run_can_be_seen(made: Api, body: object) -> None:
    answer = made.call("POST", TRIGGER, body)
    assert answer.status == 202
    location = answer.headers["Location"]
    ref = answer.body["ref"]
    assert location.endswith(f"{INVOICES}/occurrences/{ref}")
    assert made.call("GET", f"{INVOICES}/occurrences/{ref}").body["state"] == "ENQUEUED"


def test_a_repeated_trigger_is_answered_the_same_to_the_byte(made: Api) -> None:
    first = made.call("POST", TRIGGER, headers=KEY)
    made.world.clock.advance(timedelta(hours=30))
    again = made.call("POST", TRIGGER, headers=KEY)
    assert (again.text, again.headers) == (first.text, first.headers)


def test_a_backfill_may_be_repeated_and_its_key_means_one_thing(made: Api) -> None:
    body = {**RANGE, "only_missing": False}
    first = made.call("POST", BACKFILL, body, headers=KEY)
    made.world.clock.advance(timedelta(hours=30))
    other_words = {**body, "until": "2026-11-30T10:30:00+01:00", "dry_run": False}
    again = made.call("POST", BACKFILL, other_words, headers=KEY)
    assert (first.status, again.status, again.text) == (202, 202, first.text)
    for path, other in ((BACKFILL, RANGE), (TRIGGER, None)):
        refused = made.call("POST", path, other, headers=KEY)
        assert refusal_of(refused, 422)["field"] == "Idempotency-Key"


@pytest.mark.parametrize("path", [TRIGGER, BACKFILL])
def test_nothing_runs_of_a_canceled_schedule(made: Api, path: str) -> None:
    made.call("DELETE", INVOICES)
    answer = made.call("POST", path, RANGE if path == BACKFILL else None)
    assert (answer.status, "CANCELED" in answer.body["detail"]) == (409, True)


@pytest.mark.parametrize("path", [TRIGGER, BACKFILL])
def test_a_paused_schedule_runs_what_is_asked_for(made: Api, path: str) -> None:
    made.call("POST", f"{INVOICES}/pause")
    assert made.call("POST", path, RANGE if path == BACKFILL else None).status == 202


@pytest.mark.parametrize("path", [TRIGGER, BACKFILL])
def test_if_match_asks_for_the_version_that_was_seen(made: Api, path: str) -> None:
    body = RANGE if path == BACKFILL else None
    assert made.call("POST", path, body, headers={"If-Match": '"2"'}).status == 412
    assert made.call("POST", path, body, headers={"If-Match": '"1"'}).status == 202


@pytest.mark.parametrize("rest", ["trigger", "backfill"])
def test_an_unknown_schedule_is_not_found(api: Api, rest: str) -> None:
    path = f"/v1/tenants/acme/schedules/none/{rest}"
    assert api.call("POST", path, RANGE if rest == "backfill" else None).status == 404
    assert api.call("GET", path).status == 405


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"from": "2026-10-30T09:00:00Z"}, "from"),
        ({"from": "today"}, "from"),
        ({"from": None}, "from"),
        ({"until": "2026-11-30T10:00:00.001Z"}, "until"),
        ({"until": "2026-11-30T08:59:00Z"}, "until"),
        ({"limit": 0}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"limit": "5"}, "limit"),
        ({"only_missing": "yes"}, "only_missing"),
        ({"dry_run": 1}, "dry_run"),
        ({"to": "2026-11-30T09:30:00Z"}, "to"),
        ({"start": "2026-11-30T09:30:00Z"}, "start"),
    ],
)
def test_a_backfill_is_refused_by_the_name_of_what_is_wrong(
    made: Api, change: dict[str, object], field: str
) -> None:
    before = made.world.writes()
    assert refusal_of(made.call("POST", BACKFILL, {**RANGE, **change}))["field"] == field
    assert made.world.writes() == before


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_what_is_either_true_or_false_says_so(made: Api, value: object) -> None:
    refused = refusal_of(made.call("POST", BACKFILL, {**RANGE, "dry_run": value}))
    assert refused["allowed"] == "true or false"


def test_a_body_that_is_missing_is_asked_for_by_its_kind(made: Api) -> None:
    refused = refusal_of(made.call("POST", BACKFILL))
    assert (refused["field"], refused["allowed"]) == ("body", "a JSON object")


def test_a_trigger_is_told_nothing_but_when(made: Api) -> None:
    error = refusal_of(made.call("POST", TRIGGER, {"payload": {}}))
    assert (error["field"], error["allowed"]) == ("payload", "nothing")
    assert refusal_of(made.call("POST", TRIGGER, query={"dry_run": "true"}))["field"] == "query"


def test_a_page_that_ends_between_an_asked_run_and_its_note_does_not_tell_of_it_twice(
    made: Api,
) -> None:
    own = an_occurrence(kind=Kind.MANUAL, request_id="r-1")
    made.world.put(a_run(own, state=RunState.CANCELED, attempt=0), a_note(own))
    query = {"from": "2026-11-30T09:00:00Z", "to": "2026-11-30T09:02:00Z", "limit": "1"}
    first = made.call("GET", f"{INVOICES}/occurrences", query=query).body
    query["page_token"] = first["next_page_token"]
    second = made.call("GET", f"{INVOICES}/occurrences", query=query).body
    assert [each["kind"] for each in first["occurrences"]] == ["manual"]
    assert second["occurrences"] == []


def define(api: Api, **fields: object) -> Answered:
    body = {"id": "bounded", "expression": "rate(1 hour)", "target": TARGET, **fields}
    return api.call("POST", "/v1/tenants/acme/schedules", body)


def test_the_end_that_max_runs_became_is_shown_beside_the_one_that_was_asked_for(api: Api) -> None:
    made = define(api, max_runs=3, end_at="2026-12-31T00:00:00Z").body
    shown = (made["max_runs"], made["end_at"], made["ends_at"])
    assert shown == (3, "2026-12-31T00:00:00.000Z", "2026-11-30T12:00:00.000Z")
    assert len(made["next_fires"]) == 3


def test_max_runs_can_be_patched_and_taken_away(api: Api) -> None:
    path = "/v1/tenants/acme/schedules/bounded"
    define(api, max_runs=3)
    patched = api.call("PATCH", path, {"max_runs": 1}, headers={"If-Match": '"1"'}).body
    assert (patched["max_runs"], patched["ends_at"]) == (1, "2026-11-30T10:00:00.000Z")
    freed = api.call("PATCH", path, {"max_runs": None}, headers={"If-Match": '"2"'}).body
    assert (freed["max_runs"], freed["end_at"], freed["ends_at"]) == (None, None, None)


@pytest.mark.parametrize("runs", [0, 10_001, "3", 1.5])
def test_max_runs_is_refused_outside_of_its_bounds(api: Api, runs: object) -> None:
    assert refusal_of(define(api, max_runs=runs))["field"] == "max_runs"


def test_max_runs_of_a_single_fire_is_refused(api: Api) -> None:
    answer = define(api, expression="at(2026-12-01T09:00:00)", max_runs=1)
    assert refusal_of(answer)["field"] == "max_runs"


def test_a_preview_counts_too(api: Api) -> None:
    body = {"expression": "rate(1 hour)", "max_runs": 2}
    answer = api.call("POST", "/v1/tenants/acme/preview", body)
    fires = [fire["utc"] for fire in answer.body["fires"]]
    assert fires == ["2026-11-30T10:00:00.000Z", "2026-11-30T11:00:00.000Z"]
