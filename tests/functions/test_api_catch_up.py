"""The dry run of catching up, and the counts of missed ranges."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from puntual.domain.tenant import ScheduleId
from tests.builders import NINE, a_run, a_span, an_occurrence
from tests.control_plane_world import a_definition
from tests.functions.conftest import Api

PREVIEW = "/v1/tenants/acme/schedules/invoices/catch-up-preview"
OCCURRENCES = "/v1/tenants/acme/schedules/invoices/occurrences"
FIVE = timedelta(minutes=5)


@pytest.fixture(autouse=True)
def schedule(api: Api) -> None:
    api.world.created("*/5 * * * *")


def test_an_outage_that_ended_now_is_previewed_for_every_policy(api: Api) -> None:
    api.world.clock.advance_to(NINE + timedelta(hours=3, minutes=2))
    answer = api.call("GET", PREVIEW, query={"from": "2026-11-30T09:00:00Z"})
    body: dict[str, Any] = answer.body
    assert (body["until"], body["fires"]) == ("2026-11-30T12:02:00.000Z", 36)
    policies = body["policies"]
    assert {name: (told["runs"], told["missed"]) for name, told in policies.items()} == {
        "skip": (0, 36),
        "fire_once": (1, 35),
        "catch_up": (36, 0),
    }
    assert len(policies["catch_up"]["first_runs"]) == 10
    assert policies["catch_up"]["drains_in_seconds"] == 35


def test_a_preview_writes_nothing(api: Api) -> None:
    before = api.world.writes()
    api.call("GET", PREVIEW, query={"from": "2026-11-01T00:00:00Z"})
    assert api.world.writes() == before


def test_a_paused_schedule_misses_nothing(api: Api) -> None:
    api.call("POST", "/v1/tenants/acme/schedules/invoices/pause")
    query = {"from": "2026-11-30T09:00:00Z", "until": "2026-11-30T12:00:00Z"}
    assert api.call("GET", PREVIEW, query=query).body["fires"] == 0


@pytest.mark.parametrize(
    ("query", "field", "allowed"),
    [
        ({}, "from", "RFC 3339"),
        ({"from": "yesterday"}, "from", "RFC 3339"),
        ({"from": "2026-11-30T09:00:00Z", "until": "2026-11-30T08:00:00Z"}, "until", "not before"),
        ({"from": "2026-09-30T09:00:00Z"}, "from", "31 days before until"),
        ({"from": "1799-01-01T00:00:00Z", "until": "1799-01-02T00:00:00Z"}, "until", "1900"),
        ({"from": "2026-11-30T09:00:00Z", "to": "2026-11-30T10:00:00Z"}, "query", "until"),
        ({"from": "2026-11-30T09:00:00Z", "count": "101"}, "count", "100"),
    ],
)
def test_bad_input_is_refused_by_name(
    api: Api, query: dict[str, str], field: str, allowed: str
) -> None:
    answer = api.call("GET", PREVIEW, query=query)
    assert answer.status == 400, answer.text
    [error] = answer.body["errors"]
    assert error["field"] == field
    assert allowed in error["allowed"]


def test_a_schedule_that_nobody_has_is_not_found(api: Api) -> None:
    path = PREVIEW.replace("invoices", "nobody")
    assert api.call("GET", path, query={"from": "2026-11-30T09:00:00Z"}).status == 404


def test_a_missed_range_says_how_many_fires_it_stands_for(api: Api) -> None:
    api.world.clock.advance_to(NINE + timedelta(hours=2))
    api.world.put(
        a_span(NINE + FIVE, NINE + 12 * FIVE),
        a_run(an_occurrence(scheduled_for=NINE + 3 * FIVE)),
    )
    query = {"from": "2026-11-30T09:00:00Z", "to": "2026-11-30T10:00:00Z", "state": "MISSED"}
    [listed] = api.call("GET", OCCURRENCES, query=query).body["occurrences"]
    assert (listed["count"], listed["count_is_exact"]) == (11, True)
    shown = api.call("GET", f"{OCCURRENCES}/2026-11-30T09:10:00.000Z").body
    assert (shown["state"], shown["count"]) == ("MISSED", 11)


def test_a_range_with_too_many_rows_says_that_its_count_is_at_most_so(api: Api) -> None:
    definition = a_definition("* * * * *")
    api.world.plane.create_schedule(
        a_span(NINE, NINE).tenant, definition, schedule=ScheduleId("minutes"), author="ana"
    )
    api.world.clock.advance_to(NINE + timedelta(hours=5))
    for number in range(201):
        fire = NINE + timedelta(minutes=number + 1)
        api.world.put(a_run(an_occurrence(schedule="minutes", scheduled_for=fire)))
    span = a_span(NINE + timedelta(minutes=1), NINE + timedelta(minutes=240))
    api.world.put(replace(span, schedule=ScheduleId("minutes")))
    query = {"from": "2026-11-30T12:59:30Z", "to": "2026-11-30T13:00:00Z", "state": "MISSED"}
    path = OCCURRENCES.replace("invoices", "minutes")
    [listed] = api.call("GET", path, query=query).body["occurrences"]
    assert listed["count_is_exact"] is False
