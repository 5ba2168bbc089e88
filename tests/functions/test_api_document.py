"""Every example of docs/api.md does what it says."""

from datetime import timedelta
from typing import Any

from functions.api.handler import METHODS_OF
from puntual.domain.judgement import succeeded
from tests.builders import NINE, a_run, an_occurrence
from tests.functions.conftest import Api
from tests.functions.documented_examples import DOCUMENT, examples

LEFT_OUT = "…"


def test_the_documented_requests_get_the_documented_answers(api: Api) -> None:
    """They are one story: what one request leaves, the next one finds."""
    told = list(examples(DOCUMENT.read_text(encoding="utf-8")))
    assert len(told) >= 14
    for example in told:
        answer = api.call(
            example.method,
            example.path,
            example.body,
            query=example.query,
            headers=example.headers,
        )
        assert answer.status == example.status, example.name
        assert as_told(answer.body, example.answer) == example.answer, example.name
        if example.method == "POST" and example.status == 201:
            run_once(api)


def as_told(said: Any, told: Any) -> Any:
    """Give what was answered, with what the document leaves out left out of it."""
    match said, told:
        case dict(), dict():
            kept = said.keys() & told.keys() if LEFT_OUT in told else said.keys()
            shown = {name: as_told(said[name], told.get(name)) for name in kept}
            return {**shown, LEFT_OUT: LEFT_OUT} if LEFT_OUT in told else shown
        case [*_], [*first, last] if last == LEFT_OUT:
            return [*said[: len(first)], LEFT_OUT]
        case [*_], [*_] if len(said) == len(told):
            return [as_told(each, shown) for each, shown in zip(said, told, strict=True)]
        case _:
            return said


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
