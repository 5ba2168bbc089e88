"""The weights of tenants, as they were at most a minute ago."""

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from puntual.application.ports import Clock, Tenants
from puntual.domain.errors import Unavailable
from puntual.domain.tenant import DEFAULT_QUOTAS, TenantId

WEIGHT_AGE_MAX = timedelta(minutes=1)
WEIGHTS_KNOWN_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantWeights:
    tenants: Tenants
    clock: Clock
    _known: OrderedDict[TenantId, tuple[datetime, int]] = field(default_factory=OrderedDict)

    def __call__(self, tenant: TenantId) -> int:
        """Give a tenant's weight; the default one where its registration cannot be read."""
        now = self.clock.now()
        read_at, weight = self._known.get(tenant, (None, DEFAULT_QUOTAS.weight))
        if read_at is not None and now - read_at < WEIGHT_AGE_MAX:
            return weight
        try:
            registered = self.tenants.get(tenant)
        except Unavailable:
            # Nobody's work waits for it: a weight that is a little old does as well.
            return weight
        weight = registered.quotas.weight if registered else DEFAULT_QUOTAS.weight
        self._known[tenant] = (now, weight)
        while len(self._known) > WEIGHTS_KNOWN_MAX:
            self._known.popitem(last=False)
        return weight
