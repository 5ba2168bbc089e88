"""The gates between a claim that may be made and its write: breaker, concurrency, rates.

What they hold waits, and says by whom; nothing is refused and no attempt is spent. Breaker first,
since what it holds must take no room; room before tokens, since a token is used once; the probe
last, since only one goes out.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from puntual.application.circuit_breakers import CircuitBreakers
from puntual.application.kept_rooms import KeptRooms
from puntual.application.known_tenants import KnownTenants
from puntual.application.ports import Chance, Clock
from puntual.application.running_shares import RunningShares
from puntual.application.token_blocks import TokenBlocks
from puntual.domain.breaker import HELD_MAX, blames_target
from puntual.domain.budget import BudgetKey
from puntual.domain.errors import Unavailable
from puntual.domain.gate import (
    BY_BREAKER,
    hold_of,
    rate_limits,
    running_limits,
)
from puntual.domain.instant import rounded_to_millisecond
from puntual.domain.message import Message
from puntual.domain.run import Run
from puntual.domain.share import ShareKey, run_holder
from puntual.domain.target import DeliveryResult, Failed, Target, limited_name_of
from puntual.domain.target_limit import limit_name_of
from puntual.domain.tenant import Tenant, TenantId

BREAKER_OPEN = Failed(
    detail="the target's circuit breaker is open", retryable=True, by_target=False
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Park this message until it says, and ask again then."""

    message: Message
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """The attempt may begin; whoever was told so must say what came of it, and that it is over.

    A `refusal` is what comes of it, without a call.
    """

    tenant: TenantId
    target: str
    lease_until: datetime
    entered: tuple[tuple[ShareKey, int], ...] = ()
    is_probe: bool = False
    refusal: Failed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitAttempt:
    """A tenant without limits pays two cached reads, and no write until its targets fail."""

    known: KnownTenants
    breakers: CircuitBreakers
    running: RunningShares
    rooms: KeptRooms
    tokens: TokenBlocks
    clock: Clock
    chance: Chance

    def __call__(self, message: Message, claim: Run, target: Target) -> Held | Admitted:
        """Ask all gates for an attempt that is about to be claimed. Raises `Unavailable`."""
        assert claim.lease_until is not None
        owner, name = message.occurrence.tenant, limited_name_of(target)
        tenant = self.known.of(owner)
        blocked = self.breakers.blocked_until(owner, name)
        if blocked is not None:
            return self._blocked(message, claim, name, blocked)
        admitted = Admitted(tenant=owner, target=name, lease_until=claim.lease_until)
        if tenant is not None:
            limited = self._within_limits(message, claim, tenant, admitted)
            if isinstance(limited, Held):
                return limited
            admitted = limited
        if not self.breakers.is_open(owner, name):
            return admitted
        return self._probing(message, claim, admitted)

    def heard(self, admitted: Admitted, result: DeliveryResult) -> None:
        """Note how the target answered."""
        tell = self.breakers.failed if blames_target(result) else self.breakers.answered
        if isinstance(result, Failed) and not result.by_target:
            return
        tell(admitted.tenant, admitted.target, probe=admitted.is_probe)

    def taken(self, admitted: Admitted, run: Run, *, until: datetime) -> Admitted:
        """Hand the attempt's room over to its run, which its target has taken."""
        holder, lease = run_holder(run), admitted.lease_until
        for key, limit in admitted.entered:
            self.running.hand_over(key, limit, lease_until=lease, run=holder, until=until)
        return replace(admitted, entered=())

    def over(self, admitted: Admitted) -> None:
        """Give the attempt's room back, and its probe, if nothing was heard of that."""
        if admitted.is_probe:
            self.breakers.let_go(admitted.tenant, admitted.target, until=admitted.lease_until)
        for key, limit in admitted.entered:
            self.running.leave(key, limit, lease_until=admitted.lease_until)

    def _blocked(
        self, message: Message, claim: Run, target: str, until: datetime
    ) -> Held | Admitted:
        """Hold a message; what it had of the target's rate lapses, or all would go out at once."""
        now = self.clock.now()
        since = message.blocked_since or now
        if now - since >= HELD_MAX:
            assert claim.lease_until is not None
            owner = message.occurrence.tenant
            return Admitted(
                tenant=owner, target=target, lease_until=claim.lease_until, refusal=BREAKER_OPEN
            )
        without = tuple(name for name in message.tokens if name != limit_name_of(target))
        blocked = replace(message, tokens=without, blocked_since=since)
        return self._held(blocked, BY_BREAKER, until)

    def _within_limits(
        self, message: Message, claim: Run, tenant: Tenant, admitted: Admitted
    ) -> Held | Admitted:
        for limit in running_limits(tenant, admitted.target):
            key = ShareKey(tenant=tenant.tenant, name=limit.name)
            if not self.running.enter(key, limit.most, lease_until=admitted.lease_until):
                self.over(admitted)
                return self._held(message, limit.gate, self.clock.now())
            admitted = replace(admitted, entered=(*admitted.entered, (key, limit.most)))
        try:
            held = self._over_rate(message, claim, tenant, admitted.target)
        except Unavailable:
            self.over(admitted)
            raise
        if held is not None:
            self.over(admitted)
            return held
        return admitted

    def _over_rate(self, message: Message, claim: Run, tenant: Tenant, target: str) -> Held | None:
        """Take what the message has no token of; it waits for the last of them, once."""
        until, by, tokens = None, "", message.tokens
        for limit in rate_limits(tenant, target, is_first=claim.attempt == 1):
            if limit.name in tokens:
                continue
            key = BudgetKey(tenant=tenant.tenant, name=limit.name)
            usable_at = rounded_to_millisecond(self.tokens.take(key, limit.most))
            tokens = (*tokens, limit.name)
            # The clock after the draw, which took its time.
            if usable_at > (until or self.clock.now()):
                until, by = usable_at, limit.gate
        if until is None:
            return None
        held = replace(message, held_until=until, held_by=by, tokens=tokens)
        return Held(message=held, until=until)

    def _probing(self, message: Message, claim: Run, admitted: Admitted) -> Held | Admitted:
        owner, target, until = admitted.tenant, admitted.target, admitted.lease_until
        try:
            if self.breakers.probe(owner, target, until=until):
                return replace(admitted, is_probe=True)
        except Unavailable:
            self.over(admitted)
            raise
        self.over(admitted)
        return self._blocked(message, claim, target, self.clock.now())

    def _held(self, message: Message, gate: str, until: datetime) -> Held:
        """Hold it beyond an instant by a wait that grows, so that not all come back together."""
        ends = hold_of(until, holds=message.holds, chance=self.chance.fraction())
        held = replace(message, held_until=ends, held_by=gate, holds=message.holds + 1)
        return Held(message=held, until=ends)
