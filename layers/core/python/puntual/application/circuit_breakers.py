"""Circuit breakers of the tenants' targets, as an executor sees them."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from puntual.application.ports import Breakers, Clock, IdSource
from puntual.domain import breaker
from puntual.domain.breaker import FAILURES_IN_A_ROW
from puntual.domain.errors import Unavailable
from puntual.domain.tenant import TenantId

SEEN_FOR = timedelta(seconds=10)
"""How long what others opened or closed may go unseen here."""

TENANTS_SEEN_MAX = 1_000
ROWS_COUNTED_MAX = 10_000
SWAPS_MAX = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitBreakers:
    """One of a process: it counts failures itself, and writes only what opens and closes."""

    breakers: Breakers
    clock: Clock
    ids: IdSource
    _seen: OrderedDict[TenantId, tuple[datetime, breaker.Breakers]] = field(
        default_factory=OrderedDict
    )
    _failures: OrderedDict[tuple[TenantId, str], int] = field(default_factory=OrderedDict)

    def blocked_until(self, tenant: TenantId, target: str) -> datetime | None:
        """Give until when nothing may go out to a target, None where something may."""
        return self._recent(tenant).blocked_until(target, self.clock.now())

    def is_open(self, tenant: TenantId, target: str) -> bool:
        """Tell whether only a probe may go out, once nothing is blocked."""
        return target in self._recent(tenant).by_target

    def probe(self, tenant: TenantId, target: str, *, until: datetime) -> bool:
        """Take the probe of an open breaker; False where another has it. Raises `Unavailable`."""
        now, seen = self.clock.now(), self._read(tenant)
        if target not in seen.by_target:
            return True  # it has closed
        probing = breaker.probed(seen, target, now=now, until=until)
        return probing is not None and self._swapped(probing, seen)

    def failed(self, tenant: TenantId, target: str, *, probe: bool) -> None:
        """Count a failure of the target; too many in a row, or one of a probe, open its breaker."""
        failures = self._failures.pop((tenant, target), 0) + 1
        if not probe and failures < FAILURES_IN_A_ROW:
            self._failures[tenant, target] = failures
            while len(self._failures) > ROWS_COUNTED_MAX:
                self._failures.popitem(last=False)
            return
        self._change(tenant, lambda seen: breaker.opened(seen, target, self.clock.now()))

    def answered(self, tenant: TenantId, target: str, *, probe: bool) -> None:
        """Note that the target answered, whatever it said."""
        self._failures.pop((tenant, target), None)
        if probe:
            self._change(tenant, lambda seen: breaker.closed(seen, target, self.clock.now()))

    def let_go(self, tenant: TenantId, target: str, *, until: datetime) -> None:
        """Give a probe back that was taken until then, if nothing came of it."""
        self._change(tenant, lambda seen: breaker.unprobed(seen, target, until=until))

    def _change(
        self, tenant: TenantId, change: Callable[[breaker.Breakers], breaker.Breakers]
    ) -> None:
        """Change what is open; where that fails for good, a later failure or probe does it."""
        try:
            for _ in range(SWAPS_MAX):
                seen = self._read(tenant)
                changed = change(seen)
                if changed is seen or self._swapped(changed, seen):
                    return
        except Unavailable:
            return

    def _swapped(self, changed: breaker.Breakers, seen: breaker.Breakers) -> bool:
        signed = replace(changed, write_id=self.ids.new_id())
        if not self.breakers.swap(signed, seen=seen):
            return False
        self._remember(signed)
        return True

    def _recent(self, tenant: TenantId) -> breaker.Breakers:
        read_at, seen = self._seen.get(tenant, (None, None))
        if read_at is not None and seen is not None and self.clock.now() - read_at < SEEN_FOR:
            return seen
        return self._read(tenant)

    def _read(self, tenant: TenantId) -> breaker.Breakers:
        read = self.breakers.read(tenant)
        self._remember(read)
        return read

    def _remember(self, seen: breaker.Breakers) -> None:
        self._seen[seen.tenant] = (self.clock.now(), seen)
        while len(self._seen) > TENANTS_SEEN_MAX:
            self._seen.popitem(last=False)
