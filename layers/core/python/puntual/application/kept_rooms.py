"""The room of runs that their targets have taken: kept on the runs' own leases."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from puntual.application.known_tenants import KnownTenants
from puntual.application.ports import Clock, IdSource
from puntual.application.ports import Shares as SharesPort
from puntual.application.running_shares import SWAPS_MAX
from puntual.domain.errors import Unavailable
from puntual.domain.gate import running_limits
from puntual.domain.run import Run
from puntual.domain.share import ShareKey, Shares, kept, left, run_holder
from puntual.domain.target import Target, limited_name_of


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRooms:
    """Where nothing limits how much may run, nothing is read but the registration, cached."""

    known: KnownTenants
    shares: SharesPort
    clock: Clock
    ids: IdSource

    def keep(self, run: Run, target: Target, *, until: datetime) -> None:
        """Keep a run's room until then, whether it has any yet or not. Raises `Unavailable`."""
        self._change(
            run, target, lambda seen, now: kept(seen, run_holder(run), until=until, now=now)
        )

    def leave(self, run: Run, target: Target) -> None:
        """Give a run's room back; where that fails, it lapses with the lease."""
        try:
            self._change(run, target, lambda seen, now: left(seen, run_holder(run), now=now))
        except Unavailable:
            return

    def _change(
        self, run: Run, target: Target, change: Callable[[Shares, datetime], Shares]
    ) -> None:
        tenant = self.known.of(run.occurrence.tenant)
        if tenant is None:
            return
        for limit in running_limits(tenant, limited_name_of(target)):
            self._swapped(ShareKey(tenant=tenant.tenant, name=limit.name), change)

    def _swapped(self, key: ShareKey, change: Callable[[Shares, datetime], Shares]) -> None:
        for _ in range(SWAPS_MAX):
            seen = self.shares.read(key)
            changed = change(seen, self.clock.now())
            if changed == seen:
                return
            if self.shares.swap(replace(changed, write_id=self.ids.new_id()), seen=seen):
                return
        raise Unavailable(f"shares {key.name} of {key.tenant}: too many take from them")
