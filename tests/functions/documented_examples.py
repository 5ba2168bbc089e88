"""The examples of the documents: requests in their order, each followed by its answer."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).parents[2] / "docs" / "api.md"
POLICIES = DOCUMENT.with_name("policies.md")
CALLBACKS = DOCUMENT.with_name("callbacks.md")

_EXAMPLE = re.compile(
    r"```http\n(?P<request>.*?)```\s*```json (?P<status>\d{3})\n(?P<body>.*?)```", re.DOTALL
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
        yield Example(
            method=method,
            path=path,
            query=dict(pair.split("=", maxsplit=1) for pair in query.split("&") if pair),
            headers=dict(line.split(": ", maxsplit=1) for line in lines),
            body=json.loads(body) if body.strip() else None,
            status=int(match["status"]),
            answer=json.loads(match["body"]),
        )
