"""Previews through the deployed API: of a rule that nobody saved, and of a schedule."""

from tests.e2e.conftest import Stage

NIGHTLY = {"expression": "30 2 * * *", "time_zone": "Europe/Berlin"}
SENTENCE = "At 02:30 every day, in Europe/Berlin."


def test_a_rule_is_previewed_before_it_is_saved_and_as_it_stands_afterwards(stage: Stage) -> None:
    asked = {**NIGHTLY, "after": "2030-03-30T12:00:00Z", "count": 2}
    path = f"v1/tenants/{stage.tenant}/preview"
    before = stage.api.call("POST", path, asked).expect(200).body
    assert before["description"] == SENTENCE
    assert [fire["local"] for fire in before["fires"]] == [
        "2030-04-01T02:30:00+02:00",
        "2030-04-02T02:30:00+02:00",
    ]
    spring, autumn = before["clock_changes"][:2]
    assert (spring["kind"], spring["first"]) == ("skipped", "2030-03-31T02:30:00")
    assert (autumn["kind"], autumn["first"]) == ("collapsed", "2030-10-27T02:30:00")
    assert before["warnings"]
    assert stage.api.call("GET", f"v1/tenants/{stage.tenant}").body["usage"] == {"schedules": 0}

    made = stage.create(**NIGHTLY)
    assert made["description"] == SENTENCE
    saved = stage.path(made["id"], "/preview?count=2&after=2030-03-30T12:00:00Z")
    standing = {"id": made["id"], "version": 1, "state": "ACTIVE"}
    assert stage.api.call("GET", saved).expect(200).body == {**standing, **before}

    stage.api.call("POST", stage.path(made["id"], "/pause")).expect(200)
    paused = stage.api.call("GET", saved).expect(200).body
    assert paused == {**before, "id": made["id"], "version": 2, "state": "PAUSED"}


def test_a_rule_that_a_create_refuses_has_no_preview(stage: Stage) -> None:
    path = f"v1/tenants/{stage.tenant}/preview"
    answer = stage.api.call("POST", path, {"expression": "0 0 31 2 *"})
    assert answer.status == 400
    assert answer.body["errors"][0]["field"] == "expression"
    assert stage.api.call("POST", path, {"expression": "H 9 * * *"}).status == 400
    assert stage.api.call("POST", "v1/tenants/nobody-here/preview", NIGHTLY).status == 404
