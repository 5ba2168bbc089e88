"""One rule taken away, and what must show it."""

from dataclasses import dataclass

from tests.simulation.scenarios import Scenario
from tests.simulation.world import Parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A broken world: the rule that it breaks, what must show it, and the failures that do.

    `seeds` are the first to be tried; where seeds show it too rarely, a scenario does.
    """

    rule: str
    parts: Parts
    shows: frozenset[str]
    seeds: tuple[int, ...] = ()
    scenario: Scenario | None = None
