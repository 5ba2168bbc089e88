"""Wires the use cases; the only module that knows the adapters.

One cached function per client, port and use case, so that a function's instance builds what its
handler asks for, once, and nothing else. To add a use case, add a function that builds it from
the ports' functions; to replace a port, change its function here. Functions import use cases'
builders and `settings` from here, never a port's adapter.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache

import boto3
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer
from botocore.client import BaseClient
from botocore.config import Config

from puntual.adapters.aws_root_secret import AwsRootSecret
from puntual.adapters.aws_targets import AwsTargets
from puntual.adapters.dynamodb_agenda import DynamoDbAgenda
from puntual.adapters.dynamodb_breakers import DynamoDbBreakers
from puntual.adapters.dynamodb_budgets import DynamoDbBudgets
from puntual.adapters.dynamodb_ledger import DynamoDbLedger
from puntual.adapters.dynamodb_outbox import DynamoDbOutbox
from puntual.adapters.dynamodb_requests import DynamoDbRequests
from puntual.adapters.dynamodb_schedules import DynamoDbSchedules
from puntual.adapters.dynamodb_seats import DynamoDbSeats
from puntual.adapters.dynamodb_shards import DynamoDbShards
from puntual.adapters.dynamodb_shares import DynamoDbShares
from puntual.adapters.dynamodb_tenants import DynamoDbTenants
from puntual.adapters.dynamodb_zone_releases import DynamoDbZoneReleases
from puntual.adapters.http_webhooks import HttpWebhooks
from puntual.adapters.lambda_planners import LambdaPlanners
from puntual.adapters.sqs_lanes import SqsLanes
from puntual.adapters.sts_clients import StsClients
from puntual.adapters.system_chance import SystemChance
from puntual.adapters.system_clock import SystemClock
from puntual.adapters.system_ids import SystemIds
from puntual.adapters.tzdata_zone_data import TzdataZoneData
from puntual.application.admit_attempt import AdmitAttempt
from puntual.application.advance_schedule import AdvanceSchedule
from puntual.application.announced import Announced
from puntual.application.bury_message import BuryMessage
from puntual.application.catch_up_tokens import CatchUpTokens
from puntual.application.circuit_breakers import CircuitBreakers
from puntual.application.control_plane import ControlPlane, Wiring, control_plane_of
from puntual.application.deliver_occurrence import DeliverOccurrence
from puntual.application.draw_tokens import DrawTokens
from puntual.application.execute_occurrence import ExecuteOccurrence
from puntual.application.fail_attempt import FailAttempt
from puntual.application.kept_rooms import KeptRooms
from puntual.application.known_tenants import KnownTenants
from puntual.application.note_zone_release import NoteZoneRelease
from puntual.application.plan_cursors import PlanCursors
from puntual.application.plan_recoveries import PlanRecoveries
from puntual.application.plan_shard import PlanShard
from puntual.application.ports import (
    Agenda,
    Breakers,
    Budgets,
    Chance,
    Clock,
    IdSource,
    Lanes,
    Ledger,
    Outbox,
    Planners,
    Requests,
    RootSecret,
    Schedules,
    Seats,
    Shards,
    Shares,
    Tenants,
    ZoneData,
    ZoneReleases,
)
from puntual.application.relay_page import RelayPage
from puntual.application.replan_zones import ReplanZones
from puntual.application.running_shares import RunningShares
from puntual.application.settle_message import SettleMessage
from puntual.application.share_executors import ShareExecutors
from puntual.application.take_callback import TakeCallback
from puntual.application.tenant_weights import TenantWeights
from puntual.application.tick import Tick
from puntual.application.token_blocks import TokenBlocks
from puntual.aws import (
    CONNECT_TIMEOUT_SECONDS,
    READ_TIMEOUT_SECONDS,
    TRIES_MAX,
    Credentials,
    DynamoDBClient,
    LambdaClient,
    SecretsManagerClient,
    SQSClient,
    STSClient,
)
from puntual.domain.definition import Limits
from puntual.domain.lane import Lane

TARGET_TRIES_MAX = 2
"""Of a call to a tenant's target: three of them, with their waits, fit into its timeout."""

TRIED_TARGET_TRIES_MAX = 1
"""Of a call that a caller of the API waits for."""

IMPORT_THREADS = 4
"""Lines of an import side by side: its creates meet at the count of their tenant anyway."""

HOLDER_LENGTH = 12
"""Digits of an executor's name among the holders of shares, whose row is paid by its size."""

CONNECTIONS_MAX = 32
"""An executor's batch calls side by side, each with more than one call of its own."""


