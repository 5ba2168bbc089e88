"""Try a target without a schedule: deliver once, now, and tell what came of it."""

from dataclasses import dataclass
from datetime import timedelta

from puntual.application.deliver_occurrence import DeliverOccurrence
from puntual.application.ports import Breakers, Clock, IdSource, Tenants
from puntual.domain.breaker import OpenBreaker, open_breakers
from puntual.domain.definition import Limits, TargetDefinition, checked_payload, target_of
from puntual.domain.occurrence import Kind, Occurrence
from puntual.domain.target import Delivery, DeliveryResult, Target, limited_name_of
from puntual.domain.template import rendered, values_of
from puntual.domain.tenant import ScheduleId, TenantId, UnknownTenant

TRY_SECONDS_MAX = 20
"""API Gateway waits for 29 seconds; a call that has begun may outlast the deadline a little."""

TRY_SCHEDULE = ScheduleId("try")
TRY_TIME_ZONE = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What the target did, how long it took, and whether schedules leave the target alone.

    A try goes out though the breaker is open, and changes nothing about it.
    """

    result: DeliveryResult
    duration: timedelta
    breaker: OpenBreaker | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TryTarget:
    """It has the checks of a create and no place in the ledger."""

    tenants: Tenants
    deliver: DeliverOccurrence
    breakers: Breakers
    clock: Clock
    ids: IdSource
    limits: Limits

    def __call__(self, tenant: TenantId, target: TargetDefinition, *, payload: object) -> Tried:
        """Deliver once, whatever becomes of it; raises `UnknownTenant`, `Rejected`."""
        registered = self.tenants.get(tenant)
        if registered is None:
            raise UnknownTenant(tenant)
        begun = self.clock.now()
        occurrence = Occurrence(
            tenant=tenant,
            schedule=TRY_SCHEDULE,
            version=1,
            scheduled_for=begun,
            kind=Kind.MANUAL,
            request_id=self.ids.new_id(),
        )
        checked = target_of(target, tenant=registered, limits=self.limits)
        text = checked_payload(payload, target=checked, occurrence=occurrence)
        values = values_of(occurrence, attempt=1, time_zone=TRY_TIME_ZONE)
        delivery = Delivery(
            occurrence=occurrence,
            attempt=1,
            target=checked,
            payload=rendered(text, values),
            deadline=begun + min(checked.timeout, timedelta(seconds=TRY_SECONDS_MAX)),
            is_try=True,
        )
        result = self.deliver.deliver_for(registered, delivery)
        duration = self.clock.now() - begun
        return Tried(result=result, duration=duration, breaker=self._breaker(tenant, checked))

    def _breaker(self, tenant: TenantId, target: Target) -> OpenBreaker | None:
        name = limited_name_of(target)
        found = open_breakers(self.breakers.read(tenant))
        return next((each for each in found if each.target == name), None)
