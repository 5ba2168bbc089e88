"""Wires the use cases; the only module that knows the adapters and reads the environment.

Everything is made on first use and once per process: a function pays only for what it calls, and
needs only the settings of that.
"""

import os
from datetime import timedelta
from functools import cache
from importlib.metadata import version

import boto3
from aws_lambda_powertools.utilities.idempotency import (
    BasePersistenceLayer,
    DynamoDBPersistenceLayer,
)
from botocore.config import Config

from puntual.adapters.dynamodb_agenda import DynamoDbAgenda
from puntual.adapters.dynamodb_ledger import DynamoDbLedger
from puntual.adapters.dynamodb_outbox import DynamoDbOutbox
from puntual.adapters.dynamodb_schedules import DynamoDbSchedules
from puntual.adapters.dynamodb_shards import DynamoDbShards
from puntual.adapters.dynamodb_tenants import DynamoDbTenants
from puntual.adapters.http_webhooks import HttpWebhooks
from puntual.adapters.lambda_planners import LambdaPlanners
from puntual.adapters.sqs_lanes import SqsLanes
from puntual.adapters.sqs_targets import SqsTargets
from puntual.adapters.system_chance import SystemChance
from puntual.adapters.system_clock import SystemClock
from puntual.adapters.system_ids import SystemIds
from puntual.application.announced import Announced
from puntual.application.bury_message import BuryMessage
from puntual.application.control_plane import ControlPlane, control_plane_of
from puntual.application.execute_occurrence import ExecuteOccurrence
from puntual.application.plan_cursors import PlanCursors
from puntual.application.plan_shard import PlanShard
from puntual.application.ports import Clock
from puntual.application.relay_page import RelayPage
from puntual.application.settle_message import SettleMessage
from puntual.application.tick import Tick
from puntual.aws import (
    CONNECT_TIMEOUT_SECONDS,
    READ_TIMEOUT_SECONDS,
    TRIES_MAX,
    DynamoDBClient,
    LambdaClient,
    SQSClient,
)
from puntual.domain.definition import Limits
from puntual.domain.lane import Lane

CONNECTIONS_MAX = 32
"""An executor's batch calls side by side, each with more than one call of its own."""


class SettingMissing(Exception):
    """A setting that this function needs is not in its environment, or is not readable."""


def _setting(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise SettingMissing(f"the environment has no {name}")
    return value


def _number(name: str) -> int:
    value = _setting(name)
    if not (value.isascii() and value.isdigit()):
        raise SettingMissing(f"{name} is {value!r}; allowed: a whole number")
    return int(value)


def _flag(name: str) -> bool:
    value = _setting(name)
    if value not in {"true", "false"}:
        raise SettingMissing(f"{name} is {value!r}; allowed: true, false")
    return value == "true"


# -- clients ---------------------------------------------------------------------------------------


def _config() -> Config:
    return Config(
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        read_timeout=READ_TIMEOUT_SECONDS,
        retries={"mode": "standard", "total_max_attempts": TRIES_MAX},
        max_pool_connections=CONNECTIONS_MAX,
    )


@cache
def _dynamodb() -> DynamoDBClient:
    return boto3.client("dynamodb", config=_config())


@cache
def _sqs() -> SQSClient:
    return boto3.client("sqs", config=_config())


@cache
def _lambda() -> LambdaClient:
    return boto3.client("lambda", config=_config())


# -- ports -----------------------------------------------------------------------------------------


@cache
def clock() -> Clock:
    return SystemClock()


@cache
def _schedules() -> DynamoDbSchedules:
    return DynamoDbSchedules(
        client=_dynamodb(),
        schedules_table=_setting("SCHEDULES_TABLE"),
        versions_table=_setting("VERSIONS_TABLE"),
        agenda_table=_setting("AGENDA_TABLE"),
        tenants_table=_setting("TENANTS_TABLE"),
    )


@cache
def _agenda() -> DynamoDbAgenda:
    return DynamoDbAgenda(client=_dynamodb(), table=_setting("AGENDA_TABLE"))


@cache
def _outbox() -> DynamoDbOutbox:
    return DynamoDbOutbox(client=_dynamodb(), table=_setting("OUTBOX_TABLE"))


@cache
def _ledger() -> DynamoDbLedger:
    return DynamoDbLedger(
        client=_dynamodb(), table=_setting("OCCURRENCES_TABLE"), retention=_retention()
    )


@cache
def _shards() -> DynamoDbShards:
    return DynamoDbShards(client=_dynamodb(), table=_setting("SHARDS_TABLE"))


@cache
def _tenants() -> DynamoDbTenants:
    return DynamoDbTenants(table=_setting("TENANTS_TABLE"))


@cache
def _lanes() -> SqsLanes:
    urls = {lane: _setting(f"{lane.name}_QUEUE_URL") for lane in Lane}
    return SqsLanes(client=_sqs(), queue_urls=urls)


@cache
def idempotency_store() -> BasePersistenceLayer:
    return DynamoDBPersistenceLayer(table_name=_setting("IDEMPOTENCY_TABLE"))


def _retention() -> timedelta:
    return timedelta(days=_number("RETENTION_DAYS"))


def _horizon() -> timedelta:
    return timedelta(seconds=_number("HORIZON_SECONDS"))


# -- use cases -------------------------------------------------------------------------------------


@cache
def tick() -> Tick:
    planners = LambdaPlanners(client=_lambda(), function=_setting("PLANNER_FUNCTION_NAME"))
    return Tick(shards=_shards(), planners=planners)


@cache
def _plan_cursors() -> PlanCursors:
    return PlanCursors(
        schedules=_schedules(),
        agenda=_agenda(),
        outbox=_outbox(),
        ledger=_ledger(),
        clock=clock(),
    )


@cache
def relay_page() -> RelayPage:
    return RelayPage(outbox=_outbox(), lanes=_lanes(), clock=clock())


@cache
def plan_shard() -> PlanShard:
    return PlanShard(
        shards=_shards(),
        agenda=_agenda(),
        outbox=_outbox(),
        plan_cursors=_plan_cursors(),
        relay_page=relay_page(),
        clock=clock(),
        ids=SystemIds(),
        horizon=_horizon(),
    )


@cache
def _settle_message() -> SettleMessage:
    return SettleMessage(
        schedules=_schedules(),
        ledger=_ledger(),
        lanes=_lanes(),
        clock=clock(),
        ids=SystemIds(),
    )


@cache
def execute_occurrence() -> ExecuteOccurrence:
    return ExecuteOccurrence(
        settle_message=_settle_message(),
        webhooks=HttpWebhooks(clock=clock(), allow_private=_flag("ALLOW_PRIVATE_TARGETS")),
        queues=SqsTargets(client=_sqs()),
        chance=SystemChance(),
    )


@cache
def bury_message() -> BuryMessage:
    return BuryMessage(settle_message=_settle_message())


@cache
def control_plane() -> ControlPlane:
    return control_plane_of(
        schedules=_schedules(),
        tenants=_tenants(),
        ledger=_ledger(),
        announced=Announced(
            shards=_shards(),
            plan_cursors=_plan_cursors(),
            clock=clock(),
            shard_count=_number("SHARD_COUNT"),
            horizon=_horizon(),
        ),
        clock=clock(),
        ids=SystemIds(),
        limits=Limits(
            tzdata=version("tzdata"),
            plain_http=_flag("ALLOW_PRIVATE_TARGETS"),
            delivery_timeout_max=timedelta(seconds=_number("DELIVERY_TIMEOUT_MAX_SECONDS")),
        ),
        retention=_retention(),
    )
