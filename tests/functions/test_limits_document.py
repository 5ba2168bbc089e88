"""Every example of docs/limits.md does what it says."""

from dataclasses import replace
from datetime import timedelta

from puntual.domain.gate import BY_FIRES
from puntual.domain.run import RunState
from tests.builders import NINE, a_run, an_occurrence
from tests.functions.conftest import Api
from tests.functions.documented_examples import LEFT_OUT, LIMITS, examples

FIRE = NINE + timedelta(minutes=5)
HELD = replace(
    a_run(an_occurrence(schedule="sync", scheduled_for=FIRE), state=RunState.SUCCEEDED),
    held_by=BY_FIRES,
    held_until=FIRE + timedelta(seconds=90),
)
SYNC = {
    "id": "sync",
    "expression": "rate(5 minutes)",
    "target": {"type": "webhook", "url": "https://acme.example/sync"},
}


def test_the_documented_requests_get_the_documented_answers(api: Api) -> None:
    registration, refused, shown = examples(LIMITS.read_text(encoding="utf-8"))
    for example in (registration, refused, shown):
        if example is shown:
            api.call("POST", "/v1/tenants/acme/schedules", SYNC)
            api.world.put(HELD)
            api.world.clock.advance_to(FIRE)
        answer = api.call(example.method, example.path, example.body)
        assert answer.status == example.status, example.name
        example.answer.pop(LEFT_OUT)
        assert {name: answer.body[name] for name in example.answer} == example.answer


def test_a_run_that_nobody_held_says_nothing_of_it(api: Api) -> None:
    api.call("PUT", "/v1/admin/tenants/acme", {})
    api.call("POST", "/v1/tenants/acme/schedules", SYNC)
    api.world.put(replace(HELD, held_by="", held_until=None))
    api.world.clock.advance_to(FIRE)
    path = "/v1/tenants/acme/schedules/sync/occurrences/2026-11-30T09:05:00.000Z"
    assert "held_by" not in api.call("GET", path).body
