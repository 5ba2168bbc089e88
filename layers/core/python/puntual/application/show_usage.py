"""Show what a tenant uses of its quotas and limits, what waits for them, and who is left alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from puntual.application.ports import Breakers, Budgets, Clock, Shares, Tenants
from puntual.domain.breaker import OpenBreaker, open_breakers
from puntual.domain.budget import CATCH_UPS, FIRES, RETRIES, BudgetKey, waiting_in
from puntual.domain.share import RUNNING, ShareKey
from puntual.domain.tenant import Tenant, TenantId, UnknownTenant


@dataclass(frozen=True, slots=True, kw_only=True)
class RateUsage:
    """`waiting` is for tokens that have not fallen due, `held` all that ever had to wait."""

    waiting: int
    held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningUsage:
    """What is taken of a limit on concurrency, and how often something had to wait for it."""

    in_use: int
    max: int
    held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetUsage:
    """What is used of a target's limits; None where it has no such limit."""

    target: str
    rate: RateUsage | None
    running: RunningUsage | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """`rates` by their budgets' names, without those that no quota bounds: nobody counts them."""

    tenant: Tenant
    rates: Mapping[str, RateUsage]
    running: RunningUsage | None
    targets: tuple[TargetUsage, ...]
    breakers: tuple[OpenBreaker, ...]
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowUsage:
    """A read for each limit that the registration names, and one for the breakers."""

    tenants: Tenants
    budgets: Budgets
    shares: Shares
    breakers: Breakers
    clock: Clock

    def __call__(self, tenant: TenantId) -> Usage:
        """Read it by the registration as it is now; raises `UnknownTenant`."""
        registered = self.tenants.get(tenant)
        if registered is None:
            raise UnknownTenant(tenant)
        now = self.clock.now()
        return Usage(
            tenant=registered,
            rates=dict(self._rates(registered, now)),
            running=self._running(registered, RUNNING, registered.quotas.running_max, now),
            targets=tuple(
                TargetUsage(
                    target=limit.target,
                    rate=self._rate(registered, limit.name, limit.per_minute, now),
                    running=self._running(registered, limit.name, limit.running, now),
                )
                for limit in registered.target_limits
            ),
            breakers=open_breakers(self.breakers.read(tenant)),
            as_of=now,
        )

    def _rates(self, tenant: Tenant, now: datetime) -> Iterator[tuple[str, RateUsage]]:
        quotas = tenant.quotas
        for name, per_minute in (
            (FIRES, quotas.fires_per_minute_max),
            (RETRIES, quotas.retries_per_minute),
            (CATCH_UPS, quotas.catch_ups_per_minute),
        ):
            usage = self._rate(tenant, name, per_minute, now)
            if usage is not None:
                yield name, usage

    def _rate(
        self, tenant: Tenant, name: str, per_minute: int | None, now: datetime
    ) -> RateUsage | None:
        if per_minute is None:
            return None
        budget = self.budgets.read(BudgetKey(tenant=tenant.tenant, name=name))
        return RateUsage(waiting=waiting_in(budget, per_minute, now), held=budget.held)

    def _running(
        self, tenant: Tenant, name: str, most: int | None, now: datetime
    ) -> RunningUsage | None:
        if most is None:
            return None
        shares = self.shares.read(ShareKey(tenant=tenant.tenant, name=name))
        return RunningUsage(in_use=shares.in_use(now), max=most, held=shares.held)
