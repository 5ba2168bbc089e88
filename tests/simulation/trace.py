"""What happened, in order: cheap to keep, readable when a seed fails, hashed to compare runs."""

import hashlib
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import NamedTuple

from puntual.domain.instant import text_of
from puntual.domain.occurrence import Occurrence
from puntual.domain.run import Run
from puntual.domain.schedule import Schedule, ScheduleVersion
from puntual.domain.shard import Shard
from tests.simulation.scheduler import instant_at


class Step(NamedTuple):
    """`arguments` is the call itself: what it was given is looked up only when it is shown."""

    at: int
    function: str
    name: str
    arguments: Callable[..., object] | tuple[object, ...]
    answer: object


class Trace:
    def __init__(self) -> None:
        self.steps: list[Step] = []

    def add(
        self,
        at: int,
        function: str,
        name: str,
        arguments: Callable[..., object] | tuple[object, ...],
        answer: object,
    ) -> None:
        self.steps.append(Step(at, function, name, arguments, answer))

    def digest(self) -> str:
        """Equal for equal runs, and next to never for others."""
        digest = hashlib.blake2b(digest_size=16)
        for step in self.steps:
            answer = step.answer if isinstance(step.answer, bool | str) else type(step.answer)
            digest.update(f"{step.at} {step.function} {step.name} {answer}\n".encode())
        return digest.hexdigest()

    def lines(self, about: str = "") -> Iterator[str]:
        """Give a line per step, or per step that speaks of `about`."""
        for step in self.steps:
            arguments = ", ".join(shown(argument) for argument in _arguments(step.arguments))
            line = (
                f"{step.at / 1000:9.3f} {instant_at(step.at):%H:%M:%S} {step.function:18} "
                f"{step.name:20} ({arguments}) -> {shown(step.answer)}"
            )
            if about in line:
                yield line


def _arguments(arguments: Callable[..., object] | tuple[object, ...]) -> Iterator[object]:
    if isinstance(arguments, tuple):
        yield from arguments
        return
    for cell in getattr(arguments, "__closure__", None) or ():
        content = cell.cell_contents
        if not type(content).__name__.startswith(("Hostile", "InMemory", "Watched")):
            yield content


def shown(value: object) -> str:
    """Give a value in a few words."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        return "[" + ", ".join(shown(item) for item in value) + "]"
    match value:
        case datetime():
            return text_of(value)[11:23]
        case Run():
            lease = "" if value.lease_until is None else f" lease {shown(value.lease_until)}"
            row = f"{shown(value.occurrence)} {value.state} attempt {value.attempt}"
            return f"<{row}{lease} {value.reason}>"
        case Occurrence():
            return f"{value.schedule} v{value.version} {text_of(value.scheduled_for)[11:19]}"
        case Schedule() | ScheduleVersion():
            return f"<{value.schedule} v{value.version} {value.state}>"
        case _:
            return _fields_shown(value)


def _fields_shown(value: object) -> str:
    if isinstance(value, Shard):
        through, drained = shown(value.planned_through), shown(value.drained_through)
        return f"<shard {value.shard} planned {through} drained {drained}>"
    for name in ("occurrence", "message", "planned", "run", "schedule"):
        inner = getattr(value, name, None)
        if inner is not None and not callable(inner):
            rest = [
                f" {field}={shown(getattr(value, field))}"
                for field in ("version", "scheduled_for", "state", "first", "last", "looks")
                if hasattr(value, field)
            ]
            return f"{type(value).__name__}({shown(inner)}{''.join(rest)})"
    return str(value)
