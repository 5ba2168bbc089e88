"""The adapter of queue targets against moto's queues."""

import json
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from puntual.adapters.sqs_targets import QUEUES_KNOWN_MAX, SqsTargets
from puntual.aws import SQSClient
from puntual.domain.target import QUEUE_TIMEOUT, Delivered, Delivery, Failed, QueueTarget
from tests.builders import NINE, an_occurrence
from tests.contract.conftest import Aws
from tests.contract.sdk import hooked, recording, refusing
from tests.fakes.manual_clock import ManualClock

ACCOUNT = "123456789012"
NAME = "puntual-target-orders"
ORDER = '{"order":7}'
CLOCK = ManualClock(NINE)


def arn_of(name: str) -> str:
    return f"arn:aws:sqs:us-east-1:{ACCOUNT}:{name}"


def a_delivery(name: str = NAME, *, attempt: int = 3) -> Delivery:
    return Delivery(
        occurrence=an_occurrence(),
        attempt=attempt,
        target=QueueTarget(arn=arn_of(name)),
        payload=ORDER,
        deadline=NINE + QUEUE_TIMEOUT,
    )


def a_queue(client: SQSClient, name: str = NAME) -> str:
    attributes: Any = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
    return client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]


def received(client: SQSClient, url: str) -> list[Any]:
    answer = client.receive_message(
        QueueUrl=url,
        MaxNumberOfMessages=10,
        MessageAttributeNames=["All"],
        AttributeNames=["All"],
    )
    return list(answer.get("Messages", []))


def test_a_standard_queue_gets_the_payload_with_the_occurrences_names(aws: Aws) -> None:
    url = a_queue(aws.sqs)
    result = SqsTargets(client=aws.sqs, clock=CLOCK).deliver(a_delivery())
    [message] = received(aws.sqs, url)
    assert result == Delivered(detail=f"SQS {message['MessageId']}")
    assert json.loads(message["Body"]) == {"order": 7}
    names = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
    assert names == {
        "Idempotency-Key": an_occurrence().id,
        "Puntual-Tenant": "acme",
        "Puntual-Schedule": "invoices",
        "Puntual-Scheduled-For": "2026-11-30T09:00:00.000Z",
        "Puntual-Attempt": "3",
    }


def test_a_fifo_queue_keeps_a_schedules_order_and_takes_an_occurrence_once(aws: Aws) -> None:
    url = a_queue(aws.sqs, NAME + ".fifo")
    targets = SqsTargets(client=aws.sqs, clock=CLOCK)
    for attempt in (1, 2):
        result = targets.deliver(a_delivery(NAME + ".fifo", attempt=attempt))
        assert isinstance(result, Delivered)
    [message] = received(aws.sqs, url)
    assert message["Attributes"]["MessageGroupId"] == "invoices"
    assert message["Attributes"]["MessageDeduplicationId"] == an_occurrence().id


def test_a_fifo_queue_takes_every_occurrence_of_a_schedule(aws: Aws) -> None:
    url = a_queue(aws.sqs, NAME + ".fifo")
    targets = SqsTargets(client=aws.sqs, clock=CLOCK)
    for version in (1, 2):
        delivery = a_delivery(NAME + ".fifo")
        targets.deliver(replace(delivery, occurrence=an_occurrence(version=version)))
    seen = [message["Attributes"]["MessageDeduplicationId"] for message in received(aws.sqs, url)]
    assert seen == [an_occurrence(version=1).id, an_occurrence(version=2).id]


def test_a_queue_that_does_not_exist_is_final(aws: Aws) -> None:
    result = SqsTargets(client=aws.sqs, clock=CLOCK).deliver(a_delivery())
    assert isinstance(result, Failed)
    assert (result.detail, result.retryable) == (
        "SQS AWS.SimpleQueueService.NonExistentQueue",
        False,
    )


@pytest.mark.parametrize("operation", ["GetQueueUrl", "SendMessage"])
@pytest.mark.parametrize(
    ("code", "status", "retryable"),
    [
        ("AccessDenied", 403, False),
        ("AccessDeniedException", 403, False),
        ("InvalidMessageContents", 400, False),
        ("KmsAccessDenied", 400, False),
        ("RequestThrottled", 400, True),
        ("ThrottlingException", 400, True),
        ("InternalError", 500, True),
        ("ServiceUnavailable", 503, True),
        ("InvalidClientTokenId", 403, True),
    ],
)
def test_a_refusal_is_final_only_where_no_repeat_can_mend_it(
    aws: Aws,
    operation: str,
    code: str,
    status: int,
    retryable: bool,  # noqa: FBT001
) -> None:
    a_queue(aws.sqs)
    with refusing(aws.sqs, operation, code, status=status):
        result = SqsTargets(client=aws.sqs, clock=CLOCK).deliver(a_delivery())
    assert result == Failed(detail=f"SQS {code}", retryable=retryable)


def test_a_queue_of_another_region_is_never_taken_for_its_namesake_here(aws: Aws) -> None:
    url = a_queue(aws.sqs)
    abroad = QueueTarget(arn=f"arn:aws:sqs:eu-west-1:{ACCOUNT}:{NAME}")
    result = SqsTargets(client=aws.sqs, clock=CLOCK).deliver(replace(a_delivery(), target=abroad))
    assert result == Failed(detail="SQS queue of region eu-west-1", retryable=False)
    assert received(aws.sqs, url) == []


def test_a_network_that_fails_may_be_tried_again(aws: Aws) -> None:
    url = a_queue(aws.sqs)

    def fail(**_: Any) -> None:
        raise EndpointConnectionError(endpoint_url=url)

    with hooked(aws.sqs, "before-send", "SendMessage", fail):
        result = SqsTargets(client=aws.sqs, clock=CLOCK).deliver(a_delivery())
    assert result == Failed(detail="SQS EndpointConnectionError", retryable=True)


def test_a_queues_address_is_asked_for_once_and_of_its_own_account(aws: Aws) -> None:
    a_queue(aws.sqs)
    targets = SqsTargets(client=aws.sqs, clock=CLOCK)
    with recording(aws.sqs, "GetQueueUrl") as calls:
        targets.deliver(a_delivery())
        targets.deliver(a_delivery())
    assert calls == [{"QueueName": NAME, "QueueOwnerAWSAccountId": ACCOUNT}]


def test_the_addresses_known_are_bounded(aws: Aws) -> None:
    url = a_queue(aws.sqs)
    known = {arn_of(str(number)): url for number in range(QUEUES_KNOWN_MAX)}
    targets = SqsTargets(client=aws.sqs, clock=CLOCK, _urls=known)
    assert isinstance(targets.deliver(a_delivery()), Delivered)
    assert known == {arn_of(NAME): url}


def test_no_result_shows_the_payload(aws: Aws) -> None:
    targets = SqsTargets(client=aws.sqs, clock=CLOCK)
    failed = targets.deliver(a_delivery())
    a_queue(aws.sqs)
    delivered = targets.deliver(a_delivery())
    assert "order" not in repr((failed, delivered)).replace("orders", "")


def test_nothing_is_sent_once_the_deadline_has_passed(aws: Aws) -> None:
    url = a_queue(aws.sqs)
    late = ManualClock(NINE + QUEUE_TIMEOUT)
    result = SqsTargets(client=aws.sqs, clock=late).deliver(a_delivery())
    assert result == Failed(detail="timeout before the send", retryable=True)
    assert received(aws.sqs, url) == []
