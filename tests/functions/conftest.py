"""The API's function on fakes, its idempotency table on moto."""

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from logging import StreamHandler
from typing import Any

import boto3
import pytest
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer
from moto import mock_aws

from functions.api.desk import Desk
from functions.api.handler import logger as api_logger
from functions.api.handler import respond
from functions.executor.handler import logger as executor_logger
from tests.control_plane_world import World
from tests.functions.api_gateway_events import an_event


@dataclass(slots=True)
class Context:
    """What Lambda tells a function about its invocation."""

    function_name: str = "puntual-local-api"
    memory_limit_in_mb: int = 1024
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:puntual-local-api"
    aws_request_id: str = "52fdfc07-2182-454f-963f-5f0f9a621d72"
    remaining_milliseconds: int = 29_000

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def body(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.text)
        return document


@dataclass(slots=True)
class Api:
    world: World
    desk: Desk
    context: Context = field(default_factory=Context)

    def call(self, method: str, path: str, body: object = None, **request: Any) -> Answered:
        return self.send(an_event(method, path, body, **request))

    def send(self, event: dict[str, Any]) -> Answered:
        answer = respond(event, self.context, self.desk)
        headers = {name: values[0] for name, values in answer["multiValueHeaders"].items()}
        return Answered(status=answer["statusCode"], headers=headers, text=answer["body"])


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What the functions write to their logs, every key of it."""
    said = io.StringIO()
    handlers = {logger.registered_handler for logger in (api_logger, executor_logger)}
    before = {each: each.setStream(said) for each in handlers if isinstance(each, StreamHandler)}
    yield said
    for handler, stream in before.items():
        handler.setStream(stream)


@pytest.fixture(scope="session")
def dynamodb() -> Any:
    """Made once, since it takes longer to make than a test to run."""
    with mock_aws():
        return boto3.client("dynamodb")


@pytest.fixture
def idempotency(dynamodb: Any) -> Iterator[DynamoDBPersistenceLayer]:
    with mock_aws():
        dynamodb.create_table(
            TableName="idempotency",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield DynamoDBPersistenceLayer(table_name="idempotency", boto3_client=dynamodb)


@pytest.fixture
def api(idempotency: DynamoDBPersistenceLayer) -> Api:
    world = World()
    return Api(world=world, desk=Desk(plane=world.plane, idempotency=idempotency))
