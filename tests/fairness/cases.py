"""The cases in which one tenant holds nine tenths of a burst, and our parts taken away in turn."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from puntual.adapters.sqs_lanes import SqsLanes
from puntual.application.plan_shard import PlanShard
from puntual.application.ports import Lanes
from puntual.application.share_executors import ShareExecutors
from puntual.aws import SQSClient
from puntual.domain.lane import Lane
from puntual.domain.message import Message
from tests.fairness.burst import NOISY, Arrival, Burst, Parts, Setup, percentile
from tests.simulation.scheduler import MINUTE, SECOND

QUIET_TENANTS = 30
FIRE = 2 * MINUTE
SEEDS = range(3)
GROWTH_MAX = 0.2
"""What the p99 of the others may grow by beside a tenant that holds nine tenths of a burst."""


def quiet(count: int, *, at: int, every: int = 0, ahead: int | None = None) -> tuple[Arrival, ...]:
    """Give schedules of many tenants, `count` of each, whose names lie around the noisy one's."""
    return tuple(
        Arrival(
            tenant=f"{'az'[number % 2]}-{number}",
            count=count,
            at=at,
            every=every,
            created_ahead=ahead,
        )
        for number in range(QUIET_TENANTS)
    )


PLANNED_AHEAD = Setup(
    arrivals=(*quiet(10, at=FIRE), Arrival(tenant=NOISY, count=2_700, at=FIRE)),
    shards=8,
    executors=10,
)

FOUND_LATE = Setup(
    arrivals=(
        *quiet(10, at=-9 * MINUTE, every=MINUTE),
        Arrival(tenant=NOISY, count=2_700, at=-9 * MINUTE),
    ),
    outage=10 * MINUTE,
)

CREATED_MEANWHILE = Setup(
    arrivals=(
        *quiet(10, at=3 * SECOND, every=SECOND, ahead=2 * SECOND),
        Arrival(tenant=NOISY, count=2_700, at=-9 * MINUTE),
    ),
    outage=10 * MINUTE,
    relays=1,
)

SLOW_TARGET = replace(PLANNED_AHEAD, executors=20, takes={NOISY: 10 * SECOND})

WEIGHED = replace(
    FOUND_LATE,
    arrivals=(
        Arrival(tenant="z-heavy", count=300, at=-9 * MINUTE),
        Arrival(tenant=NOISY, count=2_700, at=-9 * MINUTE),
    ),
    weights={"z-heavy": 10},
)

CASES = {
    "planned ahead": PLANNED_AHEAD,
    "found late, after ten minutes without planners": FOUND_LATE,
    "created meanwhile, two seconds ahead": CREATED_MEANWHILE,
    "the noisy one's target takes 10 s": SLOW_TARGET,
    "found late, the other has weight 10": WEIGHED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lags:
    """Milliseconds from when a run could start at the earliest to its start, of the others."""

    p50: int
    p99: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    alone: Lags
    beside: Lags

    @property
    def growth(self) -> float:
        """How much the p99 of the others grows by the noisy one: 0.2 is by a fifth."""
        return self.beside.p99 / self.alone.p99 - 1


def compare(setup: Setup, parts: Parts, *, seeds: Sequence[int] = SEEDS) -> Compared:
    calm = replace(setup, arrivals=tuple(each for each in setup.arrivals if each.tenant != NOISY))
    return Compared(alone=_lags(calm, parts, seeds), beside=_lags(setup, parts, seeds))


def _lags(setup: Setup, parts: Parts, seeds: Sequence[int]) -> Lags:
    lags = [
        lag
        for seed in seeds
        for tenant, each in Burst(setup, parts, seed=seed).run().items()
        if tenant != NOISY
        for lag in each
    ]
    return Lags(p50=percentile(lags, 50), p99=percentile(lags, 99))


# Our parts, taken away


class WithoutGroups:
    def __init__(self, client: SQSClient) -> None:
        self._client: Any = client

    def send_message_batch(self, *, QueueUrl: str, Entries: Sequence[Any]) -> Any:  # noqa: N803 the client's own names
        for entry in Entries:
            del entry["MessageGroupId"]
        return self._client.send_message_batch(QueueUrl=QueueUrl, Entries=Entries)


def lanes_without_groups(client: SQSClient) -> Lanes:
    bare: Any = WithoutGroups(client)
    return SqsLanes(client=bare, queue_urls={lane: lane for lane in Lane})


class CarriesNothing(PlanShard):
    """Leaves every page to the relay."""

    def _plan(self, cursors: Any, at: Any, report: Any, *, carried: bool) -> None:
        assert carried in {True, False}
        super()._plan(cursors, at, report, carried=False)


class SeatsForAll(ShareExecutors):
    def admit(self, batch: Sequence[Message]) -> dict[int, datetime]:
        assert batch
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    parts: Parts
    fails: str
    """The case that shows it."""


VARIANTS = {
    "no message groups": Variant(parts=Parts(lanes=lanes_without_groups), fails="planned ahead"),
    "no turns in the planner": Variant(
        parts=Parts(quantum=1_000_000), fails="found late, after ten minutes without planners"
    ),
    "storms go through the relay": Variant(
        parts=Parts(plan_shard=CarriesNothing), fails="created meanwhile, two seconds ahead"
    ),
    "no seats": Variant(parts=Parts(share=SeatsForAll), fails="the noisy one's target takes 10 s"),
    "no weights": Variant(parts=Parts(weigh=False), fails="found late, the other has weight 10"),
}
