"""Lists and histories through the deployed API."""

from datetime import datetime
from typing import Any

from scripts.waiting import until
from tests.e2e.conftest import Stage, at_in

HOURLY = "rate(1 hour)"


def test_schedules_are_listed_in_pages_by_prefix_and_state(stage: Stage) -> None:
    for name in ("a-1", "a-2", "a-3", "b-1"):
        stage.create(id=name, expression=HOURLY)
    stage.api.call("POST", stage.path("a-2", "/pause")).expect(200)
    assert listed(stage, limit="1") == ["a-1", "a-2", "a-3", "b-1"]
    assert listed(stage, prefix="a-", limit="2") == ["a-1", "a-2", "a-3"]
    assert listed(stage, state="PAUSED") == ["a-2"]


def test_a_replaced_schedule_has_a_new_version_and_keeps_its_history(stage: Stage) -> None:
    expression, fire = at_in(2)
    made = stage.create(expression=expression)
    row = stage.wait_for_state(made["id"], fire, "SUCCEEDED", seconds=30)
    body = {"expression": HOURLY, "target": made["target"], "payload": None}
    answer = stage.api.call(
        "PUT", stage.path(made["id"]), body, headers={"If-Match": '"1"'}
    ).expect(200)
    assert answer.headers["etag"] == '"2"'
    assert answer.body["state"] == "ACTIVE"
    assert len(answer.body["next_fires"]) == 5
    assert stage.occurrence(made["id"], fire) == row


def test_occurrences_to_come_are_shown_before_they_cost_a_write(stage: Stage) -> None:
    made = stage.create(expression="rate(10 minutes)")
    fires = [fire["utc"] for fire in made["next_fires"]]
    rows = list(stage.api.occurrences(stage.tenant, made["id"], limit="2"))
    assert [row["scheduled_for"] for row in rows][:5] == fires
    assert {row["state"] for row in rows} == {"SCHEDULED"}


def listed(stage: Stage, **query: str) -> list[str]:
    found: list[str] = []
    token = ""
    while True:
        asked = {**query, **({"page_token": token} if token else {})}
        text = "&".join(f"{name}={value}" for name, value in asked.items())
        page: dict[str, Any] = (
            stage.api.call("GET", f"v1/tenants/{stage.tenant}/schedules?{text}").expect(200).body
        )
        found += [schedule["id"] for schedule in page["schedules"]]
        token = page["next_page_token"] or ""
        if not token:
            return found


def test_a_forecast_is_exact_for_a_handful_of_schedules(stage: Stage) -> None:
    for name in ("a", "b", "c"):
        stage.create(id=name, expression="0 * * * *")
    stage.create(id="d", expression="20,40 * * * *", time_zone="Asia/Kolkata")
    stage.create(id="paused", expression="* * * * *")
    stage.api.call("POST", stage.path("paused", "/pause")).expect(200)
    path = f"v1/tenants/{stage.tenant}/forecast"
    # The index is a moment behind the schedules, and a forecast is to be had every five seconds.
    forecast: dict[str, Any] = until(
        lambda: stage.api.call("GET", path),
        lambda answer: answer.status == 200 and answer.body["schedules"]["active"] == 4,
        seconds=30,
    ).body
    assert stage.api.call("GET", path).status == 429
    assert forecast["schedules"] == {"active": 4, "read": 4, "unreadable": 0}
    assert not forecast["sampled"]
    start = datetime.fromisoformat(forecast["from"])
    expected = {0: 3, 10: 1, 50: 1}
    assert forecast["minutes"] == [
        expected.get((start.minute + number) % 60, 0) for number in range(1_440)
    ]
    assert forecast["fires"] == 24 * 5
    assert forecast["minute_0_share"] == 0.6
    assert forecast["peak"]["fires"] == 3
    assert [(line["expression"], line["schedules"]) for line in forecast["expressions"]] == [
        ("0 * * * *", 3),
        ("20,40 * * * *", 1),
    ]
    assert "H * * * * would spread them" in forecast["hints"][1]
    missing = stage.api.call("GET", "v1/tenants/t-nobody/forecast")
    assert missing.status == 404
