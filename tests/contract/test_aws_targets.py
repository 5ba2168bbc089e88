"""The adapter of targets in AWS against moto's queues, topics, buses and state machines."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError
from moto import mock_aws

from puntual.adapters.aws_targets import QUEUES_KNOWN_MAX, WAYS, AwsTargets
from puntual.domain.target import (
    SERVICE_TIMEOUT,
    AwsTarget,
    Delivered,
    Delivery,
    DeliveryResult,
    Failed,
    Service,
)
from puntual.domain.tenant import TenantId
from tests.builders import NINE, a_delivery, an_occurrence
from tests.contract.sdk import hooked, recording, refusing
from tests.fakes.manual_clock import ManualClock

ACCOUNT = "123456789012"
NAME = "puntual-target-orders"
ORDER = '{"order":7}'
CLOCK = ManualClock(NINE)
TOLD = {
    "Idempotency-Key": an_occurrence().id,
    "Puntual-Tenant": "acme",
    "Puntual-Schedule": "invoices",
    "Puntual-Scheduled-For": "2026-11-30T09:00:00.000Z",
    "Puntual-Attempt": "3",
}
ENVELOPE = {
    "puntual": {
        "idempotency_key": an_occurrence().id,
        "tenant": "acme",
        "schedule": "invoices",
        "scheduled_for": "2026-11-30T09:00:00.000Z",
        "attempt": 3,
        "try": False,
    },
    "payload": {"order": 7},
}
RESOURCES = {
    Service.SQS: "sqs:us-east-1:123456789012:",
    Service.SNS: "sns:us-east-1:123456789012:",
    Service.EVENTBRIDGE: "events:us-east-1:123456789012:event-bus/",
    Service.LAMBDA: "lambda:us-east-1:123456789012:function:",
    Service.STEP_FUNCTIONS: "states:us-east-1:123456789012:stateMachine:",
}
CALLS = {
    Service.SQS: ("SendMessage", "sqs:SendMessage"),
    Service.SNS: ("Publish", "sns:Publish"),
    Service.EVENTBRIDGE: ("PutEvents", "events:PutEvents"),
    Service.LAMBDA: ("Invoke", "lambda:InvokeFunction"),
    Service.STEP_FUNCTIONS: ("StartExecution", "states:StartExecution"),
}


@dataclass(slots=True)
class Stage:
    """Clients that are made once, and the adapter on them."""

    clients: dict[str, BaseClient]
    asked: list[tuple[str, AwsTarget, TenantId]] = field(default_factory=list)

    @property
    def sqs(self) -> Any:
        return self.clients["sqs"]

    def client_of(self, service: str, target: AwsTarget, tenant: TenantId) -> BaseClient:
        self.asked.append((service, target, tenant))
        return self.clients[service]

    def targets(self, **how: Any) -> AwsTargets:
        return AwsTargets(client_of=self.client_of, **{"clock": CLOCK, **how})

    def delivers(self, service: Service, name: str = NAME, **how: Any) -> DeliveryResult:
        return self.targets().deliver(to(service, name, **how))


@pytest.fixture(scope="session")
def made() -> dict[str, BaseClient]:
    config = Config(retries={"total_max_attempts": 1, "mode": "standard"})
    with mock_aws():
        make: Any = boto3.client
        return {
            way.client: make(way.client, config=config, region_name="us-east-1")
            for way in WAYS.values()
        }


@pytest.fixture
def stage(made: dict[str, BaseClient]) -> Iterator[Stage]:
    with mock_aws():
        yield Stage(made)


def to(service: Service, name: str = NAME, *, attempt: int = 3, **facts: Any) -> Delivery:
    is_event = service is Service.EVENTBRIDGE
    target = AwsTarget(
        service=service,
        arn=f"arn:aws:{RESOURCES[service]}{name}",
        source="acme.orders" if is_event else "",
        detail_type="Order Due" if is_event else "",
    )
    return a_delivery(target, attempt=attempt, payload=ORDER, **facts)


def a_queue(stage: Stage, name: str = NAME) -> str:
    attributes: Any = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
    url: str = stage.sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return url


def a_state_machine(stage: Stage) -> None:
    definition = {"StartAt": "a", "States": {"a": {"Type": "Pass", "End": True}}}
    client: Any = stage.clients["stepfunctions"]
    client.create_state_machine(
        name=NAME,
        definition=json.dumps(definition),
        roleArn=f"arn:aws:iam::{ACCOUNT}:role/puntual-test",
    )


def received(stage: Stage, url: str) -> list[Any]:
    answer = stage.sqs.receive_message(
        QueueUrl=url,
        MaxNumberOfMessages=10,
        MessageAttributeNames=["All"],
        AttributeNames=["All"],
    )
    return list(answer.get("Messages", []))


@contextmanager
def taking(stage: Stage) -> Iterator[list[Any]]:
    """Play Lambda, which moto plays only with Docker: take invocations, and tell of them."""
    taken: list[Any] = []

    def take(params: Any, **_: Any) -> Any:
        taken.append(params)
        response = type("Accepted", (), {"status_code": 202})
        return response, {"StatusCode": 202}

    with hooked(stage.clients["lambda"], "before-call", "Invoke", take):
        yield taken


# Queues


def test_a_standard_queue_gets_the_payload_with_the_occurrences_names(stage: Stage) -> None:
    url = a_queue(stage)
    result = stage.delivers(Service.SQS)
    [message] = received(stage, url)
    assert result == Delivered(detail=f"SQS {message['MessageId']}")
    assert message["Body"] == ORDER
    attributes = message["MessageAttributes"].items()
    assert {name: value["StringValue"] for name, value in attributes} == TOLD


def test_a_fifo_queue_keeps_a_schedules_order_and_takes_a_round_of_an_occurrence_once(
    stage: Stage,
) -> None:
    url = a_queue(stage, f"{NAME}.fifo")
    first = stage.delivers(Service.SQS, f"{NAME}.fifo", attempt=1)
    second = stage.delivers(Service.SQS, f"{NAME}.fifo", attempt=2, is_repeat=True)
    third = stage.delivers(Service.SQS, f"{NAME}.fifo", attempt=3, round_=1)
    messages = [message["Attributes"] for message in received(stage, url)]
    assert {message["MessageGroupId"] for message in messages} == {"invoices"}
    occurrence = an_occurrence().id
    names = [message["MessageDeduplicationId"] for message in messages]
    assert names == [occurrence, f"{occurrence}-1"]
    maybe = f"; dropped there if {occurrence} was already taken within 5 minutes"
    told = [maybe in str(result) for result in (first, second, third)]
    assert told == [False, True, False]


def test_a_queues_address_is_asked_for_once_and_of_its_own_account(stage: Stage) -> None:
    a_queue(stage)
    targets = stage.targets()
    with recording(stage.sqs, "GetQueueUrl") as calls:
        targets.deliver(to(Service.SQS))
        targets.deliver(to(Service.SQS))
    assert calls == [{"QueueName": NAME, "QueueOwnerAWSAccountId": ACCOUNT}]


def test_the_addresses_known_are_bounded(stage: Stage) -> None:
    url = a_queue(stage)
    known = {str(number): url for number in range(QUEUES_KNOWN_MAX)}
    assert isinstance(stage.targets(_queue_urls=known).deliver(to(Service.SQS)), Delivered)
    assert known == {f"arn:aws:sqs:us-east-1:{ACCOUNT}:{NAME}": url}


# Topics


def a_topic(stage: Stage, name: str = NAME) -> str:
    """Make a topic with a queue that gets what it sends out; gives the queue's address."""
    sns: Any = stage.clients["sns"]
    fifo = {"FifoTopic": "true"} if name.endswith(".fifo") else {}
    topic = sns.create_topic(Name=name, Attributes=fifo)["TopicArn"]
    url = a_queue(stage, name)
    sns.subscribe(
        TopicArn=topic,
        Protocol="sqs",
        Endpoint=f"arn:aws:sqs:us-east-1:{ACCOUNT}:{name}",
        Attributes={"RawMessageDelivery": "true"},
    )
    return url


