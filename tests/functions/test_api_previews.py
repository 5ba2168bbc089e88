"""Previews and descriptions over the API."""

from typing import Any

import pytest

from tests.functions.conftest import Answered, Api

PREVIEW = "/v1/tenants/acme/preview"
SCHEDULES = "/v1/tenants/acme/schedules"
SCHEDULE = f"{SCHEDULES}/nightly"
NIGHTLY = {"expression": "30 2 * * *", "time_zone": "Europe/Berlin"}
BODY: dict[str, Any] = {
    **NIGHTLY,
    "id": "nightly",
    "target": {"type": "webhook", "url": "https://acme.example/hooks/nightly"},
}
SPRING = {
    "kind": "skipped",
    "instant": "2027-03-28T01:00:00.000Z",
    "offset_before": "+01:00",
    "offset_after": "+02:00",
    "first": "2027-03-28T02:30:00",
    "last": "2027-03-28T02:30:00",
    "count": 1,
    "fires": [],
    "text": "02:30 on 2027-03-28 does not exist in Europe/Berlin: that fire is skipped.",
}
AUTUMN = {
    "kind": "collapsed",
    "instant": "2027-10-31T01:00:00.000Z",
    "offset_before": "+02:00",
    "offset_after": "+01:00",
    "first": "2027-10-31T02:30:00",
    "last": "2027-10-31T02:30:00",
    "count": 1,
    "fires": ["2027-10-31T00:30:00.000Z"],
    "text": "02:30 on 2027-10-31 comes twice in Europe/Berlin: it fires once, in the first pass.",
}


def previewed(api: Api, **fields: Any) -> dict[str, Any]:
    answer = api.call("POST", PREVIEW, {**NIGHTLY, **fields})
    assert answer.status == 200, answer.text
    return answer.body


def field_refused(answer: Answered, status: int = 400) -> str:
    assert answer.status == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    (entry,) = answer.body["errors"]
    assert entry["allowed"]
    return str(entry["field"])


def test_an_unsaved_rule_is_previewed_and_nothing_is_written(api: Api) -> None:
    before = api.world.writes()
    body = previewed(api, count=1)
    assert body == {
        "description": "At 02:30 every day, in Europe/Berlin.",
        "expression": "30 2 * * *",
        "time_zone": "Europe/Berlin",
        "fires": [
            {
                "utc": "2026-12-01T01:30:00.000Z",
                "local": "2026-12-01T02:30:00+01:00",
                "available_at": "2026-12-01T01:30:00.000Z",
                "notes": [],
            }
        ],
        "clock_changes": [SPRING, AUTUMN],
        "notes_through": "2027-12-02T01:30:00.000Z",
        "warnings": [SPRING["text"]],
        "tzdata": "2026.1",
    }
    assert api.world.writes() == before


def test_every_field_of_a_preview_can_be_given(api: Api) -> None:
    body = previewed(
        api,
        expression="H 2 * * *",
        gap="fire_after",
        fold="both",
        start_at="2027-03-27T00:00:00Z",
        end_at="2027-03-29T00:00:00+02:00",
        id="nightly",
        after="2026-12-01T00:00:00Z",
        count=100,
    )
    minute = body["expression"].split()[0]
    assert minute.isdecimal()
    assert [fire["local"] for fire in body["fires"]] == [
        f"2027-03-27T02:{int(minute):02}:00+01:00",
        "2027-03-28T03:00:00+02:00",
    ]
    (note,) = body["fires"][1]["notes"]
    assert note["kind"] == "shifted"
    assert [change["kind"] for change in body["clock_changes"]] == ["shifted"]
    assert "until 2027-03-28T22:00:00Z" in body["description"]


def test_ten_fires_are_shown_unless_asked_otherwise(api: Api) -> None:
    assert len(previewed(api)["fires"]) == 10
    api.call("POST", SCHEDULES, BODY)
    assert len(api.call("GET", f"{SCHEDULE}/preview").body["fires"]) == 10


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"expression": "61 * * * *"}, "expression"),
        ({"expression": "0 0 30 2 *"}, "expression"),
        ({"expression": "H 2 * * *"}, "expression"),
        ({"time_zone": "Mars/Phobos"}, "time_zone"),
        ({"gap": "leap"}, "gap"),
        ({"fold": None}, "fold"),
        ({"start_at": "tomorrow"}, "start_at"),
        ({"end_at": "2026-11-30T09:00:00Z"}, "end_at"),
        ({"after": "today"}, "after"),
        ({"after": "2401-01-01T00:00:00Z"}, "after"),
        ({"count": 0}, "count"),
        ({"count": 101}, "count"),
        ({"count": "7"}, "count"),
        ({"id": "a b"}, "id"),
        ({"payload": 1}, "payload"),
        ({"target": {}}, "target"),
    ],
)
def test_a_bad_field_of_a_preview_is_named(api: Api, fields: dict[str, Any], field: str) -> None:
    assert field_refused(api.call("POST", PREVIEW, {**NIGHTLY, **fields})) == field


