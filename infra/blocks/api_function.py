"""The function behind the API: the control plane."""

from constructs import Construct

from infra.blocks import grants
from infra.blocks.function import PuntualFunction, Runtime
from infra.blocks.tables import BY_ITEM, BY_SPREAD, BY_TENANT, Tables
from infra.blocks.targets import Targets


class ApiFunction(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        runtime: Runtime,
        tables: Tables,
        targets: Targets,
    ) -> None:
        super().__init__(scope, construct_id)
        self.function = PuntualFunction(
            self,
            "Api",
            name="api",
            runtime=runtime,
            # API Gateway waits no longer than 29 seconds.
            timeout_seconds=29,
            # A whole processor: a forecast works for seconds, and may take five.
            memory_mb=1769,
            permissions=[
                *grants.write_schedules(tables),
                grants.on_index(tables.schedules, BY_TENANT, "Query"),
                grants.on_index(tables.schedules, BY_SPREAD, "Query"),
                grants.on_table(tables.tenants, "GetItem", "UpdateItem"),
                grants.on_index(tables.tenants, BY_ITEM, "Query"),
                grants.on_table(tables.occurrences, "Query"),
                grants.on_table(
                    tables.idempotency, "GetItem", "PutItem", "UpdateItem", "DeleteItem"
                ),
                # A target is tried by the very permissions that will deliver to it.
                *targets.permissions,
            ],
        ).function
        targets.acknowledge(self)
