"""Clients by role on moto's STS: who is asked for what, and for how long it is kept."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import ClientError
from moto import mock_aws

from puntual.adapters.aws_targets import PERMISSION_OF, AwsTargets
from puntual.adapters.sts_clients import CLIENTS_KNOWN_MAX, StsClients
from puntual.aws import Credentials, STSClient
from puntual.domain.target import AwsTarget, Failed, Service
from puntual.domain.tenant import TenantId
from tests.builders import NINE, TENANT, a_delivery
from tests.contract.sdk import recording, refusing
from tests.fakes.manual_clock import ManualClock

ROLE = "arn:aws:iam::210987654321:role/puntual-target-acme"
OTHER = TenantId("globex")


def a_target(region: str = "eu-west-1", role_arn: str | None = ROLE) -> AwsTarget:
    arn = f"arn:aws:sqs:{region}:210987654321:orders"
    return AwsTarget(service=Service.SQS, arn=arn, role_arn=role_arn)


@dataclass(slots=True)
class Stage:
    """The clients that were made are one and the same; `made` says what for."""

    sts: STSClient
    client: BaseClient
    clock: ManualClock = field(default_factory=lambda: ManualClock(NINE))
    made: list[tuple[str, str, Credentials | None]] = field(default_factory=list)
    clients: StsClients = field(init=False)

    def __post_init__(self) -> None:
        self.clients = StsClients(
            sts=self.sts, make=self.make, clock=self.clock, environment="prod"
        )

    def make(self, service: str, region: str, credentials: Credentials | None) -> BaseClient:
        self.made.append((service, region, credentials))
        return self.client


@pytest.fixture(scope="session")
def sts() -> STSClient:
    with mock_aws():
        return boto3.client("sts", config=Config(retries={"total_max_attempts": 1}))


@pytest.fixture
def stage(sts: STSClient) -> Iterator[Stage]:
    with mock_aws():
        yield Stage(sts, sts)


@pytest.fixture
def asked(stage: Stage) -> Iterator[list[dict[str, Any]]]:
    """What AssumeRole was asked for; answers expire an hour after the stage's nine o'clock."""

    def expire(parsed: dict[str, Any], **_: Any) -> None:
        parsed["Credentials"]["Expiration"] = stage.clock.now() + timedelta(hours=1)

    stage.sts.meta.events.register("after-call.sts.AssumeRole", expire)
    try:
        with recording(stage.sts, "AssumeRole") as calls:
            yield calls
    finally:
        stage.sts.meta.events.unregister("after-call.sts.AssumeRole", expire)


def test_a_role_is_asked_for_with_the_tenants_own_external_id_and_name(
    stage: Stage, asked: list[dict[str, Any]]
) -> None:
    stage.clients("sqs", a_target(), TENANT)
    assert asked == [
        {
            "RoleArn": ROLE,
            "RoleSessionName": "puntual-acme",
            "ExternalId": "puntual/prod/acme",
            "DurationSeconds": 3600,
            "Tags": [
                {"Key": "puntual-environment", "Value": "prod"},
                {"Key": "puntual-tenant", "Value": "acme"},
            ],
        }
    ]
    [(service, region, credentials)] = stage.made
    assert (service, region) == ("sqs", "eu-west-1")
    assert credentials is not None
    assert credentials["SessionToken"]


def test_a_session_name_is_no_longer_than_sts_takes(
    stage: Stage, asked: list[dict[str, Any]]
) -> None:
    stage.clients("sqs", a_target(), TenantId("x" * 64))
    assert len(asked[0]["RoleSessionName"]) == 64


def test_credentials_serve_all_services_until_five_minutes_before_they_expire(
    stage: Stage, asked: list[dict[str, Any]]
) -> None:
    for service in ("sqs", "sns", "sqs"):
        stage.clients(service, a_target(), TENANT)
    assert (len(asked), len(stage.made)) == (1, 2)
    stage.clock.advance(timedelta(minutes=55) - timedelta(milliseconds=1))
    stage.clients("sqs", a_target(), TENANT)
    assert (len(asked), len(stage.made)) == (1, 2)
    stage.clock.advance(timedelta(milliseconds=1))
    stage.clients("sqs", a_target(), TENANT)
    assert (len(asked), len(stage.made)) == (2, 3)


def test_another_tenant_never_gets_the_credentials_that_a_role_gave_to_one(
    stage: Stage, asked: list[dict[str, Any]]
) -> None:
    stage.clients("sqs", a_target(), TENANT)
    stage.clients("sqs", a_target(), OTHER)
    assert [call["ExternalId"] for call in asked] == ["puntual/prod/acme", "puntual/prod/globex"]
    assert len(stage.made) == 2


def test_without_a_role_our_own_credentials_are_taken_and_kept_for_all_tenants(
    stage: Stage, asked: list[dict[str, Any]]
) -> None:
    for tenant in (TENANT, OTHER):
        stage.clients("sqs", a_target(role_arn=None), tenant)
    stage.clock.advance(timedelta(days=30))
    stage.clients("sqs", a_target(role_arn=None), TENANT)
    assert stage.made == [("sqs", "eu-west-1", None)]
    assert asked == []


def test_a_client_is_of_its_targets_region(stage: Stage) -> None:
    for region in ("us-east-1", "eu-west-1"):
        stage.clients("sqs", a_target(region, role_arn=None), TENANT)
    assert [region for _, region, _ in stage.made] == ["us-east-1", "eu-west-1"]


def test_the_clients_that_are_kept_are_bounded(stage: Stage) -> None:
    for number in range(CLIENTS_KNOWN_MAX + 1):
        stage.clients("sqs", a_target(f"region-{number}", role_arn=None), TENANT)
    assert len(stage.clients._clients) == CLIENTS_KNOWN_MAX
    stage.clients("sqs", a_target("region-0", role_arn=None), TENANT)
    assert len(stage.made) == CLIENTS_KNOWN_MAX + 2


def test_clients_are_made_one_at_a_time(stage: Stage) -> None:
    """Sessions of botocore are not safe to share between threads."""
    inside, most = [0], [0]
    pause = threading.Event()

    def make(*_: object) -> BaseClient:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        pause.wait(0.01)
        inside[0] -= 1
        return stage.client

    clients = StsClients(sts=stage.sts, make=make, clock=stage.clock, environment="prod")
    with ThreadPoolExecutor(8) as pool:
        futures = [
            pool.submit(clients, "sqs", a_target(f"region-{number}", role_arn=None), TENANT)
            for number in range(8)
        ]
        for future in futures:
            future.result()
    assert most == [1]


@pytest.mark.parametrize(
    ("code", "status", "detail", "retryable"),
    [
        (
            "AccessDenied",
            403,
            f"STS AccessDenied: {PERMISSION_OF['AssumeRole']} is missing",
            False,
        ),
        ("RegionDisabledException", 403, "STS RegionDisabledException", False),
        ("Throttling", 400, "STS Throttling", True),
        ("InternalFailure", 500, "STS InternalFailure", True),
    ],
)
def test_a_role_that_cannot_be_assumed_is_a_result_that_says_so(
    stage: Stage,
    code: str,
    status: int,
    detail: str,
    retryable: bool,  # noqa: FBT001
) -> None:
    targets = AwsTargets(client_of=stage.clients, clock=stage.clock)
    with refusing(stage.sts, "AssumeRole", code, status=status):
        result = targets.deliver(a_delivery(a_target()))
    assert result == Failed(detail=detail, retryable=retryable, by_target=False)
    assert stage.made == []


def test_a_refusal_is_not_remembered(stage: Stage) -> None:
    with refusing(stage.sts, "AssumeRole", "AccessDenied"), pytest.raises(ClientError):
        stage.clients("sqs", a_target(), TENANT)
    assert stage.clients("sqs", a_target(), TENANT) is stage.client
