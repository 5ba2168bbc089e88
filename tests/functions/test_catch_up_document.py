"""Every example of docs/catch-up.md does what it says."""

from dataclasses import replace
from datetime import timedelta

from puntual.domain.tenant import ScheduleId
from tests.builders import NINE, a_span
from tests.functions.conftest import Api
from tests.functions.documented_examples import DOCUMENT, examples
from tests.functions.test_api_document import as_told

CATCH_UP = DOCUMENT.with_name("catch-up.md")


def test_the_documented_requests_get_the_documented_answers(api: Api) -> None:
    told = list(examples(CATCH_UP.read_text(encoding="utf-8")))
    assert len(told) == 5
    for example in told:
        answer = api.call(example.method, example.path, example.body, query=example.query)
        assert answer.status == example.status, answer.text
        assert as_told(answer.body, example.answer) == example.answer, example.name
        if example.status == 201:
            first, last = NINE + timedelta(minutes=5), NINE + timedelta(hours=1)
            span = a_span(first, last, reason="limit")
            api.world.clock.advance_to(last)
            api.world.put(replace(span, schedule=ScheduleId("meters")))
