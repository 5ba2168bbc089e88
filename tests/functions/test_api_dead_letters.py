"""Routes of dead letters and replays: what they answer, and what they make of bad requests."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from puntual.domain.run import Run, RunState
from tests.builders import NINE, a_run, an_occurrence
from tests.control_plane_world import AUTHOR, KEY
from tests.functions.conftest import Answered, Api

TENANT = "/v1/tenants/acme"
LIST = f"{TENANT}/dead-letters"
MANY = f"{LIST}/replay"
REF = "2026-11-30T09:05:00.000Z"
ROW = f"{TENANT}/schedules/invoices/occurrences/{REF}"
ONE = f"{ROW}/replay"


def a_dead_one(number: int = 1) -> Run:
    at = NINE + number * timedelta(minutes=5)
    run = a_run(an_occurrence(scheduled_for=at), state=RunState.DEAD, reason="HTTP 503", attempt=2)
    tries = tuple(
        replace(each, finished_at=at + timedelta(seconds=2), result="HTTP 503")
        for each in run.attempts
    )
    return replace(
        run, attempts=tries, died_at=at + timedelta(seconds=2), write_id=f"dead-{number}"
    )


@pytest.fixture
def dead(api: Api) -> Api:
    api.world.created()
    api.world.put(*(a_dead_one(number) for number in (1, 2, 3)))
    api.world.clock.advance_to(NINE + timedelta(hours=1))
    return api


def problem(answer: Answered, status: int) -> dict[str, Any]:
    assert answer.status == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    return answer.body


def test_dead_letters_are_listed_with_what_one_needs_to_mend_them(dead: Api) -> None:
    body = dead.call("GET", LIST, query={"limit": "1"}).body
    [letter] = body["dead_letters"]
    assert (letter["schedule"], letter["ref"]) == ("invoices", "2026-11-30T09:15:00.000Z")
    assert letter["died_at"] == "2026-11-30T09:15:02.000Z"
    assert (letter["last_error"], letter["attempt"], letter["round"]) == ("HTTP 503", 2, 0)
    assert [each["result"] for each in letter["attempts"]] == ["HTTP 503"] * 2
    rest = dead.call("GET", LIST, query={"page_token": body["next_page_token"]}).body
    assert len(rest["dead_letters"]) == 2
    assert rest["next_page_token"] is None


def test_dead_letters_can_be_asked_for_by_schedule_and_time(dead: Api) -> None:
    query = {"since": "2026-11-30T09:06:00Z", "until": "2026-11-30T09:12:00Z"}
    assert len(dead.call("GET", LIST, query=query).body["dead_letters"]) == 1
    other = dead.call("GET", LIST, query={"schedule": "other"}).body
    assert other == {"dead_letters": [], "next_page_token": None}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"since": "yesterday"}, "since"),
        ({"until": "2026-11-30"}, "until"),
        ({"since": "2026-11-30T09:00:00Z", "until": "2026-11-30T08:00:00Z"}, "until"),
        ({"schedule": "no/id"}, "schedule"),
        ({"limit": "0"}, "limit"),
        ({"page_token": "mine"}, "page_token"),
        ({"state": "DEAD"}, "query"),
    ],
)
def test_a_list_names_what_is_wrong_with_it(dead: Api, query: dict[str, str], field: str) -> None:
    [error] = problem(dead.call("GET", LIST, query=query), 400)["errors"]
    assert error["field"] == field


def test_a_replay_answers_with_the_row_of_the_new_round(dead: Api) -> None:
    answer = dead.call("POST", ONE, {})
    assert answer.status == 202
    body = answer.body
    assert (body["state"], body["round"], body["attempt"]) == ("RETRY_WAIT", 1, 2)
    assert (body["authorised_version"], body["reason"], body["last_error"]) == (1, "replay", "")
    assert body["not_before"] == "2026-11-30T10:00:00.000Z"
    assert dead.call("GET", ROW).body == body
    assert len(dead.call("GET", LIST).body["dead_letters"]) == 2


def test_a_ref_may_be_encoded(dead: Api) -> None:
    assert dead.call("POST", ONE.replace(":", "%3A"), {}).status == 202


def test_a_replay_that_the_state_does_not_allow_is_a_conflict(dead: Api) -> None:
    dead.call("POST", ONE, {})
    assert "RETRY_WAIT" in problem(dead.call("POST", ONE, {}), 409)["detail"]
    dead.world.plane.cancel_schedule(KEY, author=AUTHOR)
    other = ONE.replace("09:05", "09:10")
    assert "CANCELED" in problem(dead.call("POST", other, {"force": True}), 409)["detail"]


def test_a_success_needs_force(dead: Api) -> None:
    done = replace(a_dead_one(), state=RunState.SUCCEEDED, died_at=None, write_id="done")
    dead.world.ledger.swap(done, seen=a_dead_one())
    assert "force true" in problem(dead.call("POST", ONE, {}), 409)["detail"]
    assert dead.call("POST", ONE, {"force": True}).status == 202


def test_a_replay_of_nothing_is_not_found(dead: Api) -> None:
    problem(dead.call("POST", ONE.replace("09:05", "09:07"), {}), 404)
    problem(dead.call("POST", ONE.replace("invoices", "nobody"), {}), 404)
    problem(dead.call("POST", ONE.replace(REF, "noon"), {}), 400)


@pytest.mark.parametrize("body", [{"force": 1}, {"force": None}, {"forced": True}, None])
def test_a_replay_names_what_is_wrong_with_its_body(dead: Api, body: object) -> None:
    before = dead.world.writes()
    problem(dead.call("POST", ONE, body), 400)
    assert dead.world.writes() == before


def test_a_replay_with_a_key_is_done_once_and_answered_alike(dead: Api) -> None:
    headers = {"Idempotency-Key": "again-1"}
    first = dead.call("POST", ONE, {}, headers=headers)
    row = dead.world.ledger.read(a_dead_one().occurrence.key)
    assert row is not None
    ended = replace(row, state=RunState.DEAD, died_at=NINE, write_id="ended")
    assert dead.world.ledger.swap(ended, seen=row)
    again = dead.call("POST", ONE, {}, headers=headers)
    assert (again.status, again.body) == (202, first.body)
    assert dead.world.ledger.read(a_dead_one().occurrence.key) == ended


@pytest.mark.parametrize(
    ("path", "body"), [(ONE, {"force": True}), (ONE.replace("09:05", "09:10"), {})]
)
def test_a_key_that_came_with_another_request_is_refused(
    dead: Api, path: str, body: dict[str, object]
) -> None:
    headers = {"Idempotency-Key": "again-2"}
    assert dead.call("POST", ONE, {}, headers=headers).status == 202
    problem(dead.call("POST", path, body, headers=headers), 422)


def test_many_are_replayed_with_a_result_each(dead: Api) -> None:
    answer = dead.call("POST", MANY, {"limit": 2})
    assert answer.status == 202
    body = answer.body
    assert (body["replayed"], body["refused"], body["dry_run"]) == (2, 0, False)
    assert body["results"][0] == {
        "schedule": "invoices",
        "ref": "2026-11-30T09:15:00.000Z",
        "result": "replayed",
        "round": 1,
        "not_before": "2026-11-30T10:00:00.000Z",
        "reason": "",
    }
    assert body["results"][1]["not_before"] == "2026-11-30T10:00:01.000Z"
    rest = dead.call("POST", MANY, {"limit": 2, "resume_token": body["resume_token"]}).body
    assert (rest["replayed"], rest["resume_token"]) == (1, None)


def test_a_dry_run_of_many_writes_nothing(dead: Api) -> None:
    before = dead.world.writes()
    answer = dead.call("POST", MANY, {"dry_run": True})
    assert answer.status == 200
    assert {each["result"] for each in answer.body["results"]} == {"would_replay"}
    assert (answer.body["replayed"], answer.body["refused"]) == (0, 0)
    assert dead.world.writes() == before


def test_a_list_of_refs_has_its_refusals_in_place(dead: Api) -> None:
    refs = [
        {"schedule": "invoices", "ref": REF},
        {"schedule": "nobody", "ref": REF},
    ]
    body = dead.call("POST", MANY, {"refs": refs}).body
    assert [each["result"] for each in body["results"]] == ["replayed", "refused"]
    assert body["results"][1]["reason"] == "the tenant has no such schedule"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"refs": []}, "refs"),
        ({"refs": [{"schedule": "invoices", "ref": REF}] * 101}, "refs"),
        ({"refs": [{"schedule": "invoices"}]}, "refs.0.ref"),
        ({"refs": [{"schedule": "no/id", "ref": REF}]}, "refs.schedule"),
        ({"refs": [{"schedule": "invoices", "ref": "noon"}]}, "refs.ref"),
        ({"refs": [{"schedule": "invoices", "ref": REF}], "limit": 3}, "limit"),
        ({"limit": 101}, "limit"),
        ({"since": "noon"}, "since"),
        ({"resume_token": "mine"}, "resume_token"),
        ({"tenant": "other"}, "tenant"),
        ({"dry_run": "yes"}, "dry_run"),
    ],
)
def test_a_replay_of_many_names_what_is_wrong_with_it(
    dead: Api, body: dict[str, Any], field: str
) -> None:
    before = dead.world.writes()
    [error] = problem(dead.call("POST", MANY, body), 400)["errors"]
    assert error["field"] == field
    assert error["allowed"]
    assert dead.world.writes() == before


@pytest.mark.parametrize("deadline", [0, 15 * 86_400 + 1, "60", 1.5])
def test_a_retry_deadline_has_bounds(api: Api, deadline: object) -> None:
    body = {
        "expression": "rate(5 minutes)",
        "target": {"type": "webhook", "url": "https://acme.example/hook"},
        "retry": {"deadline_seconds": deadline},
    }
    [error] = problem(api.call("POST", f"{TENANT}/schedules", body), 400)["errors"]
    assert error["field"] == "retry.deadline_seconds"


def test_a_retry_deadline_is_kept_and_shown(api: Api) -> None:
    body = {
        "id": "quick",
        "expression": "rate(5 minutes)",
        "target": {"type": "webhook", "url": "https://acme.example/hook"},
        "retry": {"deadline_seconds": 90},
    }
    made = api.call("POST", f"{TENANT}/schedules", body)
    assert made.body["retry"]["deadline_seconds"] == 90
    patch = {"retry": {"deadline_seconds": None}}
    patched = api.call("PATCH", f"{TENANT}/schedules/quick", patch, headers={"If-Match": '"1"'})
    assert patched.body["retry"]["deadline_seconds"] is None
    assert json.loads(patched.text)["version"] == 2


@pytest.mark.parametrize(
    ("count", "allowed"), [(0, "at least 1 of them"), (101, "at most 100 of them")]
)
def test_too_few_or_too_many_refs_are_refused_with_how_many_there_may_be(
    dead: Api, count: int, allowed: str
) -> None:
    refs = [{"schedule": "invoices", "ref": REF}] * count
    [error] = problem(dead.call("POST", MANY, {"refs": refs}), 400)["errors"]
    assert (error["field"], error["allowed"]) == ("refs", allowed)
