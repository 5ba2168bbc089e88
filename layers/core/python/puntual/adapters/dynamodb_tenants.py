"""The tenants in DynamoDB: partition `tenant`, sort key `item`."""

from dataclasses import dataclass

from puntual.aws import REGISTRATION, RegistrationRow, bound, unavailable_if_transient
from puntual.domain.tenant import Tenant, TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbTenants:
    table: str

    def get(self, tenant: TenantId) -> Tenant | None:
        rows = bound(RegistrationRow, self.table)
        with unavailable_if_transient("read a tenant"):
            try:
                return _tenant_of(rows.get(tenant, REGISTRATION, consistent_read=True))
            except rows.DoesNotExist:
                return None

    def register(self, tenant: Tenant) -> Tenant:
        rows = bound(RegistrationRow, self.table)
        row = rows(tenant.tenant, REGISTRATION)
        with unavailable_if_transient("register a tenant"):
            row.update(
                actions=[
                    rows.schedules_max.set(tenant.schedules_max),
                    rows.target_queues.set(list(tenant.target_queues)),
                    rows.schedules.set(rows.schedules | 0),
                ]
            )
        return _tenant_of(row)


def _tenant_of(row: RegistrationRow) -> Tenant:
    return Tenant(
        tenant=TenantId(row.tenant),
        schedules_max=int(row.schedules_max),
        schedules=int(row.schedules),
        target_queues=tuple(row.target_queues),
    )
