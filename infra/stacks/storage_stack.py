"""What outlives a deployment: tables, lanes and the secret behind the webhooks' keys."""

import aws_cdk as cdk
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from infra.blocks.acknowledgements import acknowledge
from infra.blocks.lanes import Lanes
from infra.blocks.tables import Tables
from infra.environments import Environment

SECRET_LENGTH = 64
"""Letters and digits: 380 bits, of which keys take 256."""


class StorageStack(cdk.Stack):
    def __init__(self, scope: Construct, construct_id: str, *, environment: Environment) -> None:
        super().__init__(
            scope,
            construct_id,
            description="Puntual: tables, lanes, secret",
            termination_protection=not environment.disposable,
        )
        self.tables = Tables(self, "Tables", environment=environment)
        self.lanes = Lanes(self, "Lanes", environment=environment)
        self.webhook_root_secret = self._root_secret(environment)
        settings = {
            **self.tables.names(),
            **self.lanes.urls(),
            **self.lanes.dead_letter_urls(),
            "UNREADABLE_QUEUE_URL": self.lanes.unreadable.queue_url,
        }
        for name, value in settings.items():
            cdk.CfnOutput(self, _output_id(name), value=value)

    def _root_secret(self, environment: Environment) -> secretsmanager.Secret:
        secret = secretsmanager.Secret(
            self,
            "WebhookRootSecret",
            secret_name=f"{environment.prefix}-webhook-root",
            description="All tenants' webhook keys are derived from it; never change it",
            generate_secret_string=secretsmanager.SecretStringGenerator(
                password_length=SECRET_LENGTH, exclude_punctuation=True
            ),
            removal_policy=(
                cdk.RemovalPolicy.DESTROY if environment.disposable else cdk.RemovalPolicy.RETAIN
            ),
        )
        acknowledge(
            secret,
            {
                "AwsSolutions-SMG4": (
                    "Another root would change every tenant's keys at once; tenants rotate their"
                    " own keys, two of which are valid at a time."
                )
            },
        )
        return secret


def _output_id(setting: str) -> str:
    """SCHEDULES_TABLE → SchedulesTable."""
    return "".join(word.capitalize() for word in setting.split("_"))
