"""Every example of docs/catch-up.md does what it says."""

from dataclasses import replace
from datetime import timedelta

from puntual.domain.tenant import ScheduleId
from tests.builders import NINE, a_span
from tests.functions.conftest import Api
from tests.functions.documented_examples import DOCUMENT, answers_as_told, examples

CATCH_UP = DOCUMENT.with_name("catch-up.md")


def test_the_documented_requests_get_the_documented_answers(api: Api) -> None:
    told = list(examples(CATCH_UP.read_text(encoding="utf-8")))
    assert len(told) == 5
    for example in told:
        answers_as_told(api, example)
        if example.status == 201:
            first, last = NINE + timedelta(minutes=5), NINE + timedelta(hours=1)
            span = a_span(first, last, reason="limit")
            api.world.clock.advance_to(last)
            api.world.put(replace(span, schedule=ScheduleId("meters")))
