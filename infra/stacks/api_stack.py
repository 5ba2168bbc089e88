"""The door: the REST API in front of the api function."""

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.blocks.rest_api import RestApi
from infra.environments import Environment


class ApiStack(cdk.Stack):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        handler: lambda_.Function,
    ) -> None:
        super().__init__(scope, construct_id, description="Puntual: REST API")
        self.rest_api = RestApi(self, "RestApi", environment=environment, handler=handler)
        cdk.CfnOutput(self, "ApiUrl", value=self.rest_api.api.url)
        cdk.CfnOutput(self, "ApiId", value=self.rest_api.api.rest_api_id)
        cdk.CfnOutput(self, "ApiStage", value=self.rest_api.api.deployment_stage.stage_name)
