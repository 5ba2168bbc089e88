"""Targets in AWS: queues, topics, event buses, functions and state machines.

One table says how each is called; what a refusal means is the same for all of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from botocore.client import BaseClient
from botocore.exceptions import BotoCoreError, ClientError

from puntual.application.ports import Clock
from puntual.aws import (
    ClientOf,
    EventBridgeClient,
    LambdaClient,
    MessageAttribute,
    SFNClient,
    SNSClient,
    SQSClient,
    error_code,
)
from puntual.domain.target import (
    AwsTarget,
    Delivered,
    Delivery,
    DeliveryResult,
    Failed,
    Service,
)

QUEUES_KNOWN_MAX = 1_000

ALREADY_STARTED = "ExecutionAlreadyExists"

DENIED = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthorizationError",
        "NotAuthorizedForSourceException",
    }
)
"""No repeat mends these until somebody grants the permission, which the result names."""

KEY_DENIED = frozenset(
    {"KMSAccessDenied", "KMSAccessDeniedException", "KmsAccessDenied", "KmsAccessDeniedException"}
)

FINAL = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "InvalidArgument",
        "InvalidArn",
        "InvalidExecutionInput",
        "InvalidMessageContents",
        "InvalidName",
        "InvalidParameter",
        "InvalidParameterValue",
        "InvalidParameterValueException",
        "InvalidRequestContentException",
        "MalformedDetail",
        "NotFound",
        "NotFoundException",
        "ParameterValueInvalid",
        "QueueDoesNotExist",
        "RegionDisabledException",
        "RequestTooLargeException",
        "ResourceNotFoundException",
        "StateMachineDeleting",
        "StateMachineDoesNotExist",
        "ValidationError",
        "ValidationException",
    }
)
"""What is not there, too large or malformed stays so; any other error may pass."""

KEY_PERMISSIONS = "kms:GenerateDataKey and kms:Decrypt on the target's key"

PERMISSION_OF: Mapping[str, str] = {
    "AssumeRole": "sts:AssumeRole and sts:TagSession by the role's trust policy",
    "GetQueueUrl": "sqs:GetQueueUrl",
    "Invoke": "lambda:InvokeFunction",
    "Publish": "sns:Publish",
    "PutEvents": "events:PutEvents",
    "SendMessage": "sqs:SendMessage",
    "StartExecution": "states:StartExecution",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsTargets:
    """`client_of` gives the client of a service, with the credentials that the target asks for."""

    client_of: ClientOf
    clock: Clock
    _queue_urls: dict[str, str] = field(default_factory=dict)

    def deliver(self, delivery: Delivery) -> DeliveryResult:
        """Call the resource once. Whatever the service says is a result."""
        target = delivery.target
        assert isinstance(target, AwsTarget)
        way = WAYS[target.service]
        try:
            client = self.client_of(way.client, target, delivery.occurrence.tenant)
        except ClientError as error:
            return _without_role(_refused("STS", _code_of(error), error.operation_name))
        except BotoCoreError as error:
            return _without_role(_unreached("STS", error))
        try:
            if self.is_late(delivery):
                return _late()
            return way.send(self, client, delivery)
        except ClientError as error:
            return _refused(way.name, _code_of(error), error.operation_name)
        except BotoCoreError as error:
            return _unreached(way.name, error)

    def is_late(self, delivery: Delivery) -> bool:
        return self.clock.now() >= delivery.deadline

    def queue_url(self, client: SQSClient, arn: str) -> str:
        """Give a queue's address; it never changes while the queue exists."""
        if arn not in self._queue_urls:
            if len(self._queue_urls) >= QUEUES_KNOWN_MAX:
                self._queue_urls.clear()
            _, _, _, _, account, name = arn.split(":")
            found = client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)
            self._queue_urls[arn] = found["QueueUrl"]
        return self._queue_urls[arn]


def _late() -> Failed:
    return Failed(detail="timeout before the call", retryable=True, by_target=False)


def _without_role(failed: Failed) -> Failed:
    """Who does not get the role never asks the target."""
    return replace(failed, by_target=False)


def _code_of(error: ClientError) -> str:
    return error_code(error) or "unknown"


def _unreached(name: str, error: BotoCoreError) -> Failed:
    return Failed(detail=f"{name} {type(error).__name__}", retryable=True)


def _refused(name: str, code: str, operation: str) -> Failed:
    """Class an error by its code; its message stays out, since it may repeat what was sent."""
    if code in KEY_DENIED:
        return Failed(detail=f"{name} {code}: {KEY_PERMISSIONS} is missing", retryable=False)
    if code in DENIED:
        permission = PERMISSION_OF[operation]
        return Failed(detail=f"{name} {code}: {permission} is missing", retryable=False)
    return Failed(detail=f"{name} {code}", retryable=code not in FINAL)


