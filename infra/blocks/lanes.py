"""The lanes: a queue and its dead-letter queue each, so that old work never delays new work.

What cannot even be judged as a dead letter ends in one queue for all three, for people to look at.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.environments import Environment

RETENTION = cdk.Duration.days(14)

# Throttled pollers raise the receive count too, so a low limit would bury healthy messages.
RECEIVES_MAX = 20

UNDELIVERABLE_TIMEOUT_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    queue: sqs.Queue
    dead_letters: sqs.Queue


class Lanes(Construct):
    def __init__(self, scope: Construct, construct_id: str, *, environment: Environment) -> None:
        super().__init__(scope, construct_id)
        self._environment = environment
        # Nobody consumes it. A message stays what is left of its fourteen days: a move from queue
        # to queue does not make it younger.
        self.unreadable = queue(
            self,
            "unreadable",
            environment=environment,
            visibility_seconds=UNDELIVERABLE_TIMEOUT_SECONDS,
        )
        self.strict = self._lane("strict")
        self.flexible = self._lane("flexible")
        self.recovery = self._lane("recovery")

    @property
    def queues(self) -> Sequence[sqs.Queue]:
        return [self.strict.queue, self.flexible.queue, self.recovery.queue]

    @property
    def dead_letters(self) -> Sequence[sqs.Queue]:
        return [self.strict.dead_letters, self.flexible.dead_letters, self.recovery.dead_letters]

    def urls(self) -> Mapping[str, str]:
        return {
            "STRICT_QUEUE_URL": self.strict.queue.queue_url,
            "FLEXIBLE_QUEUE_URL": self.flexible.queue.queue_url,
            "RECOVERY_QUEUE_URL": self.recovery.queue.queue_url,
        }

    def dead_letter_urls(self) -> Mapping[str, str]:
        return {
            "STRICT_DLQ_URL": self.strict.dead_letters.queue_url,
            "FLEXIBLE_DLQ_URL": self.flexible.dead_letters.queue_url,
            "RECOVERY_DLQ_URL": self.recovery.dead_letters.queue_url,
        }

    def _lane(self, name: str) -> Lane:
        environment = self._environment
        dead_letters = queue(
            self,
            f"{name}-dlq",
            environment=environment,
            # As long as in a lane: an outage of the tables must last hours, not minutes, until
            # what could be judged is taken for what nobody can read.
            visibility_seconds=environment.lane_visibility_seconds,
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.unreadable, max_receive_count=RECEIVES_MAX
            ),
        )
        return Lane(
            queue=queue(
                self,
                name,
                environment=environment,
                visibility_seconds=environment.lane_visibility_seconds,
                dead_letter_queue=sqs.DeadLetterQueue(
                    queue=dead_letters, max_receive_count=RECEIVES_MAX
                ),
            ),
            dead_letters=dead_letters,
        )


def queue(
    scope: Construct,
    name: str,
    *,
    environment: Environment,
    visibility_seconds: int,
    dead_letter_queue: sqs.DeadLetterQueue | None = None,
) -> sqs.Queue:
    """A standard queue that keeps messages as long as SQS can, encrypted, over TLS only."""
    return sqs.Queue(
        scope,
        "".join(word.capitalize() for word in name.split("-")),
        queue_name=f"{environment.prefix}-{name}",
        retention_period=RETENTION,
        visibility_timeout=cdk.Duration.seconds(visibility_seconds),
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        dead_letter_queue=dead_letter_queue,
        removal_policy=(
            cdk.RemovalPolicy.DESTROY if environment.disposable else cdk.RemovalPolicy.RETAIN
        ),
    )
