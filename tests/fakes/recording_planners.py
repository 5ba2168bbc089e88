"""Planners that are only remembered to have been asked for."""

from collections.abc import Callable


class RecordingPlanners:
    """`on_start` lets a simulation run the pass, late or twice, as it likes."""

    def __init__(self, on_start: Callable[[int], None] | None = None) -> None:
        self.started: list[int] = []
        self.on_start = on_start

    def start(self, shard: int) -> None:
        self.started.append(shard)
        if self.on_start is not None:
            self.on_start(shard)
