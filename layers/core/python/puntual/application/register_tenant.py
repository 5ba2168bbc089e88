"""Register a tenant, or change its quotas, targets, roles and principals."""

from dataclasses import dataclass

from puntual.application.ports import Tenants
from puntual.domain.principal import principal_of
from puntual.domain.target import check_target_arn
from puntual.domain.tenant import (
    DEFAULT_QUOTAS,
    PRINCIPALS_MAX,
    ROLES_MAX,
    TARGETS_MAX,
    Quotas,
    Tenant,
    TenantId,
    check_quotas,
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
        quotas: Quotas = DEFAULT_QUOTAS,
        targets: tuple[str, ...] = (),
        roles: tuple[str, ...] = (),
        principals: tuple[str, ...] = (),
    ) -> Tenant:
        """Put the registration whole; count and keys stay. Raises `Rejected`."""
        check_quotas(quotas)
        for number, arn in enumerate(targets):
            check_target_arn(f"targets.{number}", arn)
        for number, arn in enumerate(roles):
            check_role_arn(f"roles.{number}", arn)
        for number, arn in enumerate(principals):
            principal_of(arn, field=f"principals.{number}")
        return self.tenants.register(
            Tenant(
                tenant=tenant,
                quotas=quotas,
                targets=checked_list("targets", targets, at_most=TARGETS_MAX),
                roles=checked_list("roles", roles, at_most=ROLES_MAX),
                principals=checked_list("principals", principals, at_most=PRINCIPALS_MAX),
            )
        )
