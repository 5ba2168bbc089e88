"""Forecast the fires of a tenant's schedules, minute by minute."""

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta

from puntual.application.ports import Clock, Schedules, Tenants
from puntual.domain.errors import Unavailable
from puntual.domain.forecast import Forecast, RulePage, forecast_of
from puntual.domain.tenant import TenantId, UnknownTenant

SCHEDULES_READ_MAX = 100_000
READING_MAX = timedelta(seconds=3.5)
"""After it comes one page more, and what is done with all of them: five seconds in all."""

FORECAST_EVERY = timedelta(seconds=5)
"""As long as one may take, so that a tenant has one at work, and no more than one processor."""


class ForecastTooSoon(Unavailable):
    """The tenant's last forecast began less than `again_after` ago."""

    def __init__(self, tenant: TenantId) -> None:
        super().__init__(f"tenant {tenant}: its last forecast began less than {FORECAST_EVERY} ago")
        self.tenant, self.again_after = tenant, FORECAST_EVERY


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastFires:
    schedules: Schedules
    tenants: Tenants
    clock: Clock

    def __call__(self, tenant: TenantId) -> Forecast:
        """Read the rules that there are, or a fair sample of them.

        Raises `UnknownTenant`, and `ForecastTooSoon` where one was asked for just before.
        """
        now = self.clock.now()
        if self.tenants.get(tenant) is None:
            raise UnknownTenant(tenant)
        if not self.tenants.take_forecast_turn(tenant, now=now, every=FORECAST_EVERY):
            raise ForecastTooSoon(tenant)
        with closing(self.schedules.active_rules(tenant)) as pages:
            return forecast_of(self._bounded(pages, now + READING_MAX), now=now)

    def _bounded(self, pages: Generator[RulePage], deadline: datetime) -> Iterator[RulePage]:
        """Stop after so many schedules or at the deadline, but never before the first page."""
        read = 0
        for page in pages:
            yield page
            read += page.schedules
            if read > SCHEDULES_READ_MAX or self.clock.now() >= deadline:
                return
