"""Create a schedule: head, version 1, first cursor and quota in one transaction, then P1."""

from dataclasses import dataclass, replace
from typing import assert_never

from puntual.application.announced import Announced
from puntual.application.ports import (
    AlreadyExists,
    Clock,
    Created,
    IdSource,
    QuotaReached,
    Schedules,
    Tenants,
    TenantUnknown,
)
from puntual.application.show_schedule import ShownSchedule
from puntual.domain.agenda import first_cursor
from puntual.domain.definition import Definition, Limits, version_of
from puntual.domain.instant import MILLISECOND
from puntual.domain.request import IdempotencyKeyReused, Request
from puntual.domain.schedule import (
    DuplicateSchedule,
    ScheduleKey,
    ScheduleVersion,
    UnknownSchedule,
    head_of,
)
from puntual.domain.shard import CLOSE_AFTER
from puntual.domain.tenant import ScheduleId, ScheduleQuotaReached, Tenant, TenantId, UnknownTenant


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSchedule:
    schedules: Schedules
    tenants: Tenants
    announced: Announced
    clock: Clock
    ids: IdSource
    limits: Limits

    def __call__(
        self,
        tenant: TenantId,
        definition: Definition,
        *,
        schedule: ScheduleId | None,
        author: str,
        request: Request | None = None,
    ) -> ShownSchedule:
        """Create, or find what this very request created before it was cut off.

        Raises `UnknownTenant`, `DuplicateSchedule`, `IdempotencyKeyReused`,
        `ScheduleQuotaReached`, `Rejected`.
        """
        registered = self.tenants.get(tenant)
        if registered is None:
            raise UnknownTenant(tenant)
        key = ScheduleKey(tenant=tenant, schedule=schedule or self._new_id(tenant, request))
        version = self._repeated(key, request) if request else None
        if version is None:
            version = version_of(
                definition,
                key=key,
                tenant=registered,
                limits=self.limits,
                effective_from=self.clock.now(),
                author=author,
                request=request.fingerprint if request else "",
            )
            version = self._created(version, registered, request)
        self.plan_first(version)
        return _as_created(version)

    def created(self, key: ScheduleKey) -> ShownSchedule:
        """Give again what the create of a schedule answered; raises `UnknownSchedule`."""
        version = self.schedules.version(key, 1)
        if version is None:
            raise UnknownSchedule(key)
        return _as_created(version)

    def _new_id(self, tenant: TenantId, request: Request | None) -> ScheduleId:
        return request.schedule_id(tenant) if request else ScheduleId(self.ids.new_id())

    def _created(
        self, version: ScheduleVersion, tenant: Tenant, request: Request | None
    ) -> ScheduleVersion:
        shard = self.announced.ensure_shard(version.key)
        head = head_of(version, created_at=version.effective_from, min_valid_version=1)
        result = self.schedules.create(head, version, first_cursor(version), shard=shard)
        match result:
            case Created():
                return version
            case AlreadyExists():
                repeated = self._repeated(version.key, request)
                assert repeated is not None, "a schedule has a version 1 for ever"
                return repeated
            case TenantUnknown():
                raise UnknownTenant(tenant.tenant)
            case QuotaReached():
                raise ScheduleQuotaReached(tenant.tenant, tenant.quotas.schedules_max)
            case _:
                assert_never(result)

    def _repeated(self, key: ScheduleKey, request: Request | None) -> ScheduleVersion | None:
        """Give version 1 if this very request wrote it, None if nobody has."""
        first = self.schedules.version(key, 1)
        if first is None or (request and first.request == request.fingerprint):
            return first
        if request and request.shares_key_with(first.request):
            raise IdempotencyKeyReused(request.key)
        raise DuplicateSchedule(key)

    def plan_first(self, version: ScheduleVersion) -> None:
        """Apply P1, for a repeated write too, since the first may have died before it could.

        Only while the first fire is not late: after that the agenda's planner has it, and a
        second look with misfire policies at hand would call long finished fires missed.
        """
        cursor = first_cursor(version)
        if cursor is None:
            return
        late = self.clock.now() - cursor.available_at
        if late <= min(version.policies.misfire.after, CLOSE_AFTER):
            self.announced.plan_inline(cursor)


def _as_created(version: ScheduleVersion) -> ShownSchedule:
    """Show version 1 as it was made, whatever has become of the schedule since."""
    version = replace(version, until=None)
    head = head_of(version, created_at=version.effective_from, min_valid_version=1)
    return ShownSchedule(head=head, version=version, as_of=version.effective_from - MILLISECOND)
