"""The tenants in memory."""

from dataclasses import replace
from datetime import datetime, timedelta

from puntual.application.ports import TenantPage
from puntual.domain.tenant import ListedTenant, Tenant, TenantId


class InMemoryTenants:
    def __init__(self) -> None:
        self.rows: dict[TenantId, Tenant] = {}
        self.forecast_turns: dict[TenantId, datetime] = {}

    def get(self, tenant: TenantId) -> Tenant | None:
        return self.rows.get(tenant)

    def register(self, tenant: Tenant) -> Tenant:
        known = self.rows.get(tenant.tenant)
        registered = replace(
            tenant,
            schedules=known.schedules if known else 0,
            key_generation=known.key_generation if known else 1,
        )
        self.rows[tenant.tenant] = registered
        return registered

    def listed(self, *, after: TenantId | None, limit: int) -> TenantPage:
        found = [
            ListedTenant(tenant=tenant.tenant, quotas=tenant.quotas)
            for tenant in sorted(self.rows.values(), key=lambda tenant: tenant.tenant)
            if after is None or tenant.tenant > after
        ]
        more = len(found) > limit
        return TenantPage(
            tenants=tuple(found[:limit]), after=found[limit - 1].tenant if more else None
        )

    def raise_key_generation(self, tenant: TenantId, *, seen: int) -> Tenant | None:
        row = self.rows.get(tenant)
        if row is not None and row.key_generation == seen:
            self.rows[tenant] = replace(row, key_generation=seen + 1)
        return self.rows.get(tenant)

    def take_forecast_turn(self, tenant: TenantId, *, now: datetime, every: timedelta) -> bool:
        taken_at = self.forecast_turns.get(tenant)
        if taken_at is not None and taken_at > now - every:
            return False
        self.forecast_turns[tenant] = now
        return True

    def count(self, tenant: TenantId, change: int) -> None:
        """Count schedules; a part of the transactions that create and cancel them."""
        row = self.rows[tenant]
        assert row.schedules + change >= 0
        self.rows[tenant] = replace(row, schedules=row.schedules + change)
