"""Register a tenant, or change its quota and queues."""

from dataclasses import dataclass

from puntual.application.ports import Tenants
from puntual.domain.errors import Rejected
from puntual.domain.target import QUEUE_NAME_PREFIX, is_target_queue
from puntual.domain.tenant import SCHEDULES_MAX_LIMIT, Tenant, TenantId, target_queues_of


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterTenant:
    tenants: Tenants

    def __call__(
        self, tenant: TenantId, *, schedules_max: int, target_queues: tuple[str, ...]
    ) -> Tenant:
        """Put the registration whole; the count of schedules stays. Raises `Rejected`."""
        if not 0 <= schedules_max <= SCHEDULES_MAX_LIMIT:
            raise Rejected("schedules_max", schedules_max, f"0 to {SCHEDULES_MAX_LIMIT}")
        for number, arn in enumerate(target_queues):
            if not is_target_queue(arn):
                allowed = f"the ARN of an SQS queue whose name begins with {QUEUE_NAME_PREFIX}"
                raise Rejected(f"target_queues.{number}", arn, allowed)
        return self.tenants.register(
            Tenant(
                tenant=tenant,
                schedules_max=schedules_max,
                target_queues=target_queues_of(target_queues),
            )
        )