def test_a_topics_subscribers_get_the_payload_with_the_occurrences_names(stage: Stage) -> None:
    url = a_topic(stage)
    result = stage.delivers(Service.SNS)
    assert isinstance(result, Delivered)
    assert result.detail.startswith("SNS ")
    [message] = received(stage, url)
    assert message["Body"] == ORDER
    attributes = message["MessageAttributes"].items()
    assert {name: value["StringValue"] for name, value in attributes} == TOLD


def test_a_fifo_queue_takes_each_attempt_that_a_callback_ends(stage: Stage) -> None:
    """The one before it failed or was silent; were it swallowed, nobody would call back."""
    url = a_queue(stage, f"{NAME}.fifo")
    for attempt in (1, 2):
        delivery = to(Service.SQS, f"{NAME}.fifo", attempt=attempt)
        called = f"https://callbacks.example/v1/callbacks/{attempt}"
        awaited = replace(delivery, awaits_callback=True, callback_url=called)
        result = stage.targets().deliver(awaited)
        assert "dropped" not in str(result)
    messages = received(stage, url)
    names = [message["Attributes"]["MessageDeduplicationId"] for message in messages]
    assert names == [f"{an_occurrence().id}-0-{attempt}" for attempt in (1, 2)]
    told = [message["MessageAttributes"]["Puntual-Callback-Url"] for message in messages]
    assert [each["StringValue"][-1] for each in told] == ["1", "2"]


