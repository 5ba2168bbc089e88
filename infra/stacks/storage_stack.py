"""What outlives a deployment: tables and lanes."""

import aws_cdk as cdk
from constructs import Construct

from infra.blocks.lanes import Lanes
from infra.blocks.tables import Tables
from infra.environments import Environment


class StorageStack(cdk.Stack):
    def __init__(self, scope: Construct, construct_id: str, *, environment: Environment) -> None:
        super().__init__(
            scope,
            construct_id,
            description="Puntual: tables and lanes",
            termination_protection=not environment.disposable,
        )
        self.tables = Tables(self, "Tables", environment=environment)
        self.lanes = Lanes(self, "Lanes", environment=environment)
        settings = {
            **self.tables.names(),
            **self.lanes.urls(),
            **self.lanes.dead_letter_urls(),
            "UNREADABLE_QUEUE_URL": self.lanes.unreadable.queue_url,
        }
        for name, value in settings.items():
            cdk.CfnOutput(self, _output_id(name), value=value)


def _output_id(setting: str) -> str:
    """SCHEDULES_TABLE → SchedulesTable."""
    return "".join(word.capitalize() for word in setting.split("_"))
