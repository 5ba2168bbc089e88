"""Read what a tenant's gates hold back: rates, concurrency, and targets that are left alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from puntual.application.ports import Breakers, Budgets, Clock, Shares
from puntual.domain.budget import CATCH_UPS, FIRES, RETRIES, BudgetKey, waiting_in
from puntual.domain.share import RUNNING, ShareKey
from puntual.domain.tenant import Tenant


@dataclass(frozen=True, slots=True, kw_only=True)
class RateUsage:
    """A rate, the tokens taken of it that fall due later, and how many had to wait, since ever.

    `name` is the budget's; a target's is `target#` and its origin or ARN.
    """

    name: str
    per_minute: int
    waiting: int
    held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningUsage:
    """A limit on concurrency, what is taken of it, and how often something had to wait for it."""

    name: str
    limit: int
    running: int
    held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBreaker:
    """A target that is left alone until then, and how often in a row it was found to fail."""

    target: str
    until: datetime
    opened: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GateUsage:
    rates: tuple[RateUsage, ...]
    running: tuple[RunningUsage, ...]
    breakers: tuple[OpenBreaker, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadGates:
    """A read for each limit that the registration names, and one for the breakers."""

    budgets: Budgets
    shares: Shares
    breakers: Breakers
    clock: Clock

    def __call__(self, tenant: Tenant) -> GateUsage:
        """Give it by the registration as it is now. Raises `Unavailable`."""
        found = self.breakers.read(tenant.tenant).by_target
        return GateUsage(
            rates=tuple(self._rates(tenant)),
            running=tuple(self._running(tenant)),
            breakers=tuple(
                OpenBreaker(target=target, until=each.until, opened=each.opened)
                for target, each in sorted(found.items())
            ),
        )

    def _rates(self, tenant: Tenant) -> Iterator[RateUsage]:
        quotas, now = tenant.quotas, self.clock.now()
        limits = [
            (FIRES, quotas.fires_per_minute_max),
            (RETRIES, quotas.retries_per_minute),
            (CATCH_UPS, quotas.catch_ups_per_minute),
            *((limit.name, limit.per_minute) for limit in tenant.target_limits),
        ]
        for name, per_minute in limits:
            if per_minute is None:
                continue
            budget = self.budgets.read(BudgetKey(tenant=tenant.tenant, name=name))
            waiting = waiting_in(budget, per_minute, now)
            yield RateUsage(name=name, per_minute=per_minute, waiting=waiting, held=budget.held)

    def _running(self, tenant: Tenant) -> Iterator[RunningUsage]:
        now = self.clock.now()
        limits = [
            (RUNNING, tenant.quotas.running_max),
            *((limit.name, limit.running) for limit in tenant.target_limits),
        ]
        for name, most in limits:
            if most is None:
                continue
            shares = self.shares.read(ShareKey(tenant=tenant.tenant, name=name))
            running = shares.in_use(now)
            yield RunningUsage(name=name, limit=most, running=running, held=shares.held)
