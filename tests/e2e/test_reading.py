"""Lists and histories through the deployed API."""

from typing import Any

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
