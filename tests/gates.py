"""The gates of one executor, wired as bootstrap does, on ports that a test gives."""

from dataclasses import dataclass, field

from puntual.application.admit_attempt import AdmitAttempt
from puntual.application.circuit_breakers import CircuitBreakers
from puntual.application.draw_tokens import DrawTokens
from puntual.application.fail_attempt import FailAttempt
from puntual.application.kept_rooms import KeptRooms
from puntual.application.known_tenants import KnownTenants
from puntual.application.ports import (
    Breakers,
    Budgets,
    Chance,
    Clock,
    IdSource,
    Shares,
    Tenants,
)
from puntual.application.running_shares import RunningShares
from puntual.application.token_blocks import TokenBlocks
from tests.fakes.in_memory_breakers import InMemoryBreakers
from tests.fakes.in_memory_budgets import InMemoryBudgets
from tests.fakes.in_memory_shares import InMemoryShares
from tests.fakes.in_memory_tenants import InMemoryTenants


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePorts:
    """What all executors share; by default nobody is registered, and so nothing is limited."""

    tenants: Tenants = field(default_factory=InMemoryTenants)
    budgets: Budgets = field(default_factory=InMemoryBudgets)
    shares: Shares = field(default_factory=InMemoryShares)
    breakers: Breakers = field(default_factory=InMemoryBreakers)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateParts:
    """What gates are made of. A broken variant puts another part in the place of one."""

    admit: type[AdmitAttempt] = AdmitAttempt
    breakers: type[CircuitBreakers] = CircuitBreakers
    running: type[RunningShares] = RunningShares
    rooms: type[KeptRooms] = KeptRooms
    tokens: type[TokenBlocks] = TokenBlocks


def gates_of(
    ports: GatePorts,
    *,
    clock: Clock,
    ids: IdSource,
    chance: Chance,
    holder: str = "one",
    parts: GateParts | None = None,
) -> AdmitAttempt:
    """Give the gates of an executor, with nothing in stock."""
    parts = parts or GateParts()
    known = KnownTenants(tenants=ports.tenants, clock=clock)
    draw = DrawTokens(budgets=ports.budgets, clock=clock, ids=ids)
    return parts.admit(
        known=known,
        breakers=parts.breakers(breakers=ports.breakers, clock=clock, ids=ids),
        running=parts.running(shares=ports.shares, clock=clock, ids=ids, holder=holder),
        rooms=parts.rooms(known=known, shares=ports.shares, clock=clock, ids=ids),
        tokens=parts.tokens(draw=draw),
        clock=clock,
        chance=chance,
    )


def failing_by(gates: AdmitAttempt) -> FailAttempt:
    """Give what a process does with failures; it draws on what its gates have in stock."""
    return FailAttempt(
        known=gates.known, tokens=gates.tokens, clock=gates.clock, chance=gates.chance
    )
