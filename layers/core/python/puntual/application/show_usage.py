"""Show what a tenant uses of its quotas."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from puntual.application.ports import Budgets, Clock, Tenants
from puntual.domain.budget import CATCH_UPS, FIRES, RETRIES, BudgetKey, waiting_in
from puntual.domain.tenant import Quotas, Tenant, TenantId, UnknownTenant


@dataclass(frozen=True, slots=True, kw_only=True)
class RateUsage:
    """`waiting` is for tokens that have not fallen due, `held` all that ever had to wait."""

    waiting: int
    held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """`rates` by their budgets' names, without those that no quota bounds: nobody counts them."""

    tenant: Tenant
    rates: Mapping[str, RateUsage]
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowUsage:
    tenants: Tenants
    budgets: Budgets
    clock: Clock

    def __call__(self, tenant: TenantId) -> Usage:
        """Read the registration and each budget; raises `UnknownTenant`."""
        registered = self.tenants.get(tenant)
        if registered is None:
            raise UnknownTenant(tenant)
        now = self.clock.now()
        rates = {}
        for name, per_minute in _rates_of(registered.quotas).items():
            if per_minute is not None:
                budget = self.budgets.read(BudgetKey(tenant=tenant, name=name))
                waiting = waiting_in(budget, per_minute, now)
                rates[name] = RateUsage(waiting=waiting, held=budget.held)
        return Usage(tenant=registered, rates=rates, as_of=now)


def _rates_of(quotas: Quotas) -> Mapping[str, int | None]:
    return {
        FIRES: quotas.fires_per_minute_max,
        RETRIES: quotas.retries_per_minute,
        CATCH_UPS: quotas.catch_ups_per_minute,
    }
