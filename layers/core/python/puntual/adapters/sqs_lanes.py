"""The lanes as standard SQS queues, fair between tenants by their message groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import batched

from puntual.application.codec import body_of
from puntual.application.ports import Sending
from puntual.aws import SQSClient, unavailable_if_transient
from puntual.domain.lane import Lane

MESSAGES_PER_BATCH_MAX = 10
"""What SendMessageBatch takes in one call; ten of ours stay far below its bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqsLanes:
    client: SQSClient
    queue_urls: Mapping[Lane, str]

    def send(self, lane: Lane, sendings: Sequence[Sending]) -> tuple[Sending, ...]:
        refused: list[Sending] = []
        for batch in batched(sendings, MESSAGES_PER_BATCH_MAX, strict=False):
            with unavailable_if_transient(f"send to lane {lane}"):
                answer = self.client.send_message_batch(
                    QueueUrl=self.queue_urls[lane],
                    Entries=[
                        {
                            "Id": str(place),
                            "MessageBody": body_of(sending.message, sending.delay),
                            "DelaySeconds": _whole_seconds(sending.delay),
                            "MessageGroupId": sending.message.occurrence.tenant,
                        }
                        for place, sending in enumerate(batch)
                    ],
                )
            refused.extend(batch[int(failure["Id"])] for failure in answer.get("Failed", ()))
        return tuple(refused)


def _whole_seconds(delay: timedelta) -> int:
    """Rounded up: a message that is visible early only has to be parked again."""
    return -(-delay // timedelta(seconds=1))