class SettingInvalid(Exception):
    """The deployment is wrong: a setting that this function needs is missing or unreadable."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"setting {name}: {problem}")
        self.name = name


@dataclass(frozen=True, slots=True)
class Settings:
    """Read when asked for: a function's environment holds only what its use cases need.

    Each property raises `SettingInvalid` where its variable is missing or not what it must be.
    """

    environment: Mapping[str, str]

    @property
    def schedules_table(self) -> str:
        return self._text("SCHEDULES_TABLE")

    @property
    def versions_table(self) -> str:
        return self._text("VERSIONS_TABLE")

    @property
    def agenda_table(self) -> str:
        return self._text("AGENDA_TABLE")

    @property
    def outbox_table(self) -> str:
        return self._text("OUTBOX_TABLE")

    @property
    def occurrences_table(self) -> str:
        return self._text("OCCURRENCES_TABLE")

    @property
    def shards_table(self) -> str:
        return self._text("SHARDS_TABLE")

    @property
    def tenants_table(self) -> str:
        return self._text("TENANTS_TABLE")

    @property
    def zone_releases_table(self) -> str:
        return self._text("ZONE_RELEASES_TABLE")

    @property
    def idempotency_table(self) -> str:
        return self._text("IDEMPOTENCY_TABLE")

    @property
    def environment_name(self) -> str:
        return self._text("ENVIRONMENT")

    @property
    def webhook_root_secret(self) -> str:
        return self._text("WEBHOOK_ROOT_SECRET_ARN")

    @property
    def queue_urls(self) -> dict[Lane, str]:
        """All three: who sends to one lane may have to send to any."""
        return {lane: self._text(f"{lane.name}_QUEUE_URL") for lane in Lane}

    @property
    def executors(self) -> dict[Lane, int]:
        """How many executors each lane may run at once."""
        return {lane: self._count(f"{lane.name}_EXECUTORS") for lane in Lane}

    @property
    def planner_function(self) -> str:
        return self._text("PLANNER_FUNCTION_NAME")

    @property
    def callbacks_url(self) -> str:
        return self._text("CALLBACKS_URL")

    @property
    def shard_count(self) -> int:
        return self._count("SHARD_COUNT")

    @property
    def horizon(self) -> timedelta:
        return timedelta(seconds=self._count("HORIZON_SECONDS"))

    @property
    def retention(self) -> timedelta:
        return timedelta(days=self._count("RETENTION_DAYS"))

    @property
    def delivery_timeout_max(self) -> timedelta:
        return timedelta(seconds=self._count("DELIVERY_TIMEOUT_MAX_SECONDS"))

    @property
    def allows_private_targets(self) -> bool:
        text = self._text("ALLOW_PRIVATE_TARGETS")
        if text not in {"true", "false"}:
            raise SettingInvalid("ALLOW_PRIVATE_TARGETS", f"{text!r} is neither true nor false")
        return text == "true"

    def _text(self, name: str) -> str:
        text = self.environment.get(name, "")
        if not text:
            raise SettingInvalid(name, "is missing or empty")
        return text

    def _count(self, name: str) -> int:
        text = self._text(name)
        if not (text.isascii() and text.isdecimal()) or int(text) == 0:
            raise SettingInvalid(name, f"{text!r} is not a whole number above zero")
        return int(text)


@cache
def settings() -> Settings:
    return Settings(dict(os.environ))


# --- clients ----------------------------------------------------------------------------------


def _config(*, tries: int = TRIES_MAX) -> Config:
    return Config(
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        read_timeout=READ_TIMEOUT_SECONDS,
        retries={"total_max_attempts": tries, "mode": "standard"},
        # Half of what a batch call costs in CPU; the adapters' types are checked instead.
        parameter_validation=False,
        tcp_keepalive=True,
        max_pool_connections=CONNECTIONS_MAX,
    )


@cache
def dynamodb_client() -> DynamoDBClient:
    return boto3.client("dynamodb", config=_config())


@cache
def sqs_client() -> SQSClient:
    return boto3.client("sqs", config=_config())


@cache
def lambda_client() -> LambdaClient:
    return boto3.client("lambda", config=_config())


@cache
def secrets_client() -> SecretsManagerClient:
    return boto3.client("secretsmanager", config=_config())


# --- ports ------------------------------------------------------------------------------------


@cache
def clock() -> Clock:
    return SystemClock()


@cache
def ids() -> IdSource:
    return SystemIds()


@cache
def chance() -> Chance:
    return SystemChance()


@cache
def schedules() -> Schedules:
    return DynamoDbSchedules(
        client=dynamodb_client(),
        schedules_table=settings().schedules_table,
        versions_table=settings().versions_table,
        agenda_table=settings().agenda_table,
        tenants_table=settings().tenants_table,
    )


@cache
def tenants() -> Tenants:
    return DynamoDbTenants(table=settings().tenants_table)


@cache
def budgets() -> Budgets:
    return DynamoDbBudgets(client=dynamodb_client(), table=settings().tenants_table)


@cache
def shares() -> Shares:
    return DynamoDbShares(client=dynamodb_client(), table=settings().tenants_table)


@cache
def breakers() -> Breakers:
    return DynamoDbBreakers(client=dynamodb_client(), table=settings().tenants_table)


@cache
def seats() -> Seats:
    return DynamoDbSeats(client=dynamodb_client(), table=settings().tenants_table)


@cache
def agenda() -> Agenda:
    return DynamoDbAgenda(client=dynamodb_client(), table=settings().agenda_table)


@cache
def outbox() -> Outbox:
    return DynamoDbOutbox(client=dynamodb_client(), table=settings().outbox_table)


@cache
def ledger() -> Ledger:
    return DynamoDbLedger(
        client=dynamodb_client(),
        table=settings().occurrences_table,
        outbox_table=settings().outbox_table,
        retention=settings().retention,
    )


@cache
def requests() -> Requests:
    return DynamoDbRequests(
        client=dynamodb_client(),
        table=settings().occurrences_table,
        retention=settings().retention,
    )


@cache
def shards() -> Shards:
    return DynamoDbShards(client=dynamodb_client(), table=settings().shards_table)


@cache
def lanes() -> Lanes:
    return SqsLanes(client=sqs_client(), queue_urls=settings().queue_urls)


@cache
def planners() -> Planners:
    return LambdaPlanners(client=lambda_client(), function=settings().planner_function)


@cache
def zone_releases() -> ZoneReleases:
    return DynamoDbZoneReleases(client=dynamodb_client(), table=settings().zone_releases_table)


@cache
def root_secret() -> RootSecret:
    return AwsRootSecret(
        client=secrets_client(), clock=clock(), secret_id=settings().webhook_root_secret
    )


def _keys_in(credentials: Credentials) -> dict[str, str]:
    return {
        "aws_access_key_id": credentials["AccessKeyId"],
        "aws_secret_access_key": credentials["SecretAccessKey"],
        "aws_session_token": credentials["SessionToken"],
    }


def _targets(*, tries: int, callbacks_at: str = "") -> DeliverOccurrence:
    config = _config(tries=tries)

    def make(service: str, region: str, credentials: Credentials | None) -> BaseClient:
        secrets = {} if credentials is None else _keys_in(credentials)
        client: BaseClient = boto3.client(  # type: ignore[call-overload]  # any service's name
            service, region_name=region, config=config, **secrets
        )
        return client

    sts: STSClient = boto3.client("sts", config=config)
    clients = StsClients(sts=sts, make=make, clock=clock(), environment=settings().environment_name)
    return DeliverOccurrence(
        known=known_tenants(),
        root_secret=root_secret(),
        webhooks=HttpWebhooks(clock=clock(), allow_private=settings().allows_private_targets),
        aws=AwsTargets(client_of=clients, clock=clock()),
        callbacks_at=callbacks_at,
    )


@cache
def zone_data() -> ZoneData:
    return TzdataZoneData()


# --- use cases --------------------------------------------------------------------------------


@cache
def draw_tokens() -> DrawTokens:
    return DrawTokens(budgets=budgets(), clock=clock(), ids=ids())


@cache
def known_tenants() -> KnownTenants:
    return KnownTenants(tenants=tenants(), clock=clock())


@cache
def tenant_weights() -> TenantWeights:
    return TenantWeights(known=known_tenants())


@cache
def plan_cursors() -> PlanCursors:
    return PlanCursors(
        schedules=schedules(),
        agenda=agenda(),
        outbox=outbox(),
        ledger=ledger(),
        clock=clock(),
    )


@cache
def catch_up_tokens() -> CatchUpTokens:
    return CatchUpTokens(known=known_tenants(), draw=draw_tokens(), clock=clock())


@cache
def plan_recoveries() -> PlanRecoveries:
    return PlanRecoveries(
        plan_cursors=plan_cursors(),
        tokens=catch_up_tokens(),
        clock=clock(),
    )


@cache
def announced() -> Announced:
    return Announced(
        shards=shards(),
        plan_cursors=plan_cursors(),
        clock=clock(),
        shard_count=settings().shard_count,
        horizon=settings().horizon,
    )


@cache
def tick() -> Tick:
    return Tick(shards=shards(), planners=planners())


@cache
def note_zone_release() -> NoteZoneRelease:
    return NoteZoneRelease(releases=zone_releases(), zone_data=zone_data(), clock=clock())


@cache
def replan_zones() -> ReplanZones:
    return ReplanZones(
        schedules=schedules(),
        releases=zone_releases(),
        note=note_zone_release(),
        advance=AdvanceSchedule(schedules=schedules(), announced=announced(), clock=clock()),
        zone_data=zone_data(),
        clock=clock(),
    )


@cache
def relay_page() -> RelayPage:
    return RelayPage(outbox=outbox(), lanes=lanes(), clock=clock())


@cache
def plan_shard() -> PlanShard:
    return PlanShard(
        shards=shards(),
        agenda=agenda(),
        outbox=outbox(),
        plan_cursors=plan_cursors(),
        plan_recoveries=plan_recoveries(),
        relay_page=relay_page(),
        clock=clock(),
        ids=ids(),
        horizon=settings().horizon,
        weight_of=tenant_weights(),
    )


@cache
def settle_message() -> SettleMessage:
    return SettleMessage(
        schedules=schedules(),
        ledger=ledger(),
        lanes=lanes(),
        clock=clock(),
        ids=ids(),
        catch_up=catch_up_tokens(),
    )


@cache
def token_blocks() -> TokenBlocks:
    """Give what this process has in stock."""
    return TokenBlocks(draw=draw_tokens())


@cache
def kept_rooms() -> KeptRooms:
    return KeptRooms(known=known_tenants(), shares=shares(), clock=clock(), ids=ids())


@cache
def fail_attempt() -> FailAttempt:
    return FailAttempt(known=known_tenants(), tokens=token_blocks(), clock=clock(), chance=chance())


@cache
def admit_attempt() -> AdmitAttempt:
    """Give the gates of this process: what they hold of tokens and shares is its own."""
    return AdmitAttempt(
        known=known_tenants(),
        breakers=CircuitBreakers(breakers=breakers(), clock=clock(), ids=ids()),
        running=RunningShares(
            shares=shares(),
            clock=clock(),
            ids=ids(),
            holder=ids().new_id()[:HOLDER_LENGTH],
        ),
        rooms=kept_rooms(),
        tokens=token_blocks(),
        clock=clock(),
        chance=chance(),
    )


@cache
def execute_occurrence() -> ExecuteOccurrence:
    return ExecuteOccurrence(
        settle_message=settle_message(),
        targets=_targets(tries=TARGET_TRIES_MAX, callbacks_at=settings().callbacks_url),
        fail_attempt=fail_attempt(),
        admit=admit_attempt(),
    )


@cache
def share_executors() -> ShareExecutors:
    """One for the life of the process: an executor is who holds a seat."""
    return ShareExecutors(
        seats=seats(),
        weight_of=tenant_weights(),
        clock=clock(),
        chance=chance(),
        owner=ids().new_id(),
        executors=settings().executors,
    )


@cache
def bury_message() -> BuryMessage:
    return BuryMessage(settle_message=settle_message())


@cache
def take_callback() -> TakeCallback:
    return TakeCallback(
        root_secret=root_secret(),
        settle_message=settle_message(),
        fail_attempt=fail_attempt(),
        rooms=kept_rooms(),
    )


@cache
def limits() -> Limits:
    return Limits(
        environment=settings().environment_name,
        tzdata=zone_data().release,
        plain_http=settings().allows_private_targets,
        delivery_timeout_max=settings().delivery_timeout_max,
    )


@cache
def control_plane() -> ControlPlane:
    return control_plane_of(
        Wiring(
            schedules=schedules(),
            tenants=tenants(),
            ledger=ledger(),
            requests=requests(),
            budgets=budgets(),
            shares=shares(),
            breakers=breakers(),
            announced=announced(),
            clock=clock(),
            ids=ids(),
            limits=limits(),
            retention=settings().retention,
            deliver=_targets(tries=TRIED_TARGET_TRIES_MAX),
            import_threads=IMPORT_THREADS,
        )
    )


@cache
def idempotency_store() -> DynamoDBPersistenceLayer:
    """Give Powertools' own store, since its handlers are what uses it."""
    return DynamoDBPersistenceLayer(
        table_name=settings().idempotency_table, boto3_client=dynamodb_client()
    )