def test_a_fifo_topic_keeps_a_schedules_order_and_takes_a_round_once(stage: Stage) -> None:
    a_topic(stage, f"{NAME}.fifo")
    with recording(stage.clients["sns"], "Publish") as calls:
        result = stage.delivers(Service.SNS, f"{NAME}.fifo", round_=1, is_repeat=True)
    assert isinstance(result, Delivered)
    assert "dropped there if" in result.detail
    [call] = calls
    assert call["MessageGroupId"] == "invoices"
    assert call["MessageDeduplicationId"] == f"{an_occurrence().id}-1"


# Buses


def test_an_event_holds_the_payload_beside_the_occurrences_names(stage: Stage) -> None:
    events: Any = stage.clients["events"]
    events.create_event_bus(Name=NAME)
    events.put_rule(
        Name="all", EventBusName=NAME, EventPattern=json.dumps({"source": ["acme.orders"]})
    )
    url = a_queue(stage)
    queue = {"Id": "queue", "Arn": f"arn:aws:sqs:us-east-1:{ACCOUNT}:{NAME}"}
    events.put_targets(Rule="all", EventBusName=NAME, Targets=[queue])
    result = stage.delivers(Service.EVENTBRIDGE)
    [message] = received(stage, url)
    event = json.loads(message["Body"])
    assert result == Delivered(detail=f"EventBridge {event['id']}")
    assert (event["source"], event["detail-type"]) == ("acme.orders", "Order Due")
    assert event["detail"] == ENVELOPE


@pytest.mark.parametrize(
    ("code", "retryable"),
    [
        ("ThrottlingException", True),
        ("InternalFailure", True),
        ("MalformedDetail", False),
        ("InvalidArgument", False),
    ],
)
def test_an_entry_that_was_refused_is_no_success_though_the_call_was(
    stage: Stage,
    code: str,
    retryable: bool,  # noqa: FBT001
) -> None:
    assert refused_entry(stage, code) == Failed(detail=f"EventBridge {code}", retryable=retryable)


def test_an_entry_that_was_denied_names_the_permission(stage: Stage) -> None:
    assert refused_entry(stage, "AccessDeniedException") == Failed(
        detail="EventBridge AccessDeniedException: events:PutEvents is missing", retryable=False
    )


def refused_entry(stage: Stage, code: str) -> DeliveryResult:
    def refuse(**_: Any) -> Any:
        entry = {"ErrorCode": code, "ErrorMessage": ORDER}
        response = type("Response", (), {"status_code": 200})
        return response, {"FailedEntryCount": 1, "Entries": [entry]}

    with hooked(stage.clients["events"], "before-call", "PutEvents", refuse):
        return stage.delivers(Service.EVENTBRIDGE)


