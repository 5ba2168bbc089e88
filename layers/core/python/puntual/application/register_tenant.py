"""Register a tenant, or change its quota, targets and roles."""

from dataclasses import dataclass

from puntual.application.ports import Tenants
from puntual.domain.errors import Rejected
from puntual.domain.target import check_target_arn
from puntual.domain.tenant import (
    ROLES_MAX,
    SCHEDULES_MAX_LIMIT,
    TARGETS_MAX,
    Tenant,
    TenantId,
    check_role_arn,
    checked_list,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterTenant:
    tenants: Tenants

    def __call__(
        self,
        tenant: TenantId,
        *,
        schedules_max: int,
        targets: tuple[str, ...] = (),
        roles: tuple[str, ...] = (),
    ) -> Tenant:
        """Put the registration whole; count and keys stay. Raises `Rejected`."""
        if not 0 <= schedules_max <= SCHEDULES_MAX_LIMIT:
            raise Rejected("schedules_max", schedules_max, f"0 to {SCHEDULES_MAX_LIMIT}")
        for number, arn in enumerate(targets):
            check_target_arn(f"targets.{number}", arn)
        for number, arn in enumerate(roles):
            check_role_arn(f"roles.{number}", arn)
        return self.tenants.register(
            Tenant(
                tenant=tenant,
                schedules_max=schedules_max,
                targets=checked_list("targets", targets, at_most=TARGETS_MAX),
                roles=checked_list("roles", roles, at_most=ROLES_MAX),
            )
        )
