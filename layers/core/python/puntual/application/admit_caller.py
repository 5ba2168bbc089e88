"""Admit a caller to a tenant: the guard before every use case of the tenant's own API."""

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from puntual.application.ports import Clock, Tenants
from puntual.domain.principal import CallerNotRegistered, may_call
from puntual.domain.tenant import Tenant, TenantId

ADMISSION_AGE_MAX = timedelta(seconds=10)
"""How long a registration admits after it was read: by then a principal taken out of it is out."""

ADMISSIONS_KNOWN_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitCaller:
    """A refusal is by a registration read for it, so a principal that was added is in at once.

    A reading for every request would be the most read row of a busy tenant, up to the limit of a
    partition, for a list that changes a few times a year.
    """

    tenants: Tenants
    clock: Clock
    _known: OrderedDict[TenantId, tuple[datetime, Tenant]] = field(default_factory=OrderedDict)

    def __call__(self, tenant: TenantId, *, caller: str) -> None:
        """Raises `CallerNotRegistered`. A tenant that nobody registered is the route's matter."""
        now = self.clock.now()
        read_at, known = self._known.get(tenant, (None, None))
        is_recent = read_at is not None and now - read_at < ADMISSION_AGE_MAX
        if is_recent and known is not None and may_call(caller, known.principals):
            return
        registered = self.tenants.get(tenant)
        if registered is None:
            return
        self._remember(registered, now)
        if not may_call(caller, registered.principals):
            raise CallerNotRegistered(tenant, caller)

    def _remember(self, registered: Tenant, now: datetime) -> None:
        self._known[registered.tenant] = (now, registered)
        self._known.move_to_end(registered.tenant)
        while len(self._known) > ADMISSIONS_KNOWN_MAX:
            self._known.popitem(last=False)
