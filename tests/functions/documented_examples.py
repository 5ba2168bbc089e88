"""The examples of the documents: requests in their order, each followed by its answer."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.functions.conftest import Answered, Api

DOCUMENT = Path(__file__).parents[2] / "docs" / "api.md"
POLICIES = DOCUMENT.with_name("policies.md")
BULK = DOCUMENT.with_name("bulk.md")
CALLBACKS = DOCUMENT.with_name("callbacks.md")
LIMITS = DOCUMENT.with_name("limits.md")
LEFT_OUT = "…"

_EXAMPLE = re.compile(
    r"```http\n(?P<request>.*?)```\s*```(?P<type>json|ndjson) (?P<status>\d{3})\n(?P<body>.*?)```",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    status: int
    answer: Any

    @property
    def name(self) -> str:
        return f"{self.method} {self.path} {self.status}"


def examples(text: str) -> Iterator[Example]:
    for match in _EXAMPLE.finditer(text):
        head, _, body = match["request"].partition("\n\n")
        first, *lines = head.strip().splitlines()
        method, target = first.split(" ", maxsplit=1)
        path, _, query = target.partition("?")
        headers = dict(line.split(": ", maxsplit=1) for line in lines)
        yield Example(
            method=method,
            path=path,
            query=dict(pair.split("=", maxsplit=1) for pair in query.split("&") if pair),
            headers=headers,
            body=_body(body, headers),
            status=int(match["status"]),
            answer=_answer(match["body"], match["type"]),
        )


def _body(text: str, headers: dict[str, str]) -> Any:
    """Read a request's body; one of lines is sent as it is."""
    if headers.get("Content-Type") == "application/x-ndjson":
        return text.encode()
    return json.loads(text) if text.strip() else None


def _answer(text: str, kind: str) -> Any:
    return (
        [json.loads(line) for line in text.splitlines()] if kind == "ndjson" else json.loads(text)
    )


def answers_as_told(api: Api, example: Example) -> None:
    """Ask as a document does, and hold the answer against what it tells."""
    answer = asked(api, example)
    is_lines = isinstance(example.answer, list)
    said = [json.loads(line) for line in answer.text.splitlines()] if is_lines else answer.body
    assert as_told(said, example.answer) == example.answer, example.name


def asked(api: Api, example: Example) -> Answered:
    answer = api.call(
        example.method, example.path, example.body, query=example.query, headers=example.headers
    )
    assert answer.status == example.status, f"{example.name}: {answer.text}"
    return answer


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
