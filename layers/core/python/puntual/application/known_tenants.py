"""Registrations as they were a moment ago: what limits a tenant is looked up at every attempt."""

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from puntual.application.ports import Clock, Tenants
from puntual.domain.tenant import Tenant, TenantId

KNOWN_FOR = timedelta(seconds=30)
KNOWN_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTenants:
    """One of a process; threads may read the same one twice."""

    tenants: Tenants
    clock: Clock
    _known: OrderedDict[TenantId, tuple[datetime, Tenant | None]] = field(
        default_factory=OrderedDict
    )

    def of(self, tenant: TenantId) -> Tenant | None:
        """Give a registration, at most half a minute old."""
        now = self.clock.now()
        read_at, known = self._known.get(tenant, (None, None))
        if read_at is not None and now - read_at < KNOWN_FOR:
            return known
        registered = self.tenants.get(tenant)
        self._known[tenant] = (now, registered)
        while len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
        return registered