def _sent_to_queue(targets: AwsTargets, client: BaseClient, delivery: Delivery) -> DeliveryResult:
    sqs, arn = cast("SQSClient", client), _arn_of(delivery)
    url = targets.queue_url(sqs, arn)
    if targets.is_late(delivery):
        return _late()
    attributes = _attributes(delivery)
    if _is_fifo(delivery):
        sent = sqs.send_message(
            QueueUrl=url,
            MessageBody=delivery.payload,
            MessageAttributes=attributes,
            MessageGroupId=delivery.occurrence.schedule,
            MessageDeduplicationId=delivery.once_name,
        )
    else:
        sent = sqs.send_message(
            QueueUrl=url, MessageBody=delivery.payload, MessageAttributes=attributes
        )
    return _taken("SQS", sent["MessageId"], delivery)


def _published(_: AwsTargets, client: BaseClient, delivery: Delivery) -> DeliveryResult:
    sns, arn = cast("SNSClient", client), _arn_of(delivery)
    attributes = _attributes(delivery)
    if _is_fifo(delivery):
        sent = sns.publish(
            TopicArn=arn,
            Message=delivery.payload,
            MessageAttributes=attributes,
            MessageGroupId=delivery.occurrence.schedule,
            MessageDeduplicationId=delivery.once_name,
        )
    else:
        sent = sns.publish(TopicArn=arn, Message=delivery.payload, MessageAttributes=attributes)
    return _taken("SNS", sent["MessageId"], delivery)


def _put_on_bus(_: AwsTargets, client: BaseClient, delivery: Delivery) -> DeliveryResult:
    target = delivery.target
    assert isinstance(target, AwsTarget)
    put = cast("EventBridgeClient", client).put_events(
        Entries=[
            {
                "EventBusName": target.arn,
                "Source": target.source,
                "DetailType": target.detail_type,
                "Detail": delivery.enveloped(),
            }
        ]
    )
    (entry,) = put["Entries"]
    # A refused entry comes in an answer of status 200.
    if entry.get("ErrorCode"):
        return _refused("EventBridge", entry["ErrorCode"], "PutEvents")
    return Delivered(detail=f"EventBridge {entry['EventId']}")


def _invoked(_: AwsTargets, client: BaseClient, delivery: Delivery) -> DeliveryResult:
    invoked = cast("LambdaClient", client).invoke(
        FunctionName=_arn_of(delivery),
        InvocationType="Event",
        Payload=delivery.enveloped().encode(),
    )
    return Delivered(detail=f"Lambda {invoked['StatusCode']}")


def _started(_: AwsTargets, client: BaseClient, delivery: Delivery) -> DeliveryResult:
    name = delivery.once_name
    try:
        cast("SFNClient", client).start_execution(
            stateMachineArn=_arn_of(delivery), name=name, input=delivery.enveloped()
        )
    except ClientError as error:
        if error_code(error) != ALREADY_STARTED:
            raise
        detail = f"Step Functions: already started under the name {name}; not started again"
        return Delivered(detail=detail)
    return Delivered(detail=f"Step Functions: started under the name {name}")


def _taken(name: str, message_id: str, delivery: Delivery) -> Delivered:
    """FIFO queues and topics answer a repeat as if it were new, so that is all that can be said."""
    detail = f"{name} {message_id}"
    if _is_fifo(delivery) and delivery.is_repeat and not delivery.awaits_callback:
        name = delivery.once_name
        detail += f"; dropped there if {name} was already taken within 5 minutes"
    return Delivered(detail=detail)


def _arn_of(delivery: Delivery) -> str:
    assert isinstance(delivery.target, AwsTarget)
    return delivery.target.arn


def _is_fifo(delivery: Delivery) -> bool:
    return isinstance(delivery.target, AwsTarget) and delivery.target.is_fifo


def _attributes(delivery: Delivery) -> dict[str, MessageAttribute]:
    return {
        name: {"DataType": "String", "StringValue": text} for name, text in delivery.told().items()
    }


Send = Callable[[AwsTargets, BaseClient, Delivery], DeliveryResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a service is reached: what results call it, the SDK's client, the call."""

    name: str
    client: str
    send: Send


WAYS: Mapping[Service, Way] = {
    Service.SQS: Way(name="SQS", client="sqs", send=_sent_to_queue),
    Service.SNS: Way(name="SNS", client="sns", send=_published),
    Service.EVENTBRIDGE: Way(name="EventBridge", client="events", send=_put_on_bus),
    Service.LAMBDA: Way(name="Lambda", client="lambda", send=_invoked),
    Service.STEP_FUNCTIONS: Way(name="Step Functions", client="stepfunctions", send=_started),
}
