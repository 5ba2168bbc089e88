"""Circuit breakers: a target that only fails is left alone for a while, and then tried once.

They are a tenant's: one tenant's failures say nothing about another's target, and stop nobody else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from puntual.domain.instant import HOUR
from puntual.domain.target import DeliveryResult, Failed
from puntual.domain.tenant import TenantId

FAILURES_IN_A_ROW = 5
"""Retriable failures of a target, with no other answer between, that open its breaker."""

COOL_DOWN_FIRST = timedelta(seconds=10)
COOL_DOWN_MAX = timedelta(minutes=5)

HELD_MAX = timedelta(minutes=15)
"""How long an open breaker holds an attempt. Then it fails without a call: what waits for a target
that never comes back must end as dead, and not pile up."""

OPEN_MAX = 100
"""Breakers of a tenant that may be open at once: they share a row. More stay closed."""

FORGOTTEN_AFTER = HOUR
"""After its cool-down, a breaker that nobody has come to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """An open breaker: nothing goes out before `until`; then one probe at a time does.

    `opened` counts how often it opened with no success between.
    """

    until: datetime
    opened: int = 1
    probe_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakers:
    """All open breakers of a tenant by target; `write_id` as of a budget."""

    tenant: TenantId
    by_target: Mapping[str, Breaker]
    write_id: str = ""

    def blocked_until(self, target: str, now: datetime) -> datetime | None:
        """Give when it is worth coming again; None where an attempt, or a probe, may go out."""
        breaker = self.by_target.get(target)
        if breaker is None:
            return None
        ends = max(breaker.until, breaker.probe_until or breaker.until)
        return ends if ends > now else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBreaker:
    """A target that is left alone until then, or, from then on, until one probe succeeds.

    `opened` counts how often in a row it was found to fail.
    """

    target: str
    until: datetime
    opened: int


def open_breakers(breakers: Breakers) -> tuple[OpenBreaker, ...]:
    """Give what is open, by the targets' names."""
    return tuple(
        OpenBreaker(target=target, until=breaker.until, opened=breaker.opened)
        for target, breaker in sorted(breakers.by_target.items())
    )


def cool_down(opened: int) -> timedelta:
    """Give how long a breaker stays open that has opened so often: twice as long each time."""
    doublings: int = 2 ** min(opened - 1, COOL_DOWN_MAX // COOL_DOWN_FIRST)
    return min(COOL_DOWN_MAX, COOL_DOWN_FIRST * doublings)


def blames_target(result: DeliveryResult) -> bool:
    """Tell whether a result is a failure of the target that may pass: no answer, 429, 5xx."""
    return isinstance(result, Failed) and result.retryable and result.by_target


def opened(breakers: Breakers, target: str, now: datetime) -> Breakers:
    """Open a target's breaker, or open it again after a probe that failed."""
    before = breakers.by_target.get(target)
    if before is not None and before.until > now:
        return breakers
    left = _remembered(breakers, now)
    if before is None and len(left) >= OPEN_MAX:
        return breakers
    times = 1 if before is None else before.opened + 1
    breaker = Breaker(until=now + cool_down(times), opened=times)
    return replace(breakers, by_target=left | {target: breaker}, write_id="")


def probed(breakers: Breakers, target: str, *, now: datetime, until: datetime) -> Breakers | None:
    """Take the one probe; None where the breaker still cools down or another probes."""
    before = breakers.by_target.get(target)
    if before is None or breakers.blocked_until(target, now) is not None:
        return None
    probing = replace(before, probe_until=until)
    return replace(breakers, by_target={**breakers.by_target, target: probing}, write_id="")


def unprobed(breakers: Breakers, target: str, *, until: datetime) -> Breakers:
    """Give the probe back that was taken until then: the target was never asked."""
    before = breakers.by_target.get(target)
    if before is None or before.probe_until != until:
        return breakers
    free = replace(before, probe_until=None)
    return replace(breakers, by_target={**breakers.by_target, target: free}, write_id="")


def closed(breakers: Breakers, target: str, now: datetime) -> Breakers:
    if target not in breakers.by_target:
        return breakers
    left = _remembered(breakers, now)
    left.pop(target, None)
    return replace(breakers, by_target=left, write_id="")


def _remembered(breakers: Breakers, now: datetime) -> dict[str, Breaker]:
    return {
        target: breaker
        for target, breaker in breakers.by_target.items()
        if breaker.until + FORGOTTEN_AFTER > now
    }
