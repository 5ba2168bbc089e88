"""The rate at which a tenant's missed fires are made up for: what recoveries and backlogs draw."""

from dataclasses import dataclass
from datetime import datetime

from puntual.application.draw_tokens import DrawTokens
from puntual.application.known_tenants import KnownTenants
from puntual.application.ports import Clock
from puntual.domain.budget import CATCH_UPS, BudgetKey, time_of
from puntual.domain.instant import MINUTE
from puntual.domain.recovery import Granted
from puntual.domain.tenant import TenantId, quotas_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUpTokens:
    known: KnownTenants
    draw: DrawTokens
    clock: Clock

    def per_minute(self, tenant: TenantId) -> int:
        """Give the rate as it was registered a moment ago. Raises `Unavailable`."""
        return quotas_of(self.known.of(tenant)).catch_ups_per_minute

    def take_up_to(self, tenant: TenantId, wanted: int, *, per_minute: int) -> Granted:
        """Take what falls due within a minute, perhaps none."""
        through = self.clock.now() + MINUTE
        count, first_at = self.draw.take_up_to(_key_of(tenant), per_minute, wanted, through=through)
        return Granted(count=count, first_at=first_at, every=time_of(1, per_minute))

    def reserve(self, tenant: TenantId) -> datetime:
        """Take one, of the future too; gives when it may be used."""
        return self.draw.reserve(_key_of(tenant), self.per_minute(tenant), 1)


def _key_of(tenant: TenantId) -> BudgetKey:
    return BudgetKey(tenant=tenant, name=CATCH_UPS)
