"""The root secret on moto's Secrets Manager."""

from collections.abc import Iterator
from datetime import timedelta

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from moto import mock_aws

from puntual.adapters.aws_root_secret import SECRET_AGE_MAX, AwsRootSecret
from puntual.aws import SecretsManagerClient
from puntual.domain.errors import Unavailable
from tests.builders import NINE
from tests.contract.sdk import recording, refusing
from tests.fakes.manual_clock import ManualClock

NAME = "root"


@pytest.fixture(scope="session")
def made() -> SecretsManagerClient:
    with mock_aws():
        return boto3.client("secretsmanager", config=Config(retries={"total_max_attempts": 1}))


@pytest.fixture
def client(made: SecretsManagerClient) -> Iterator[SecretsManagerClient]:
    with mock_aws():
        made.create_secret(Name=NAME, SecretString="so secret")
        yield made


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NINE)


@pytest.fixture
def root(client: SecretsManagerClient, clock: ManualClock) -> AwsRootSecret:
    return AwsRootSecret(client=client, clock=clock, secret_id=NAME)


def test_it_is_read_once_in_five_minutes(
    root: AwsRootSecret, client: SecretsManagerClient, clock: ManualClock
) -> None:
    with recording(client, "GetSecretValue") as calls:
        assert [root.read(), root.read()] == [b"so secret"] * 2
        clock.advance(SECRET_AGE_MAX - timedelta(milliseconds=1))
        root.read()
        assert len(calls) == 1
        clock.advance(timedelta(milliseconds=1))
        root.read()
    assert len(calls) == 2


def test_a_throttle_is_unavailable_until_it_was_read_once(
    root: AwsRootSecret, client: SecretsManagerClient, clock: ManualClock
) -> None:
    with refusing(client, "GetSecretValue", "ThrottlingException"), pytest.raises(Unavailable):
        root.read()
    root.read()
    clock.advance(SECRET_AGE_MAX)
    with refusing(client, "GetSecretValue", "ThrottlingException"):
        assert root.read() == b"so secret"


def test_a_secret_that_may_not_be_read_is_a_fault_of_the_deployment(
    root: AwsRootSecret, client: SecretsManagerClient
) -> None:
    with refusing(client, "GetSecretValue", "AccessDeniedException"), pytest.raises(ClientError):
        root.read()


def test_it_does_not_show_where_it_is_printed(root: AwsRootSecret) -> None:
    root.read()
    assert "so secret" not in repr(root)
