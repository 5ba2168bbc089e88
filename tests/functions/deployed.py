"""What surrounds the functions, as deployed: tables and queues on moto, settings, invocations."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from puntual import bootstrap
from puntual.adapters.dynamodb_agenda import DynamoDbAgenda
from puntual.adapters.dynamodb_ledger import DynamoDbLedger
from puntual.adapters.dynamodb_outbox import DynamoDbOutbox
from puntual.adapters.dynamodb_schedules import DynamoDbSchedules
from puntual.adapters.dynamodb_shards import DynamoDbShards
from puntual.adapters.dynamodb_tenants import DynamoDbTenants
from puntual.adapters.dynamodb_zone_releases import DynamoDbZoneReleases
from puntual.application.codec import message_of_body
from puntual.application.ports import Created
from puntual.aws import DynamoDBClient, SQSClient
from puntual.domain.agenda import Cursor
from puntual.domain.lane import Lane
from puntual.domain.message import Message
from puntual.domain.run import RETENTION_MIN
from puntual.domain.schedule import ScheduleVersion
from tests.builders import a_schedule, a_tenant
from tests.contract.tables import make_tables

EVENTS = Path(__file__).parent / "events"
SHARD = 3
ROOT = "the root of all keys"

SETTINGS = {
    "SCHEDULES_TABLE": "schedules",
    "VERSIONS_TABLE": "schedule_versions",
    "AGENDA_TABLE": "agenda",
    "OUTBOX_TABLE": "outbox",
    "OCCURRENCES_TABLE": "occurrences",
    "SHARDS_TABLE": "shards",
    "TENANTS_TABLE": "tenants",
    "ZONE_RELEASES_TABLE": "zone_releases",
    "PLANNER_FUNCTION_NAME": "puntual-prod-planner",
    "RETENTION_DAYS": "30",
    "HORIZON_SECONDS": "600",
    "ENVIRONMENT": "prod",
    "WEBHOOK_ROOT_SECRET_ARN": "webhook-root",
    "CALLBACKS_URL": "https://callbacks.example",
    "SHARD_COUNT": "128",
    "DELIVERY_TIMEOUT_MAX_SECONDS": "60",
    "ALLOW_PRIVATE_TARGETS": "true",
    "POWERTOOLS_METRICS_NAMESPACE": "puntual-prod",
}


def recorded(name: str) -> Any:
    """Read an event as AWS gives it."""
    return json.loads((EVENTS / f"{name}.json").read_text())


@dataclass(slots=True)
class LambdaContext:
    """What Lambda tells a function about its invocation."""

    function_name: str = "puntual-prod-function"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = (
        "arn:aws:lambda:eu-west-1:123456789012:function:puntual-prod-function"
    )
    aws_request_id: str = "52fdfc07-2182-454f-963f-5f0f9a621d72"
    remaining_milliseconds: int = 600_000

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_milliseconds


@dataclass(slots=True, kw_only=True)
class Deployed:
    """The tables by their adapters, and what the functions did beyond them."""

    dynamodb: DynamoDBClient
    sqs: SQSClient
    schedules: DynamoDbSchedules
    tenants: DynamoDbTenants
    agenda: DynamoDbAgenda
    outbox: DynamoDbOutbox
    ledger: DynamoDbLedger
    shards: DynamoDbShards
    zone_releases: DynamoDbZoneReleases
    queue_urls: dict[Lane, str]
    invocations: list[Any] = field(default_factory=list)

    def creates(self, version: ScheduleVersion, cursor: Cursor | None = None) -> None:
        """Do what the API's create does."""
        self.tenants.register(a_tenant(version.tenant))
        created = self.schedules.create(a_schedule(version), version, cursor, shard=SHARD)
        assert created == Created()

    def messages(self, lane: Lane) -> list[Message]:
        """Receive what waits in a lane, but for what is delayed."""
        answer = self.sqs.receive_message(QueueUrl=self.queue_urls[lane], MaxNumberOfMessages=10)
        return [message_of_body(message["Body"]) for message in answer.get("Messages", [])]

    def waiting(self, lane: Lane) -> int:
        """Count what a lane holds, delayed or not."""
        attributes = self.sqs.get_queue_attributes(
            QueueUrl=self.queue_urls[lane],
            AttributeNames=[
                "ApproximateNumberOfMessages",
                "ApproximateNumberOfMessagesDelayed",
            ],
        )["Attributes"]
        return sum(int(count) for count in attributes.values())


@contextmanager
def deployed() -> Iterator[Deployed]:
    """Give moto's tables and queues, and a bootstrap that has wired nothing yet."""
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        boto3.setup_default_session()  # moto puts back the one before
        dynamodb, sqs = boto3.client("dynamodb"), boto3.client("sqs")
        make_tables(dynamodb)
        urls = {lane: sqs.create_queue(QueueName=lane)["QueueUrl"] for lane in Lane}
        boto3.client("secretsmanager").create_secret(Name="webhook-root", SecretString=ROOT)
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        for lane, url in urls.items():
            patch.setenv(f"{lane.name}_QUEUE_URL", url)
        world = Deployed(
            dynamodb=dynamodb,
            sqs=sqs,
            schedules=DynamoDbSchedules(
                client=dynamodb,
                schedules_table="schedules",
                versions_table="schedule_versions",
                agenda_table="agenda",
                tenants_table="tenants",
            ),
            tenants=DynamoDbTenants(table="tenants"),
            agenda=DynamoDbAgenda(client=dynamodb, table="agenda"),
            outbox=DynamoDbOutbox(client=dynamodb, table="outbox"),
            ledger=DynamoDbLedger(client=dynamodb, table="occurrences", retention=RETENTION_MIN),
            shards=DynamoDbShards(client=dynamodb, table="shards"),
            zone_releases=DynamoDbZoneReleases(client=dynamodb, table="zone_releases"),
            queue_urls=urls,
        )
        _session_hook("before-call.lambda.Invoke", lambda **call: _invoked(world, **call))
        _forget_wiring()
        yield world
        _forget_wiring()


def _session_hook(event: str, handle: Callable[..., Any]) -> None:
    """Have botocore call `handle` in every client that is made from here on."""
    session = boto3.DEFAULT_SESSION
    assert session is not None
    session.events.register(event, handle)


def _invoked(world: Deployed, *, params: Any, **_: Any) -> Any:
    """Take an invocation in the place of Lambda, which moto plays only with Docker."""
    assert params["headers"]["X-Amz-Invocation-Type"] == "Event"
    world.invocations.append((params["url_path"], json.loads(params["body"])))
    return _Accepted(), {"StatusCode": _Accepted.status_code}


class _Accepted:
    status_code = 202


def _forget_wiring() -> None:
    for each in vars(bootstrap).values():
        if hasattr(each, "cache_clear"):
            each.cache_clear()
