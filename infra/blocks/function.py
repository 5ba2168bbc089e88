"""A function of ours: its own folder as code, the shared layer, its own role and log group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.blocks.grants import write_logs
from infra.environments import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What all functions of an environment share."""

    environment: Environment
    root: Path
    layer: lambda_.LayerVersion
    settings: Mapping[str, str]


class PuntualFunction(Construct):
    """`functions/<name>/handler.py`, allowed what `permissions` says and to write its log."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        runtime: Runtime,
        permissions: Sequence[iam.PolicyStatement],
        timeout_seconds: int,
        memory_mb: int,
        settings: Mapping[str, str] | None = None,
        hops_forever: bool = False,
    ) -> None:
        """`hops_forever`: the function sends messages that come back to it, by whichever way."""
        super().__init__(scope, construct_id)
        full_name = f"{runtime.environment.prefix}-{name}"
        log_group = self._log_group(full_name, runtime.environment)
        role = self._role(full_name, [*permissions, write_logs(log_group)])
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=full_name,
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=_architecture(runtime.environment),
            code=_code(runtime.root, name),
            handler=f"functions.{name}.handler.handler",
            layers=[runtime.layer],
            # What CDK's helpers would grant on top is dropped: the list above is all there is.
            role=role.without_policy_updates(),
            timeout=cdk.Duration.seconds(timeout_seconds),
            memory_size=memory_mb,
            log_group=log_group,
            # Platform lines (START, END, REPORT) for every call are what logs mostly cost.
            logging_format=lambda_.LoggingFormat.JSON,
            application_log_level_v2=lambda_.ApplicationLogLevel.INFO,
            system_log_level_v2=lambda_.SystemLogLevel.WARN,
            # Parking is a loop on purpose: Lambda would cut it after 16 hops, taking it for a
            # mistake, and drop the message.
            recursive_loop=lambda_.RecursiveLoop.ALLOW if hops_forever else None,
            environment={
                **runtime.settings,
                "POWERTOOLS_SERVICE_NAME": name,
                **(settings or {}),
            },
        )

    def _log_group(self, full_name: str, environment: Environment) -> logs.LogGroup:
        return logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/aws/lambda/{full_name}",
            retention=log_retention(environment),
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )

    def _role(self, full_name: str, permissions: Sequence[iam.PolicyStatement]) -> iam.Role:
        # Inline, so that role and permissions are one resource: a function never starts, nor an
        # event source polls, before its permissions are there.
        return iam.Role(
            self,
            "Role",
            role_name=None,
            description=f"What {full_name} may do",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            inline_policies={"permissions": iam.PolicyDocument(statements=list(permissions))},
        )


def log_retention(environment: Environment) -> logs.RetentionDays:
    match environment.log_retention_days:
        case 1:
            return logs.RetentionDays.ONE_DAY
        case 14:
            return logs.RetentionDays.TWO_WEEKS
        case 30:
            return logs.RetentionDays.ONE_MONTH
        case 90:
            return logs.RetentionDays.THREE_MONTHS


def _architecture(environment: Environment) -> lambda_.Architecture:
    match environment.architecture:
        case "arm64":
            return lambda_.Architecture.ARM_64
        case "x86_64":
            return lambda_.Architecture.X86_64


def _code(root: Path, name: str) -> lambda_.Code:
    # The repository with everything excluded but the function's own folder: the import path is
    # then the same in Lambda as in the tests.
    return lambda_.Code.from_asset(
        str(root),
        ignore_mode=cdk.IgnoreMode.GIT,
        exclude=[
            "/*",
            "!/functions/",
            "/functions/*",
            "!/functions/__init__.py",
            f"!/functions/{name}/",
            "__pycache__",
        ],
    )