def test_a_preview_refuses_what_a_create_refuses_in_its_words(api: Api) -> None:
    for expression in ("0 0 31 2 *", "at(2020-01-01T00:00:00)", "0 0 * * 9"):
        created = api.call("POST", SCHEDULES, {**BODY, "expression": expression})
        refused = api.call("POST", PREVIEW, {**NIGHTLY, "expression": expression})
        assert (refused.status, refused.body) == (created.status, created.body)


def test_the_id_that_h_needs_is_asked_for(api: Api) -> None:
    answer = api.call("POST", PREVIEW, {"expression": "H 9 * * *"})
    assert "H needs the id of a schedule" in answer.body["detail"]


def test_a_preview_of_nobodys_is_not_found(api: Api) -> None:
    answer = api.call("POST", "/v1/tenants/nobody/preview", NIGHTLY)
    assert field_refused(answer, 404) == "tenant"
    assert field_refused(api.call("GET", f"{SCHEDULE}/preview"), 404) == "schedule"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"count": "0"}, "count"),
        ({"count": "101"}, "count"),
        ({"after": "now"}, "after"),
        ({"after": "1899-01-01T00:00:00Z"}, "after"),
        ({"limit": "5"}, "query"),
    ],
)
def test_a_bad_query_of_a_preview_is_named(api: Api, query: dict[str, str], field: str) -> None:
    api.call("POST", SCHEDULES, BODY)
    assert field_refused(api.call("GET", f"{SCHEDULE}/preview", query=query)) == field


def test_a_schedule_is_previewed_as_its_rule_would_be(api: Api) -> None:
    api.call("POST", SCHEDULES, BODY)
    query = {"count": "3", "after": "2027-10-29T00:00:00Z"}
    shown = api.call("GET", f"{SCHEDULE}/preview", query=query)
    assert shown.status == 200
    assert shown.body == {
        "id": "nightly",
        "version": 1,
        "state": "ACTIVE",
        **previewed(api, count=3, after="2027-10-29T00:00:00Z"),
    }
    assert shown.body["fires"][2]["notes"] == [
        {
            "kind": "first_pass",
            "text": "02:30 on 2027-10-31 comes twice in Europe/Berlin: this is the first pass.",
        }
    ]


def test_a_preview_says_in_which_state_the_schedule_is(api: Api) -> None:
    api.call("POST", SCHEDULES, BODY)
    api.call("POST", f"{SCHEDULE}/pause")
    paused = api.call("GET", f"{SCHEDULE}/preview").body
    assert (paused["state"], paused["version"], len(paused["fires"])) == ("PAUSED", 2, 10)
    api.call("DELETE", SCHEDULE)
    canceled = api.call("GET", f"{SCHEDULE}/preview").body
    assert (canceled["state"], canceled["fires"], canceled["warnings"]) == ("CANCELED", [], [])
    assert canceled["description"] == paused["description"]


def test_a_schedule_is_described_wherever_it_is_shown(api: Api) -> None:
    made = api.call("POST", SCHEDULES, BODY)
    assert made.body["description"] == "At 02:30 every day, in Europe/Berlin."
    assert len(made.body["next_fires"]) == 5
    assert made.body["warnings"] == [SPRING["text"]]
    assert api.call("GET", SCHEDULE).body == made.body
    (listed,) = api.call("GET", SCHEDULES).body["schedules"]
    assert listed["description"] == made.body["description"]
    changed = api.call("PATCH", SCHEDULE, {"time_zone": "UTC"}, headers={"If-Match": '"1"'})
    assert changed.body["description"] == "At 02:30 every day, in UTC."


def test_a_description_is_no_part_of_a_definition(api: Api) -> None:
    api.call("POST", SCHEDULES, BODY)
    answer = api.call("PATCH", SCHEDULE, {"description": "x"}, headers={"If-Match": '"1"'})
    assert field_refused(answer) == "description"


def test_an_offset_of_any_kind_is_written_as_local_times_end(api: Api) -> None:
    body = previewed(
        api,
        expression="0 * * * *",
        time_zone="America/St_Johns",
        after="2026-12-01T00:00:00Z",
        count=1,
    )
    assert [change["offset_before"] for change in body["clock_changes"]] == ["-03:30", "-02:30"]
    assert body["fires"][0]["local"].endswith("-03:30")
