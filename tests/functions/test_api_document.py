"""Every example of docs/api.md does what it says."""

from datetime import timedelta

from functions.api.handler import METHODS_OF
from puntual.domain.judgement import succeeded
from tests.builders import NINE, a_run, an_occurrence
from tests.functions.conftest import Api
from tests.functions.documented_examples import DOCUMENT, answers_as_told, examples


def test_the_documented_requests_get_the_documented_answers(api: Api) -> None:
    """They are one story: what one request leaves, the next one finds."""
    told = list(examples(DOCUMENT.read_text(encoding="utf-8")))
    assert len(told) >= 14
    for example in told:
        answers_as_told(api, example)
        if example.method == "POST" and example.status == 201:
            run_once(api)


def run_once(api: Api) -> None:
    """Let the first fire succeed; it is then a little past its time."""
    first = NINE + timedelta(hours=1)
    done = first + timedelta(seconds=1, milliseconds=84)
    running = a_run(an_occurrence(scheduled_for=first))
    api.world.put(succeeded(running, detail="HTTP 200", now=done))
    api.world.clock.advance_to(first + timedelta(seconds=30))


def test_every_route_is_documented() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for path, methods in METHODS_OF.items():
        for method in methods:
            shown = path.replace("<", "{").replace(">", "}")
            assert f"`{method} {shown}`" in text, f"{method} {shown}"
