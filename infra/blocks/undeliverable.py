"""Undeliverable: judges what the lanes gave up on."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.blocks import grants
from infra.blocks.function import PuntualFunction, Runtime
from infra.blocks.lanes import UNDELIVERABLE_TIMEOUT_SECONDS, Lanes
from infra.blocks.tables import Tables

MESSAGES_PER_BATCH = 10


class Undeliverable(Construct):
    def __init__(
        self, scope: Construct, construct_id: str, *, runtime: Runtime, tables: Tables, lanes: Lanes
    ) -> None:
        super().__init__(scope, construct_id)
        self.function = PuntualFunction(
            self,
            "Undeliverable",
            name="undeliverable",
            runtime=runtime,
            timeout_seconds=UNDELIVERABLE_TIMEOUT_SECONDS,
            memory_mb=512,
            hops_forever=True,
            permissions=[
                grants.on_table(tables.occurrences, "GetItem", "PutItem", "ConditionCheckItem"),
                grants.on_table(tables.schedules, "GetItem", "UpdateItem"),
                grants.on_table(tables.versions, "GetItem"),
                grants.consume(lanes.dead_letters),
                grants.send(lanes.queues),
            ],
        ).function
        for lane, dead_letters in zip(
            ("Strict", "Flexible", "Recovery"), lanes.dead_letters, strict=True
        ):
            lambda_.EventSourceMapping(
                self,
                lane,
                target=self.function,
                event_source_arn=dead_letters.queue_arn,
                batch_size=MESSAGES_PER_BATCH,
                max_concurrency=2,
                report_batch_item_failures=True,
            )
