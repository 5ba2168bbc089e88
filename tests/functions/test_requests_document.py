"""Every example of docs/requests.md does what it says."""

from dataclasses import replace
from datetime import timedelta

from puntual.domain.run import RunState
from puntual.domain.tenant import ScheduleId
from tests.builders import NINE, a_run, a_span, an_occurrence
from tests.functions.conftest import Api
from tests.functions.documented_examples import DOCUMENT, answers_as_told, examples

REQUESTS = DOCUMENT.with_name("requests.md")
QUARTER = timedelta(minutes=15)
REPORT = ScheduleId("report")


def test_the_documented_requests_get_the_documented_answers(api: Api) -> None:
    told = list(examples(REQUESTS.read_text(encoding="utf-8")))
    assert told
    for example in told:
        answers_as_told(api, example)
        if example.path.endswith("/trigger"):
            an_hour_goes_by(api)


def an_hour_goes_by(api: Api) -> None:
    """Three fires are missed and the fourth runs."""
    missed = replace(a_span(NINE + QUARTER, NINE + 3 * QUARTER), schedule=REPORT)
    fourth = an_occurrence(schedule=REPORT, scheduled_for=NINE + 4 * QUARTER)
    api.world.put(missed, a_run(fourth, state=RunState.SUCCEEDED))
    api.world.clock.advance_to(NINE + timedelta(minutes=65))
