"""Tenants whose readings are counted, and that can be out of reach."""

from puntual.domain.errors import Unavailable
from puntual.domain.tenant import Tenant, TenantId
from tests.fakes.in_memory_tenants import InMemoryTenants


class CountedTenants(InMemoryTenants):
    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.is_out_of_reach = False

    def get(self, tenant: TenantId) -> Tenant | None:
        self.reads += 1
        if self.is_out_of_reach:
            raise Unavailable("read a tenant")
        return super().get(tenant)
