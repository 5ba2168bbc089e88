"""Every example of docs/policies.md does what it says."""

from dataclasses import replace

from puntual.domain.run import RunState
from tests.builders import NINE, a_run, an_occurrence
from tests.functions.conftest import Api
from tests.functions.documented_examples import LEFT_OUT, POLICIES, examples

FIFTEEN_PAST = NINE.replace(minute=15)
SKIPPED = replace(
    a_run(
        an_occurrence(schedule="sync", scheduled_for=FIFTEEN_PAST),
        state=RunState.SKIPPED_OVERLAP,
        attempt=0,
        reason="2026-11-30T09:05:00.000Z was running",
    ),
    not_before=None,
)


def test_the_documented_requests_get_the_documented_answers(api: Api) -> None:
    told = list(examples(POLICIES.read_text(encoding="utf-8")))
    assert told
    for example in told:
        answer = api.call(example.method, example.path, example.body)
        assert answer.status == example.status, example.name
        body = answer.body
        if example.answer.pop(LEFT_OUT, None):
            body = {name: body[name] for name in example.answer}
        assert body == example.answer, example.name
        if example.status == 201:
            api.world.put(SKIPPED)
            api.world.clock.advance_to(FIFTEEN_PAST)


def test_an_occurrence_that_was_asked_to_end_says_so(api: Api) -> None:
    create, *_ = (each for each in examples(POLICIES.read_text(encoding="utf-8")) if each.body)
    api.call("PUT", "/v1/admin/tenants/acme", {})
    api.call("POST", create.path, create.body)
    api.world.put(replace(a_run(an_occurrence(schedule="sync")), cancel_requested=True))
    shown = api.call("GET", f"{create.path}/sync/occurrences/2026-11-30T09:00:00.000Z").body
    assert (shown["state"], shown["cancel_requested"]) == ("RUNNING", True)
