"""The weights of tenants, as their registrations were a moment ago."""

from dataclasses import dataclass

from puntual.application.known_tenants import KnownTenants
from puntual.domain.errors import Unavailable
from puntual.domain.tenant import TenantId, quotas_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantWeights:
    known: KnownTenants

    def __call__(self, tenant: TenantId) -> int:
        """Give a tenant's weight; the default one where its registration cannot be read."""
        try:
            registered = self.known.of(tenant)
        except Unavailable:
            # Nobody's work waits for it: a weight that is a little old does as well.
            registered = self.known.last(tenant)
        return quotas_of(registered).weight
