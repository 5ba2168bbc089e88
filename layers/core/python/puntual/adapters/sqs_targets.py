"""Queue targets: a tenant's registered SQS queue, standard or FIFO."""

from dataclasses import dataclass, field

from botocore.exceptions import BotoCoreError, ClientError

from puntual.application.ports import Clock
from puntual.aws import MessageAttribute, SQSClient, error_code
from puntual.domain.target import Delivered, Delivery, DeliveryResult, Failed, QueueTarget

QUEUES_KNOWN_MAX = 1_000

_FINAL_ERRORS = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AWS.SimpleQueueService.NonExistentQueue",
        "QueueDoesNotExist",
        "InvalidMessageContents",
        "InvalidParameterValue",
        "KmsAccessDenied",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqsTargets:
    client: SQSClient
    clock: Clock
    _urls: dict[str, str] = field(default_factory=dict)

    def deliver(self, delivery: Delivery) -> DeliveryResult:
        """Send the payload once; on FIFO queues the occurrence id is the deduplication id."""
        target, occurrence = delivery.target, delivery.occurrence
        assert isinstance(target, QueueTarget)
        region = target.arn.split(":")[3]
        if region != self.client.meta.region_name:
            # By its name alone it would be looked up here, where a namesake may be another's.
            return Failed(detail=f"SQS queue of region {region}", retryable=False)
        try:
            url = self._url(target.arn)
            if self.clock.now() >= delivery.deadline:
                return Failed(detail="timeout before the send", retryable=True)
            if target.is_fifo:
                sent = self.client.send_message(
                    QueueUrl=url,
                    MessageBody=delivery.payload,
                    MessageAttributes=_attributes(delivery),
                    MessageGroupId=occurrence.schedule,
                    MessageDeduplicationId=occurrence.id,
                )
            else:
                sent = self.client.send_message(
                    QueueUrl=url,
                    MessageBody=delivery.payload,
                    MessageAttributes=_attributes(delivery),
                )
        except ClientError as error:
            code = error_code(error) or "unknown"
            return Failed(detail=f"SQS {code}", retryable=code not in _FINAL_ERRORS)
        except BotoCoreError as error:
            return Failed(detail=f"SQS {type(error).__name__}", retryable=True)
        return Delivered(detail=f"SQS {sent['MessageId']}")

    def _url(self, arn: str) -> str:
        if arn not in self._urls:
            if len(self._urls) >= QUEUES_KNOWN_MAX:
                self._urls.clear()
            _, _, _, _, account, name = arn.split(":")
            found = self.client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)
            self._urls[arn] = found["QueueUrl"]
        return self._urls[arn]


def _attributes(delivery: Delivery) -> dict[str, MessageAttribute]:
    return {
        name: {"DataType": "String", "StringValue": text} for name, text in delivery.told().items()
    }
