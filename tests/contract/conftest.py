"""Every port twice: in memory, and on AWS as moto plays it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

import boto3
import pytest
from botocore.config import Config
from moto import mock_aws
from pynamodb.connection import Connection

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
from puntual.adapters.sqs_lanes import SqsLanes
from puntual.application.codec import message_of_body
from puntual.application.ports import (
    Agenda,
    Breakers,
    Budgets,
    Lanes,
    Ledger,
    Outbox,
    Requests,
    Schedules,
    Seats,
    Shards,
    Shares,
    Tenants,
    ZoneReleases,
)
from puntual.aws import DynamoDBClient, SQSClient
from puntual.domain.lane import Lane
from puntual.domain.message import Message
from tests.contract.tables import make_tables
from tests.fakes.in_memory_agenda import InMemoryAgenda
from tests.fakes.in_memory_breakers import InMemoryBreakers
from tests.fakes.in_memory_budgets import InMemoryBudgets
from tests.fakes.in_memory_lanes import InMemoryLanes
from tests.fakes.in_memory_ledger import InMemoryLedger
from tests.fakes.in_memory_outbox import InMemoryOutbox
from tests.fakes.in_memory_requests import InMemoryRequests
from tests.fakes.in_memory_schedules import InMemorySchedules
from tests.fakes.in_memory_seats import InMemorySeats
from tests.fakes.in_memory_shards import InMemoryShards
from tests.fakes.in_memory_shares import InMemoryShares
from tests.fakes.in_memory_tenants import InMemoryTenants
from tests.fakes.in_memory_zone_releases import InMemoryZoneReleases

RETENTION = timedelta(days=30)
RECEIVES_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    schedules: Schedules
    tenants: Tenants
    budgets: Budgets
    shares: Shares
    breakers: Breakers
    seats: Seats
    agenda: Agenda
    outbox: Outbox
    ledger: Ledger
    requests: Requests
    shards: Shards
    zone_releases: ZoneReleases
    lanes: Lanes
    received: Callable[[Lane], list[Message]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aws:
    """The same on moto, with the clients in reach; `naps` are the waits that nobody waited."""

    dynamodb: DynamoDBClient
    sqs: SQSClient
    connection: Connection
    schedules: DynamoDbSchedules
    agenda: DynamoDbAgenda
    lanes: SqsLanes
    world: World
    naps: list[float]


@pytest.fixture(scope="session")
def clients() -> tuple[DynamoDBClient, SQSClient, Connection]:
    """Made once, since each takes longer to make than a test to run."""
    config = Config(retries={"total_max_attempts": 2, "mode": "standard"})
    with mock_aws():
        return (
            boto3.client("dynamodb", config=config),
            boto3.client("sqs", config=config),
            Connection(max_retry_attempts=1),
        )


@pytest.fixture
def aws(clients: tuple[DynamoDBClient, SQSClient, Connection]) -> Iterator[Aws]:
    dynamodb, sqs, connection = clients
    with mock_aws():
        make_tables(dynamodb)
        urls = {lane: sqs.create_queue(QueueName=lane)["QueueUrl"] for lane in Lane}
        naps: list[float] = []
        schedules = DynamoDbSchedules(
            client=dynamodb,
            schedules_table="schedules",
            versions_table="schedule_versions",
            agenda_table="agenda",
            tenants_table="tenants",
            connection=connection,
            sleep=naps.append,
        )
        agenda = DynamoDbAgenda(client=dynamodb, table="agenda", sleep=naps.append)
        lanes = SqsLanes(client=sqs, queue_urls=urls)
        world = World(
            schedules=schedules,
            tenants=DynamoDbTenants(table="tenants"),
            budgets=DynamoDbBudgets(client=dynamodb, table="tenants"),
            shares=DynamoDbShares(client=dynamodb, table="tenants"),
            breakers=DynamoDbBreakers(client=dynamodb, table="tenants"),
            seats=DynamoDbSeats(client=dynamodb, table="tenants"),
            agenda=agenda,
            outbox=DynamoDbOutbox(client=dynamodb, table="outbox"),
            ledger=DynamoDbLedger(
                client=dynamodb,
                table="occurrences",
                outbox_table="outbox",
                retention=RETENTION,
                sleep=naps.append,
            ),
            requests=DynamoDbRequests(client=dynamodb, table="occurrences", retention=RETENTION),
            shards=DynamoDbShards(client=dynamodb, table="shards"),
            zone_releases=DynamoDbZoneReleases(client=dynamodb, table="zone_releases"),
            lanes=lanes,
            received=lambda lane: _received(sqs, urls[lane]),
        )
        yield Aws(
            dynamodb=dynamodb,
            sqs=sqs,
            connection=connection,
            schedules=schedules,
            agenda=agenda,
            lanes=lanes,
            world=world,
            naps=naps,
        )


@pytest.fixture(params=["memory", "aws"])
def world(request: pytest.FixtureRequest) -> World:
    if request.param == "memory":
        return _in_memory()
    on_aws: Aws = request.getfixturevalue("aws")
    return on_aws.world


def _in_memory() -> World:
    agenda, tenants, lanes = InMemoryAgenda(), InMemoryTenants(), InMemoryLanes()
    outbox = InMemoryOutbox()
    return World(
        schedules=InMemorySchedules(agenda=agenda, tenants=tenants),
        tenants=tenants,
        budgets=InMemoryBudgets(),
        shares=InMemoryShares(),
        breakers=InMemoryBreakers(),
        seats=InMemorySeats(),
        agenda=agenda,
        outbox=outbox,
        ledger=InMemoryLedger(outbox=outbox),
        requests=InMemoryRequests(),
        shards=InMemoryShards(),
        zone_releases=InMemoryZoneReleases(),
        lanes=lanes,
        received=lambda lane: [sending.message for sending in lanes.sent[lane]],
    )


def _received(sqs: SQSClient, url: str) -> list[Message]:
    messages: list[Message] = []
    for _ in range(RECEIVES_MAX):
        taken = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        if not taken:
            break
        messages.extend(message_of_body(message["Body"]) for message in taken)
    return messages
