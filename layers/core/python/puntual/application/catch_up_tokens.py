"""The rate at which a tenant's missed fires are made up for: what recoveries and backlogs draw."""

from dataclasses import dataclass
from datetime import datetime

from puntual.application.draw_tokens import DrawTokens
from puntual.application.ports import Clock, Tenants
from puntual.domain.budget import CATCH_UPS, BudgetKey
from puntual.domain.instant import MINUTE
from puntual.domain.tenant import DEFAULT_QUOTAS, TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUpTokens:
    tenants: Tenants
    draw: DrawTokens
    clock: Clock

    def per_minute(self, tenant: TenantId) -> int:
        registered = self.tenants.get(tenant)
        quotas = DEFAULT_QUOTAS if registered is None else registered.quotas
        return quotas.catch_ups_per_minute

    def take_up_to(self, tenant: TenantId, wanted: int, *, per_minute: int) -> int:
        """Take what falls due within a minute; gives how many, perhaps none."""
        through = self.clock.now() + MINUTE
        return self.draw.take_up_to(_key_of(tenant), per_minute, wanted, through=through)

    def reserve(self, tenant: TenantId) -> datetime:
        """Take one, of the future too; gives when it may be used."""
        return self.draw.reserve(_key_of(tenant), self.per_minute(tenant), 1)


def _key_of(tenant: TenantId) -> BudgetKey:
    return BudgetKey(tenant=tenant, name=CATCH_UPS)