# Functions


def test_a_function_is_invoked_without_waiting_with_the_payload_beside_the_names(
    stage: Stage,
) -> None:
    with taking(stage) as taken:
        assert stage.delivers(Service.LAMBDA, f"{NAME}:live") == Delivered(detail="Lambda 202")
    [call] = taken
    assert call["headers"]["X-Amz-Invocation-Type"] == "Event"
    assert json.loads(call["body"]) == ENVELOPE
    assert f"{NAME}%3Alive/invocations" in call["url_path"]


# State machines


def test_an_execution_is_named_by_the_occurrence_and_its_round(stage: Stage) -> None:
    a_state_machine(stage)
    occurrence = an_occurrence().id
    with recording(stage.clients["stepfunctions"], "StartExecution") as calls:
        first = stage.delivers(Service.STEP_FUNCTIONS)
        later = stage.delivers(Service.STEP_FUNCTIONS, round_=2)
    assert first == Delivered(detail=f"Step Functions: started under the name {occurrence}")
    assert later == Delivered(detail=f"Step Functions: started under the name {occurrence}-2")
    assert json.loads(calls[0]["input"]) == ENVELOPE


def test_an_execution_that_an_earlier_attempt_started_is_told_and_not_started_again(
    stage: Stage,
) -> None:
    a_state_machine(stage)
    stage.delivers(Service.STEP_FUNCTIONS, attempt=1)
    again = stage.delivers(Service.STEP_FUNCTIONS, attempt=2)
    name = an_occurrence().id
    detail = f"Step Functions: already started under the name {name}; not started again"
    assert again == Delivered(detail=detail)
    client: Any = stage.clients["stepfunctions"]
    machine = f"arn:aws:states:us-east-1:{ACCOUNT}:stateMachine:{NAME}"
    assert len(client.list_executions(stateMachineArn=machine)["executions"]) == 1


# What goes wrong


def call_of(service: Service) -> tuple[str, str, str]:
    operation, permission = CALLS[service]
    return operation, permission, WAYS[service].client


def ready(stage: Stage, service: Service) -> None:
    if service is Service.SQS:
        a_queue(stage)


@pytest.mark.parametrize("service", Service)
@pytest.mark.parametrize("code", ["AccessDenied", "AccessDeniedException", "AuthorizationError"])
def test_a_permission_that_is_missing_is_final_and_named(
    stage: Stage, service: Service, code: str
) -> None:
    ready(stage, service)
    operation, permission, client = call_of(service)
    with refusing(stage.clients[client], operation, code, status=403):
        result = stage.delivers(service)
    name = WAYS[service].name
    assert result == Failed(detail=f"{name} {code}: {permission} is missing", retryable=False)


@pytest.mark.parametrize(
    "code",
    ["KMSAccessDenied", "KMSAccessDeniedException", "KmsAccessDenied", "KmsAccessDeniedException"],
)
@pytest.mark.parametrize("service", Service)
def test_a_key_that_may_not_be_used_is_final_and_named(
    stage: Stage, service: Service, code: str
) -> None:
    ready(stage, service)
    operation, _, client = call_of(service)
    with refusing(stage.clients[client], operation, code):
        result = stage.delivers(service)
    assert isinstance(result, Failed)
    assert not result.retryable
    assert "kms:GenerateDataKey and kms:Decrypt on the target's key is missing" in result.detail


