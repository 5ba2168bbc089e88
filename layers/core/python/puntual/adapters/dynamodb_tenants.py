"""The tenants in DynamoDB: partition `tenant`, sort key `item`."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pynamodb.exceptions import UpdateError

from puntual.application.codec import quotas_of_text, quotas_text
from puntual.application.ports import TenantPage
from puntual.aws import (
    CONDITION_FAILED,
    FORECAST_TURN,
    REGISTRATION,
    ForecastTurnRow,
    RegistrationRow,
    bound,
    unavailable_if_transient,
)
from puntual.domain.instant import text_of
from puntual.domain.tenant import ListedTenant, Quotas, Tenant, TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbTenants:
    table: str

    def get(self, tenant: TenantId) -> Tenant | None:
        rows = bound(RegistrationRow, self.table)
        with unavailable_if_transient("read a tenant"):
            try:
                return _tenant_of(rows.get(tenant, REGISTRATION, consistent_read=True))
            except rows.DoesNotExist:
                return None

    def register(self, tenant: Tenant) -> Tenant:
        rows = bound(RegistrationRow, self.table)
        row = rows(tenant.tenant, REGISTRATION)
        with unavailable_if_transient("register a tenant"):
            row.update(
                actions=[
                    rows.schedules_max.set(tenant.quotas.schedules_max),
                    rows.quotas.set(quotas_text(tenant.quotas)),
                    rows.targets.set(list(tenant.targets)),
                    rows.roles.set(list(tenant.roles)),
                    rows.principals.set(list(tenant.principals)),
                    rows.schedules.set(rows.schedules | 0),
                    rows.key_generation.set(rows.key_generation | 1),
                ]
            )
        return _tenant_of(row)

    def listed(self, *, after: TenantId | None, limit: int) -> TenantPage:
        rows = bound(RegistrationRow, self.table)
        beyond = None if after is None else rows.tenant > after
        with unavailable_if_transient("list tenants"):
            # One more than asked for tells whether there are more.
            found = list(rows.by_item.query(REGISTRATION, beyond, limit=limit + 1))
        listed = tuple(_listed(row) for row in found[:limit])
        return TenantPage(tenants=listed, after=listed[-1].tenant if len(found) > limit else None)

    def raise_key_generation(self, tenant: TenantId, *, seen: int) -> Tenant | None:
        """Raise it on condition; a repetition by the SDK meets its own write and reads it."""
        rows = bound(RegistrationRow, self.table)
        with unavailable_if_transient("raise a key generation"):
            try:
                rows(tenant, REGISTRATION).update(
                    actions=[rows.key_generation.set(seen + 1)],
                    condition=rows.key_generation == seen,
                )
            except UpdateError as error:
                if error.cause_response_code != CONDITION_FAILED:
                    raise
        return self.get(tenant)

    def take_forecast_turn(self, tenant: TenantId, *, now: datetime, every: timedelta) -> bool:
        rows = bound(ForecastTurnRow, self.table)
        is_free = rows.taken_at.does_not_exist() | (rows.taken_at <= text_of(now - every))
        with unavailable_if_transient("take a forecast turn"):
            try:
                rows(tenant, FORECAST_TURN).update(
                    actions=[rows.taken_at.set(text_of(now))], condition=is_free
                )
            except UpdateError as error:
                if error.cause_response_code != CONDITION_FAILED:
                    raise
                return False
        return True


def _listed(row: RegistrationRow) -> ListedTenant:
    return ListedTenant(tenant=TenantId(row.tenant), quotas=_quotas_of(row))


def _quotas_of(row: RegistrationRow) -> Quotas:
    return quotas_of_text(row.quotas, schedules_max=int(row.schedules_max))


def _tenant_of(row: RegistrationRow) -> Tenant:
    return Tenant(
        tenant=TenantId(row.tenant),
        quotas=_quotas_of(row),
        schedules=int(row.schedules),
        targets=tuple(row.targets),
        roles=tuple(row.roles),
        principals=tuple(row.principals),
        key_generation=int(row.key_generation),
    )
