"""Relay: pages leave the outbox for the lanes as soon as the stream shows them."""

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.blocks import grants
from infra.blocks.acknowledgements import acknowledge
from infra.blocks.function import PuntualFunction, Runtime
from infra.blocks.lanes import Lanes, queue
from infra.blocks.tables import Tables

# A page is up to 100 occurrences, ten calls to SQS: a few of them fill a call of the function.
PAGES_PER_BATCH = 5
# Pages need no order, so those of different shards of ours go side by side: a relay that works one
# page off after the other sends some thousand messages a second for each shard of the stream.
BATCHES_PER_STREAM_SHARD = 10
# A page stays in the outbox until it is relayed, and the planner relays leftovers; so a poisoned
# page need not hold up its stream shard for the 24 hours the stream would keep trying.
RETRIES_MAX = 5


class Relay(Construct):
    def __init__(
        self, scope: Construct, construct_id: str, *, runtime: Runtime, tables: Tables, lanes: Lanes
    ) -> None:
        super().__init__(scope, construct_id)
        self.failures = queue(
            self, "relay-failures", environment=runtime.environment, visibility_seconds=60
        )
        self.function = PuntualFunction(
            self,
            "Relay",
            name="relay",
            runtime=runtime,
            timeout_seconds=60,
            memory_mb=1024,
            permissions=[
                grants.on_table(tables.outbox, "DeleteItem"),
                grants.send([*lanes.queues, self.failures]),
                grants.read_stream(tables.outbox),
                grants.list_streams(),
            ],
        ).function
        self._follow_outbox(tables)
        acknowledge(
            self.failures,
            {"AwsSolutions-SQS3": "It is itself the place for what could not be processed."},
        )

    def _follow_outbox(self, tables: Tables) -> None:
        lambda_.EventSourceMapping(
            self,
            "Outbox",
            target=self.function,
            event_source_arn=tables.outbox.table_stream_arn,
            starting_position=lambda_.StartingPosition.TRIM_HORIZON,
            filters=[
                lambda_.FilterCriteria.filter({"eventName": lambda_.FilterRule.is_equal("INSERT")})
            ],
            batch_size=PAGES_PER_BATCH,
            parallelization_factor=BATCHES_PER_STREAM_SHARD,
            max_batching_window=cdk.Duration.seconds(0),
            bisect_batch_on_error=True,
            retry_attempts=RETRIES_MAX,
            report_batch_item_failures=True,
            on_failure=sources.SqsDlq(_as_queue(self.failures)),
        )


def _as_queue(failures: sqs.Queue) -> sqs.IQueue:
    return failures
