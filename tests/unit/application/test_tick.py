from dataclasses import dataclass, field

from puntual.application.tick import Tick
from puntual.domain.errors import Unavailable
from tests.builders import a_shard
from tests.fakes.in_memory_shards import InMemoryShards
from tests.unit.application.world import World


@dataclass
class PlannersWithout:
    """Planners of which one shard's cannot be started."""

    broken: int
    started: list[int] = field(default_factory=list)

    def start(self, shard: int) -> None:
        if shard == self.broken:
            raise Unavailable("planners.start: throttled")
        self.started.append(shard)


def shards(*numbers: int) -> InMemoryShards:
    made = InMemoryShards()
    for number in numbers:
        made.ensure(a_shard(number))
    return made


def test_a_tick_starts_a_pass_over_every_shard_that_exists() -> None:
    world = World(shards=shards(0, 7, 3))
    report = world.tick()
    assert (report.started, report.failed) == ((0, 3, 7), ())
    assert world.planners.started == [0, 3, 7]


def test_a_tick_before_the_first_schedule_starts_nothing() -> None:
    world = World()
    assert world.tick().started == ()


def test_a_planner_that_cannot_be_started_stops_no_other() -> None:
    planners = PlannersWithout(broken=1)
    report = Tick(shards=shards(0, 1, 2), planners=planners)()
    assert (report.started, report.failed) == ((0, 2), (1,))
    assert planners.started == [0, 2]
