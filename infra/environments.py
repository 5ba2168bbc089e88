"""The environments Puntual is deployed to: one typed record each."""

import platform
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

type Architecture = Literal["arm64", "x86_64"]

# AWS's own ceilings, so that a record that cannot be deployed fails at import.
LAMBDA_TIMEOUT_MAX_SECONDS = 900
SQS_SOURCE_CONCURRENCY_MIN = 2
SQS_SOURCE_CONCURRENCY_MAX = 1000
RETENTION_DAYS_MIN = 30
# What an executor needs around a delivery: to judge and claim before it, to record after it.
DELIVERY_MARGIN_SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneConcurrency:
    """How many executors a lane's event source may run at once."""

    strict: int
    flexible: int
    recovery: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmThroughput:
    """Request units per second that a new on-demand table takes from its first second on."""

    read_units: int
    write_units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    name: str
    shard_count: int
    horizon_seconds: int = 600
    executor_timeout_seconds: int
    delivery_timeout_max_seconds: int
    max_concurrency: LaneConcurrency
    retention_days: int
    log_retention_days: Literal[1, 14, 30, 90]
    # True only where losing everything is the point: tables then go with their stack.
    disposable: bool
    allow_private_targets: bool
    architecture: Architecture
    layer: Literal["arm64", "host"]
    api_rate_per_second: int
    api_burst: int
    callbacks_per_second: int
    callbacks_burst: int
    warm_throughput: WarmThroughput | None = None

    def __post_init__(self) -> None:
        assert self.executor_timeout_seconds <= LAMBDA_TIMEOUT_MAX_SECONDS
        assert (
            self.delivery_timeout_max_seconds + DELIVERY_MARGIN_SECONDS
            <= self.executor_timeout_seconds
        )
        assert self.retention_days >= RETENTION_DAYS_MIN
        lanes = self.max_concurrency
        for sources in (lanes.strict, lanes.flexible, lanes.recovery):
            assert SQS_SOURCE_CONCURRENCY_MIN <= sources <= SQS_SOURCE_CONCURRENCY_MAX

    @property
    def prefix(self) -> str:
        return f"puntual-{self.name}"

    @property
    def lane_visibility_seconds(self) -> int:
        # An executor that dies gives its messages back once its longest life is over.
        return self.executor_timeout_seconds


def host_architecture() -> Architecture:
    """The emulator runs functions as processes of this machine, so their layer is for it."""
    return "arm64" if platform.machine().lower() in {"aarch64", "arm64"} else "x86_64"


LOCAL = Environment(
    name="local",
    shard_count=4,
    # Short, so that planners are seen at work within a demo; two ticks long, so that one of them
    # can be killed without delay.
    horizon_seconds=120,
    executor_timeout_seconds=60,
    delivery_timeout_max_seconds=20,
    max_concurrency=LaneConcurrency(strict=4, flexible=2, recovery=2),
    retention_days=30,
    log_retention_days=1,
    disposable=True,
    allow_private_targets=True,
    architecture=host_architecture(),
    layer="host",
    api_rate_per_second=100,
    api_burst=200,
    callbacks_per_second=100,
    callbacks_burst=200,
)

DEV = Environment(
    name="dev",
    shard_count=8,
    executor_timeout_seconds=900,
    delivery_timeout_max_seconds=840,
    max_concurrency=LaneConcurrency(strict=20, flexible=10, recovery=5),
    retention_days=30,
    log_retention_days=14,
    disposable=False,
    allow_private_targets=False,
    architecture="arm64",
    layer="arm64",
    api_rate_per_second=50,
    api_burst=100,
    callbacks_per_second=50,
    callbacks_burst=100,
)

STAGING = Environment(
    name="staging",
    shard_count=16,
    executor_timeout_seconds=900,
    delivery_timeout_max_seconds=840,
    max_concurrency=LaneConcurrency(strict=100, flexible=50, recovery=20),
    retention_days=35,
    log_retention_days=30,
    disposable=False,
    allow_private_targets=False,
    architecture="arm64",
    layer="arm64",
    api_rate_per_second=200,
    api_burst=400,
    callbacks_per_second=200,
    callbacks_burst=400,
)

PROD = Environment(
    name="prod",
    shard_count=128,
    executor_timeout_seconds=900,
    delivery_timeout_max_seconds=840,
    max_concurrency=LaneConcurrency(strict=1000, flexible=500, recovery=100),
    retention_days=35,
    log_retention_days=90,
    disposable=False,
    allow_private_targets=False,
    architecture="arm64",
    layer="arm64",
    api_rate_per_second=2000,
    api_burst=4000,
    callbacks_per_second=2000,
    callbacks_burst=4000,
    # The least that carries the average load with room: a new on-demand table takes 4,000 write
    # units a second. Raise it before a known burst; it is billed once, when raised.
    warm_throughput=WarmThroughput(read_units=20_000, write_units=10_000),
)

ENVIRONMENTS = MappingProxyType(
    {environment.name: environment for environment in (LOCAL, DEV, STAGING, PROD)}
)
