"""Replanner: called by `make replan` after new zone data were deployed."""

from constructs import Construct

from infra.blocks import grants
from infra.blocks.function import PuntualFunction, Runtime
from infra.blocks.tables import Tables

# Long enough for a slice to be worth a call, short enough for whoever waits for its answer: idle
# connections are cut by what lies between after some minutes.
SLICE_SECONDS = 120


class Replanner(Construct):
    def __init__(
        self, scope: Construct, construct_id: str, *, runtime: Runtime, tables: Tables
    ) -> None:
        super().__init__(scope, construct_id)
        self.function = PuntualFunction(
            self,
            "Replanner",
            name="replanner",
            runtime=runtime,
            timeout_seconds=SLICE_SECONDS,
            # One whole vCPU; comparing fires is CPU-bound.
            memory_mb=1769,
            permissions=[
                grants.on_table(tables.zone_releases, "GetItem", "PutItem"),
                grants.on_table(tables.schedules, "Scan"),
                *grants.write_schedules(tables),
            ],
        ).function
