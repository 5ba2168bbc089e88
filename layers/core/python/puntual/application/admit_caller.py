"""Admit a caller to a tenant: the guard before every use case of the tenant's own API."""

from dataclasses import dataclass
from datetime import timedelta

from puntual.application.known_tenants import KnownTenants
from puntual.domain.principal import CallerNotRegistered, may_call
from puntual.domain.tenant import Tenant, TenantId

ADMISSION_AGE_MAX = timedelta(seconds=10)
"""How long a registration admits after it was read: by then a principal taken out of it is out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitCaller:
    """A refusal is by a registration read for it, so a principal that was added is in at once.

    A reading for every request would be the most read row of a busy tenant, up to the limit of a
    partition, for a list that changes a few times a year.
    """

    known: KnownTenants

    def __call__(self, tenant: TenantId, *, caller: str) -> None:
        """Raises `CallerNotRegistered`. A tenant that nobody registered is the route's matter."""

        def admits(registered: Tenant) -> bool:
            return may_call(caller, registered.principals)

        registered = self.known.of(tenant, suits=admits)
        if registered is not None and not admits(registered):
            raise CallerNotRegistered(tenant, caller)
