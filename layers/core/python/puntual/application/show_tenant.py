"""Show a tenant's registration and usage."""

from dataclasses import dataclass

from puntual.application.ports import Tenants
from puntual.domain.tenant import Tenant, TenantId, UnknownTenant


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowTenant:
    tenants: Tenants

    def __call__(self, tenant: TenantId) -> Tenant:
        """Read it; raises `UnknownTenant`."""
        registered = self.tenants.get(tenant)
        if registered is None:
            raise UnknownTenant(tenant)
        return registered
