"""Executor: takes occurrences off the lanes and delivers them.

One function with three event sources, not three functions: each lane still has its own queue,
pollers and concurrency limit, so none can starve another, while code, role, log and warm
processes are shared and there is one thing to deploy, watch and kill in tests.
"""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.blocks import grants
from infra.blocks.function import PuntualFunction, Runtime
from infra.blocks.lanes import Lanes
from infra.blocks.tables import Tables
from infra.blocks.targets import Targets

MESSAGES_PER_BATCH = 10


class Executor(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        runtime: Runtime,
        tables: Tables,
        lanes: Lanes,
        targets: Targets,
        callbacks_url: str,
    ) -> None:
        super().__init__(scope, construct_id)
        self.function = PuntualFunction(
            self,
            "Executor",
            name="executor",
            runtime=runtime,
            timeout_seconds=runtime.environment.executor_timeout_seconds,
            memory_mb=512,
            settings={"CALLBACKS_URL": callbacks_url},
            hops_forever=True,
            permissions=[
                grants.on_table(
                    tables.occurrences,
                    "GetItem",
                    "PutItem",
                    "UpdateItem",
                    "ConditionCheckItem",
                    # The rows before a late one tell its place among those that run.
                    "Query",
                ),
                grants.on_table(tables.schedules, "GetItem", "UpdateItem"),
                grants.on_table(tables.versions, "GetItem"),
                # What a tenant may name is looked up again at each delivery.
                grants.draw_on_budgets(tables),
                grants.consume(lanes.queues),
                grants.send(lanes.queues),
                *targets.permissions,
            ],
        ).function
        concurrency = runtime.environment.max_concurrency
        self._serve("Strict", lanes.strict.queue.queue_arn, concurrency.strict)
        self._serve("Flexible", lanes.flexible.queue.queue_arn, concurrency.flexible)
        self._serve("Recovery", lanes.recovery.queue.queue_arn, concurrency.recovery)
        targets.acknowledge(self)

    def _serve(self, lane: str, queue_arn: str, concurrency: int) -> None:
        # A limit on the source, never reserved concurrency: the throttles of the latter raise
        # receive counts and send healthy messages to the dead-letter queue.
        lambda_.EventSourceMapping(
            self,
            lane,
            target=self.function,
            event_source_arn=queue_arn,
            batch_size=MESSAGES_PER_BATCH,
            max_concurrency=concurrency,
            report_batch_item_failures=True,
        )
