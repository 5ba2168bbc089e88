"""What runs: the layer and the functions."""

from collections.abc import Mapping
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.blocks.acknowledgements import acknowledge
from infra.blocks.alarms import Alarms
from infra.blocks.api_function import ApiFunction
from infra.blocks.callbacks import Callbacks
from infra.blocks.executor import Executor
from infra.blocks.function import Runtime
from infra.blocks.planner import Planner, Ticker
from infra.blocks.relay import Relay
from infra.blocks.replanner import Replanner
from infra.blocks.targets import Targets
from infra.blocks.undeliverable import Undeliverable
from infra.environments import Environment
from infra.stacks.storage_stack import StorageStack


class ComputeStack(cdk.Stack):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        storage: StorageStack,
        root: Path,
        layer: Path,
    ) -> None:
        super().__init__(scope, construct_id, description="Puntual: functions")
        runtime = Runtime(
            environment=environment,
            root=root,
            layer=self._layer(environment, layer),
            settings=_settings(environment, storage),
        )
        tables, lanes = storage.tables, storage.lanes
        targets = Targets(root_secret=storage.webhook_root_secret)
        self.planner = Planner(self, "Planner", runtime=runtime, tables=tables, lanes=lanes)
        self.ticker = Ticker(
            self, "Ticker", runtime=runtime, tables=tables, planner=self.planner.function
        )
        self.relay = Relay(self, "Relay", runtime=runtime, tables=tables, lanes=lanes)
        self.callbacks = Callbacks(
            self,
            "Callbacks",
            runtime=runtime,
            tables=tables,
            lanes=lanes,
            root_secret=storage.webhook_root_secret,
        )
        self.executor = Executor(
            self,
            "Executor",
            runtime=runtime,
            tables=tables,
            lanes=lanes,
            targets=targets,
            callbacks_url=self.callbacks.url,
        )
        self.undeliverable = Undeliverable(
            self, "Undeliverable", runtime=runtime, tables=tables, lanes=lanes
        )
        self.api = ApiFunction(self, "Api", runtime=runtime, tables=tables, targets=targets)
        self.replanner = Replanner(self, "Replanner", runtime=runtime, tables=tables)
        self.alarms = Alarms(self, "Alarms", environment=environment)
        self._name_functions()
        self._accept_findings()

    def _layer(self, environment: Environment, layer: Path) -> lambda_.LayerVersion:
        return lambda_.LayerVersion(
            self,
            "Layer",
            layer_version_name=f"{environment.prefix}-core",
            description="The puntual library and what it needs",
            code=lambda_.Code.from_asset(str(layer)),
            compatible_runtimes=[lambda_.Runtime.PYTHON_3_13],
        )

    def _name_functions(self) -> None:
        for name, function in {
            "Api": self.api.function,
            "Callbacks": self.callbacks.function,
            "Executor": self.executor.function,
            "Planner": self.planner.function,
            "Relay": self.relay.function,
            "Replanner": self.replanner.function,
            "Ticker": self.ticker.function,
            "Undeliverable": self.undeliverable.function,
        }.items():
            cdk.CfnOutput(self, f"{name}Function", value=function.function_name)
        cdk.CfnOutput(self, "CallbacksUrl", value=self.callbacks.url)
        cdk.CfnOutput(self, "AlarmsTopicArn", value=self.alarms.topic.topic_arn)
        cdk.CfnOutput(self, "RelayFailuresQueueUrl", value=self.relay.failures.queue_url)

    def _accept_findings(self) -> None:
        acknowledge(
            self,
            {
                "AwsSolutions-IAM5[Resource::*]": "dynamodb:ListStreams knows no resource.",
                "AwsSolutions-L1": (
                    "3.13 is the runtime that the lock files, the tests and the emulator share."
                ),
            },
        )


def _settings(environment: Environment, storage: StorageStack) -> Mapping[str, str]:
    """What all functions read at start; the library's Settings is the other end of it."""
    return {
        **storage.tables.names(),
        **storage.lanes.urls(),
        "ENVIRONMENT": environment.name,
        "WEBHOOK_ROOT_SECRET_ARN": storage.webhook_root_secret.secret_arn,
        "SHARD_COUNT": str(environment.shard_count),
        "HORIZON_SECONDS": str(environment.horizon_seconds),
        "RETENTION_DAYS": str(environment.retention_days),
        "DELIVERY_TIMEOUT_MAX_SECONDS": str(environment.delivery_timeout_max_seconds),
        "ALLOW_PRIVATE_TARGETS": "true" if environment.allow_private_targets else "false",
        # Zone rules come from the pinned tzdata package, never from the system.
        "PYTHONTZPATH": "",
        "POWERTOOLS_LOG_LEVEL": "INFO",
        # Environments of one account keep their metrics apart.
        "POWERTOOLS_METRICS_NAMESPACE": environment.prefix,
    }
