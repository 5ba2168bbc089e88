"""Callbacks: the one door that is open to anyone, for whoever holds the token of an attempt.

An API of its own, so that nothing of it can weaken the other, where IAM judges every call: its own
address, throttle, log and function, which may do no more than a callback needs.
"""

import json
from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_logs as logs
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from infra.blocks import grants
from infra.blocks.acknowledgements import acknowledge
from infra.blocks.function import PuntualFunction, Runtime, log_retention
from infra.blocks.lanes import Lanes
from infra.blocks.tables import Tables
from infra.environments import Environment

ACTIONS = ("heartbeat", "complete", "fail")
PATH = "/v1/callbacks/{token}"
TIMEOUT_SECONDS = 20

# Neither the path nor the address of the request: both hold the token. The route names neither.
ACCESS_LOG_FIELDS: Mapping[str, str] = {
    "requestId": "$context.requestId",
    "requestTime": "$context.requestTimeEpoch",
    "sourceIp": "$context.identity.sourceIp",
    "route": "$context.routeKey",
    "status": "$context.status",
    "latencyMs": "$context.responseLatency",
    "integrationStatus": "$context.integration.status",
    "errorType": "$context.error.responseType",
}


class Callbacks(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        runtime: Runtime,
        tables: Tables,
        lanes: Lanes,
        root_secret: secretsmanager.Secret,
    ) -> None:
        super().__init__(scope, construct_id)
        self.function = PuntualFunction(
            self,
            "Callbacks",
            name="callbacks",
            runtime=runtime,
            timeout_seconds=TIMEOUT_SECONDS,
            memory_mb=512,
            permissions=[
                grants.on_table(tables.occurrences, "GetItem", "PutItem", "UpdateItem"),
                grants.on_table(tables.versions, "GetItem"),
                # What limits a tenant, the room of what is over, the place of a retry.
                grants.draw_on_budgets(tables),
                # The message of a retry.
                grants.send(lanes.queues),
                grants.read_secret(root_secret),
            ],
        ).function
        self._api = apigateway.HttpApi(
            self,
            "Api",
            api_name=f"{runtime.environment.prefix}-callbacks",
            description="Targets call back here, with the token of their attempt",
            create_default_stage=False,
        )
        self._open_stage(runtime.environment)
        integration = integrations.HttpLambdaIntegration("Integration", self.function)
        for action in ACTIONS:
            self._api.add_routes(
                path=f"{PATH}/{action}",
                methods=[apigateway.HttpMethod.POST],
                integration=integration,
            )
        acknowledge(
            self,
            {
                "AwsSolutions-APIG4": (
                    "Receivers of webhooks cannot sign with IAM; the token in the path, which only"
                    " we can make, names the one attempt that its holder may speak for."
                )
            },
        )

    @property
    def url(self) -> str:
        """The address before `/v1`, also where an emulator stands in for the cloud."""
        endpoint: str | None = self.node.try_get_context("endpoint")
        if endpoint is None:
            return self._api.api_endpoint
        return f"{endpoint}/_aws/execute-api/{self._api.api_id}"

    def _open_stage(self, environment: Environment) -> None:
        access_log = logs.LogGroup(
            self,
            "AccessLog",
            log_group_name=f"/aws/apigateway/{environment.prefix}-callbacks",
            retention=log_retention(environment),
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        # Not the construct for stages, whose access log settings Python cannot give it plainly.
        apigateway.CfnStage(
            self,
            "Stage",
            api_id=self._api.api_id,
            stage_name="$default",
            auto_deploy=True,
            default_route_settings=apigateway.CfnStage.RouteSettingsProperty(
                throttling_rate_limit=environment.callbacks_per_second,
                throttling_burst_limit=environment.callbacks_burst,
            ),
            access_log_settings=apigateway.CfnStage.AccessLogSettingsProperty(
                destination_arn=access_log.log_group_arn,
                format=json.dumps(ACCESS_LOG_FIELDS),
            ),
        )
