"""What the gates have in common: their names, and how long they hold what comes too early."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from puntual.domain.budget import FIRES
from puntual.domain.instant import SECOND, truncated_to_millisecond
from puntual.domain.share import RUNNING
from puntual.domain.tenant import Tenant

BY_BREAKER = "held by the target's circuit breaker"
BY_FIRES = "held by fires_per_minute_max"
BY_RUNNING = "held by running_max"
BY_TARGET_RATE = "held by the target's per_minute"
BY_TARGET_RUNNING = "held by the target's running"
BY_SEATS = "held by the lane's seats"
BY_CATCH_UPS = "held by catch_ups_per_minute"

HOLD_FIRST = 2 * SECOND
HOLD_MAX = 60 * SECOND


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit: what its budget or shares are called, how many, and which gate it is."""

    name: str
    most: int
    gate: str


def running_limits(tenant: Tenant, target: str) -> Iterator[Limit]:
    """Give what bounds how many attempts at a target are under way."""
    if tenant.quotas.running_max is not None:
        yield Limit(RUNNING, tenant.quotas.running_max, BY_RUNNING)
    limit = tenant.limit_of(target)
    if limit is not None and limit.running is not None:
        yield Limit(limit.name, limit.running, BY_TARGET_RUNNING)


def rate_limits(tenant: Tenant, target: str, *, is_first: bool) -> Iterator[Limit]:
    """Give what bounds how many go out; only first claims are fires, all count for the target."""
    if is_first and tenant.quotas.fires_per_minute_max is not None:
        yield Limit(FIRES, tenant.quotas.fires_per_minute_max, BY_FIRES)
    limit = tenant.limit_of(target)
    if limit is not None and limit.per_minute is not None:
        yield Limit(limit.name, limit.per_minute, BY_TARGET_RATE)


def hold_of(until: datetime, *, holds: int, chance: float) -> datetime:
    """Give when to come again: half to the whole of a wait that doubles from hold to hold."""
    doublings: int = 2 ** min(holds, HOLD_MAX // HOLD_FIRST)
    wait = min(HOLD_MAX, HOLD_FIRST * doublings)
    return truncated_to_millisecond(until + wait * (0.5 + chance / 2))
