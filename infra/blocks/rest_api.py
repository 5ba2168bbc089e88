"""The REST API: IAM on every method, and problem details for what the gateway itself refuses."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.blocks.acknowledgements import acknowledge
from infra.blocks.function import log_retention
from infra.environments import Environment

PROBLEM_JSON = "application/problem+json"

# By their names, since a stage's settings know no ANY.
ADMIN_METHODS = ("GET", "PUT")
ADMIN_RATE_PER_SECOND = 20
ADMIN_BURST = 40
"""Few call it and seldom; a loop of theirs takes nothing from what tenants may call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A kind of error that API Gateway makes by itself; `status` None keeps the gateway's."""

    type: apigateway.ResponseType
    title: str
    status: int | None = None


REFUSALS: Sequence[Refusal] = [
    Refusal(type=apigateway.ResponseType.DEFAULT_4_XX, title="Request refused"),
    Refusal(type=apigateway.ResponseType.DEFAULT_5_XX, title="Service failure"),
    Refusal(type=apigateway.ResponseType.ACCESS_DENIED, title="Access denied", status=403),
    Refusal(type=apigateway.ResponseType.BAD_REQUEST_BODY, title="Bad request body", status=400),
    Refusal(
        type=apigateway.ResponseType.BAD_REQUEST_PARAMETERS,
        title="Bad request parameters",
        status=400,
    ),
    Refusal(type=apigateway.ResponseType.EXPIRED_TOKEN, title="Expired token", status=403),
    Refusal(type=apigateway.ResponseType.INTEGRATION_FAILURE, title="Service failure", status=503),
    Refusal(
        type=apigateway.ResponseType.INTEGRATION_TIMEOUT, title="Service timed out", status=504
    ),
    Refusal(type=apigateway.ResponseType.INVALID_SIGNATURE, title="Invalid signature", status=403),
    Refusal(
        type=apigateway.ResponseType.MISSING_AUTHENTICATION_TOKEN,
        title="Missing authentication",
        status=403,
    ),
    Refusal(type=apigateway.ResponseType.QUOTA_EXCEEDED, title="Quota exceeded", status=429),
    Refusal(type=apigateway.ResponseType.REQUEST_TOO_LARGE, title="Request too large", status=413),
    Refusal(type=apigateway.ResponseType.RESOURCE_NOT_FOUND, title="Not found", status=404),
    Refusal(type=apigateway.ResponseType.THROTTLED, title="Too many requests", status=429),
    Refusal(type=apigateway.ResponseType.UNAUTHORIZED, title="Unauthorized", status=401),
    Refusal(
        type=apigateway.ResponseType.UNSUPPORTED_MEDIA_TYPE,
        title="Unsupported media type",
        status=415,
    ),
]


class RestApi(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        handler: lambda_.Function,
    ) -> None:
        super().__init__(scope, construct_id)
        self.api = apigateway.RestApi(
            self,
            "Api",
            rest_api_name=environment.prefix,
            description="Puntual's control plane",
            endpoint_types=[apigateway.EndpointType.REGIONAL],
            # Access logs need the account's role for CloudWatch; it is the account's, not
            # ours, so it stays when this stack goes.
            cloud_watch_role=True,
            cloud_watch_role_removal_policy=(
                cdk.RemovalPolicy.DESTROY if environment.disposable else cdk.RemovalPolicy.RETAIN
            ),
            deploy_options=self._stage(environment),
        )
        v1 = self.api.root.add_resource("v1")
        self._let_in(v1, "ANY", handler=handler)
        self._let_in(v1.add_resource("admin"), *ADMIN_METHODS, handler=handler)
        for refusal in REFUSALS:
            self._answer_with_problem(refusal)
        self._accept_findings()

    @staticmethod
    def _let_in(root: apigateway.Resource, *methods: str, handler: lambda_.Function) -> None:
        """Pass whoever signed and may, by IAM, what lies below a path on to the function."""
        below = root.add_resource("{proxy+}")
        for method in methods:
            below.add_method(
                method,
                apigateway.LambdaIntegration(handler, allow_test_invoke=False),
                authorization_type=apigateway.AuthorizationType.IAM,
            )

    def _stage(self, environment: Environment) -> apigateway.StageOptions:
        access_log = logs.LogGroup(
            self,
            "AccessLog",
            log_group_name=f"/aws/apigateway/{environment.prefix}",
            retention=log_retention(environment),
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        return apigateway.StageOptions(
            stage_name=environment.name,
            throttling_rate_limit=environment.api_rate_per_second,
            throttling_burst_limit=environment.api_burst,
            method_options={
                f"/v1/admin/{{proxy+}}/{method}": apigateway.MethodDeploymentOptions(
                    throttling_rate_limit=ADMIN_RATE_PER_SECOND,
                    throttling_burst_limit=ADMIN_BURST,
                    logging_level=apigateway.MethodLoggingLevel.ERROR,
                    metrics_enabled=True,
                )
                for method in ADMIN_METHODS
            },
            access_log_destination=apigateway.LogGroupLogDestination(access_log),
            access_log_format=apigateway.AccessLogFormat.custom(json.dumps(ACCESS_LOG_FIELDS)),
            logging_level=apigateway.MethodLoggingLevel.ERROR,
            metrics_enabled=True,
        )

    def _answer_with_problem(self, refusal: Refusal) -> None:
        self.api.add_gateway_response(
            refusal.type.response_type,
            type=refusal.type,
            status_code=str(refusal.status) if refusal.status else None,
            # The gateway picks a template by what the caller accepts and falls back to JSON;
            # the header says what the body is either way.
            response_headers={"Content-Type": f"'{PROBLEM_JSON}'"},
            templates={"application/json": _problem(refusal)},
        )

    def _accept_findings(self) -> None:
        acknowledge(
            self,
            {
                "AwsSolutions-APIG2": (
                    "Requests are validated by the handler, with answers in problem details"
                    " that name each field; the gateway's validator knows neither."
                ),
                "AwsSolutions-APIG3": (
                    "Every method asks for a SigV4 signature; a web ACL is the account's choice."
                ),
                "AwsSolutions-COG4": "Callers are machines with IAM identities, not Cognito users.",
                "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/"
                "AmazonAPIGatewayPushToCloudWatchLogs]": (
                    "API Gateway's own policy for the account-wide log role."
                ),
            },
        )


ACCESS_LOG_FIELDS: Mapping[str, str] = {
    "requestId": "$context.requestId",
    "requestTime": "$context.requestTimeEpoch",
    "caller": "$context.identity.userArn",
    "method": "$context.httpMethod",
    "path": "$context.path",
    "status": "$context.status",
    "latencyMs": "$context.responseLatency",
    "integrationStatus": "$context.integration.status",
    "errorType": "$context.error.responseType",
}


def _problem(refusal: Refusal) -> str:
    """RFC 9457; the status stays out where only the gateway knows it."""
    status = f'"status":{refusal.status},' if refusal.status else ""
    # messageString carries its own quotes.
    return (
        f'{{"type":"about:blank","title":{json.dumps(refusal.title)},{status}'
        '"detail":$context.error.messageString,"instance":"urn:request:$context.requestId"}'
    )
