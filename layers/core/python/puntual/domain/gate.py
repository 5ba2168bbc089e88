"""What the gates have in common: their names, and how long they hold what comes too early."""

from dataclasses import dataclass
from datetime import datetime

from puntual.domain.instant import SECOND, truncated_to_millisecond

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


def hold_of(until: datetime, *, holds: int, chance: float) -> datetime:
    """Give when to come again: half to the whole of a wait that doubles from hold to hold."""
    doublings: int = 2 ** min(holds, HOLD_MAX // HOLD_FIRST)
    wait = min(HOLD_MAX, HOLD_FIRST * doublings)
    return truncated_to_millisecond(until + wait * (0.5 + chance / 2))
