"""Ticker and planner: once a minute, every shard's agenda becomes pages in the outbox."""

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.blocks import grants
from infra.blocks.function import PuntualFunction, Runtime
from infra.blocks.lanes import Lanes
from infra.blocks.tables import Tables

# A tick that comes late is worth nothing: the next one does its work.
TICK_AGE_MAX = cdk.Duration.seconds(60)
PLANNER_TIMEOUT_SECONDS = 600


class Planner(Construct):
    def __init__(
        self, scope: Construct, construct_id: str, *, runtime: Runtime, tables: Tables, lanes: Lanes
    ) -> None:
        super().__init__(scope, construct_id)
        self.function = PuntualFunction(
            self,
            "Planner",
            name="planner",
            runtime=runtime,
            timeout_seconds=PLANNER_TIMEOUT_SECONDS,
            # One whole vCPU; planning is CPU-bound.
            memory_mb=1769,
            permissions=[
                grants.on_table(tables.schedules, "BatchGetItem", "UpdateItem"),
                grants.on_table(tables.versions, "GetItem"),
                grants.on_table(tables.shards, "GetItem", "UpdateItem"),
                grants.on_table(tables.agenda, "Query", "BatchWriteItem", "PutItem"),
                grants.on_table(tables.outbox, "Query", "PutItem", "DeleteItem"),
                grants.on_table(tables.occurrences, "PutItem"),
                # Catch-up is planned at the tenant's rate.
                grants.draw_on_budgets(tables),
                grants.send(lanes.queues),
            ],
        ).function
        self.function.configure_async_invoke(max_event_age=TICK_AGE_MAX, retry_attempts=0)


class Ticker(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        runtime: Runtime,
        tables: Tables,
        planner: lambda_.Function,
    ) -> None:
        super().__init__(scope, construct_id)
        self.function = PuntualFunction(
            self,
            "Ticker",
            name="ticker",
            runtime=runtime,
            timeout_seconds=30,
            memory_mb=256,
            permissions=[
                grants.on_table(tables.shards, "Scan"),
                grants.on_table(tables.zone_releases, "GetItem", "PutItem"),
                grants.invoke(planner),
            ],
            settings={"PLANNER_FUNCTION_NAME": planner.function_name},
        ).function
        self.function.configure_async_invoke(max_event_age=TICK_AGE_MAX, retry_attempts=0)
        events.Rule(
            self,
            "EveryMinute",
            rule_name=f"{runtime.environment.prefix}-every-minute",
            description="Plans every shard of Puntual",
            schedule=events.Schedule.rate(cdk.Duration.minutes(1)),
            targets=[
                targets.LambdaFunction(self.function, max_event_age=TICK_AGE_MAX, retry_attempts=0)
            ],
        )
