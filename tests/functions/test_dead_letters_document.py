"""Every example of docs/dead-letters.md does what it says."""

from dataclasses import replace
from datetime import timedelta

from puntual.domain.run import Run, RunState
from tests.builders import NINE, a_run, an_occurrence
from tests.functions.conftest import Api
from tests.functions.documented_examples import DOCUMENT, as_told, asked, examples

DEAD_LETTERS = DOCUMENT.with_name("dead-letters.md")
TOKENS = ("next_page_token", "resume_token")


def test_the_documented_requests_get_the_documented_answers(api: Api) -> None:
    told = list(examples(DEAD_LETTERS.read_text(encoding="utf-8")))
    assert len(told) >= 8
    for example in told:
        answer = asked(api, example)
        said, expected = answer.body, example.answer
        for token in TOKENS:
            if expected.get(token):
                assert said.pop(token), example.name
                expected.pop(token)
        assert as_told(said, expected) == expected, example.name
        if example.status == 201:
            api.world.put(*(dead(minutes) for minutes in (5, 10, 15)))
            api.world.clock.advance_to(NINE + timedelta(hours=1))


def dead(minutes: int) -> Run:
    at = NINE + timedelta(minutes=minutes)
    died_at = at + timedelta(seconds=2)
    run = a_run(an_occurrence(scheduled_for=at), state=RunState.DEAD, reason="HTTP 503", attempt=2)
    tries = tuple(replace(each, finished_at=died_at, result="HTTP 503") for each in run.attempts)
    return replace(run, attempts=tries, died_at=died_at, write_id=f"dead-{minutes}")
