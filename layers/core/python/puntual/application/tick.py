"""Once a minute: ask for a planner's pass over every shard that exists."""

from dataclasses import dataclass

from puntual.application.ports import Planners, Shards
from puntual.domain.errors import Unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class TickReport:
    started: tuple[int, ...]
    failed: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A tick that is late, lost or doubled costs nothing: planners work ahead and repeat safely."""

    shards: Shards
    planners: Planners

    def __call__(self) -> TickReport:
        started: list[int] = []
        failed: list[int] = []
        for shard in self.shards.all():
            try:
                self.planners.start(shard)
            except Unavailable:
                failed.append(shard)
            else:
                started.append(shard)
        return TickReport(started=tuple(started), failed=tuple(failed))
