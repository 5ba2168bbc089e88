"""Lines of a file: one JSON value each, and blank ones between them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line that is not blank, by its number in the file, from 1; `named` is the id in it."""

    number: int
    content: bytes = field(repr=False)
    named: str | None


def lines_of(content: bytes) -> Iterator[Line]:
    """Give the lines without their ends, of either kind; blank ones count, but are left out."""
    for number, text in enumerate(content.removeprefix(BYTE_ORDER_MARK).split(b"\n"), start=1):
        line = text.strip(b" \t\r")
        if line:
            yield Line(number=number, content=line, named=_named_in(line))


def _named_in(line: bytes) -> str | None:
    """Give the id that a line names, None where it cannot be read or names none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    named = value.get("id") if isinstance(value, dict) else None
    return named if isinstance(named, str) else None