@pytest.mark.parametrize(
    ("service", "code", "status", "retryable"),
    [
        (Service.SQS, "InvalidMessageContents", 400, False),
        (Service.SQS, "InvalidParameterValue", 400, False),
        (Service.SQS, "AWS.SimpleQueueService.NonExistentQueue", 400, False),
        (Service.SQS, "RequestThrottled", 400, True),
        (Service.SQS, "InvalidClientTokenId", 403, True),
        (Service.SNS, "NotFound", 404, False),
        (Service.SNS, "InvalidParameter", 400, False),
        (Service.SNS, "KMSThrottling", 400, True),
        (Service.SNS, "Throttled", 429, True),
        (Service.EVENTBRIDGE, "ResourceNotFoundException", 400, False),
        (Service.EVENTBRIDGE, "ValidationException", 400, False),
        (Service.LAMBDA, "ResourceNotFoundException", 404, False),
        (Service.LAMBDA, "RequestTooLargeException", 413, False),
        (Service.LAMBDA, "InvalidRequestContentException", 400, False),
        (Service.LAMBDA, "TooManyRequestsException", 429, True),
        (Service.LAMBDA, "ServiceException", 500, True),
        (Service.STEP_FUNCTIONS, "StateMachineDoesNotExist", 400, False),
        (Service.STEP_FUNCTIONS, "StateMachineDeleting", 400, False),
        (Service.STEP_FUNCTIONS, "InvalidExecutionInput", 400, False),
        (Service.STEP_FUNCTIONS, "ExecutionLimitExceeded", 400, True),
        *[(service, "ThrottlingException", 400, True) for service in Service],
        *[(service, "InternalError", 500, True) for service in Service],
        *[(service, "ServiceUnavailable", 503, True) for service in Service],
    ],
)
def test_a_refusal_is_final_only_where_no_repeat_can_mend_it(
    stage: Stage,
    service: Service,
    code: str,
    status: int,
    retryable: bool,  # noqa: FBT001
) -> None:
    ready(stage, service)
    operation, _, client = call_of(service)
    with refusing(stage.clients[client], operation, code, status=status):
        result = stage.delivers(service)
    assert result == Failed(detail=f"{WAYS[service].name} {code}", retryable=retryable)


@pytest.mark.parametrize("service", [Service.SQS, Service.SNS, Service.STEP_FUNCTIONS])
def test_what_does_not_exist_is_final(stage: Stage, service: Service) -> None:
    result = stage.delivers(service)
    assert isinstance(result, Failed)
    assert not result.retryable


def test_a_queue_that_may_not_be_looked_up_is_final_and_the_permission_named(
    stage: Stage,
) -> None:
    with refusing(stage.sqs, "GetQueueUrl", "AccessDenied", status=403):
        result = stage.delivers(Service.SQS)
    assert result == Failed(detail="SQS AccessDenied: sqs:GetQueueUrl is missing", retryable=False)


@pytest.mark.parametrize("service", Service)
def test_a_network_that_fails_may_be_tried_again(stage: Stage, service: Service) -> None:
    ready(stage, service)
    operation, _, client = call_of(service)

    def fail(**_: Any) -> None:
        raise EndpointConnectionError(endpoint_url="https://aws.example")

    with hooked(stage.clients[client], "before-send", operation, fail):
        result = stage.delivers(service)
    name = WAYS[service].name
    assert result == Failed(detail=f"{name} EndpointConnectionError", retryable=True)


@pytest.mark.parametrize("service", Service)
def test_nothing_is_sent_once_the_deadline_has_passed(stage: Stage, service: Service) -> None:
    late = ManualClock(NINE + SERVICE_TIMEOUT)
    operation, _, client = call_of(service)
    with recording(stage.clients[client], operation) as calls:
        result = stage.targets(clock=late).deliver(to(service))
    assert result == Failed(detail="timeout before the call", retryable=True, by_target=False)
    assert calls == []


@pytest.mark.parametrize("service", Service)
def test_no_result_shows_the_payload(stage: Stage, service: Service) -> None:
    operation, _, client = call_of(service)
    ready(stage, service)
    results = []
    for code in ("AccessDenied", "InvalidParameterValue", "Throttling"):
        with refusing(stage.clients[client], operation, f"{code}"):
            results.append(stage.delivers(service))
    assert ORDER not in repr(results)
    assert "was refused" not in repr(results), "the service's own message stays out"


def test_the_client_is_asked_for_by_target_and_tenant(stage: Stage) -> None:
    a_queue(stage)
    stage.delivers(Service.SQS)
    assert stage.asked == [("sqs", to(Service.SQS).target, "acme")]
