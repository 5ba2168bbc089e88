"""Registrations as they were a moment ago: each is looked up at every attempt or request."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from puntual.application.ports import Clock, Tenants
from puntual.domain.tenant import Tenant, TenantId

KNOWN_FOR = timedelta(seconds=30)
KNOWN_MAX = 1_000

Suits = Callable[[Tenant], bool]


def _suits(_: Tenant) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTenants:
    """One of a process; threads may read the same one twice."""

    tenants: Tenants
    clock: Clock
    known_for: timedelta = KNOWN_FOR
    _known: OrderedDict[TenantId, tuple[datetime, Tenant | None]] = field(
        default_factory=OrderedDict
    )

    def of(self, tenant: TenantId, *, suits: Suits = _suits) -> Tenant | None:
        """Give a registration, at most `known_for` old; what does not suit is read anew.

        Raises `Unavailable`.
        """
        now = self.clock.now()
        read_at, known = self._known.get(tenant, (None, None))
        is_recent = read_at is not None and now - read_at < self.known_for
        if is_recent and known is not None and suits(known):
            return known
        registered = self.tenants.get(tenant)
        self._known.pop(tenant, None)
        self._known[tenant] = (now, registered)
        while len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
        return registered

    def last(self, tenant: TenantId) -> Tenant | None:
        """Give what was read last, however old; None where nothing was."""
        _, known = self._known.get(tenant, (None, None))
        return known
