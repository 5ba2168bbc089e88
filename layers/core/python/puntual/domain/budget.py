"""Rates as budgets: tokens that fall due one after the other, taken ahead where none is free.

A generic cell rate algorithm whose tokens can be reserved. A budget is one instant: through it,
tokens are taken. Who needs more than is free takes tokens that fall due later and waits for them,
once; nobody asks again, and nobody is refused.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from puntual.domain.instant import INSTANT_STEP, MINUTE
from puntual.domain.tenant import TenantId

FIRES = "fires"
RETRIES = "retries"
CATCH_UPS = "catch_ups"
"""Names of a tenant's budgets: of `fires_per_minute_max`, `retries_per_minute` and
`catch_ups_per_minute`."""

BURST_SECONDS = 1
"""Seconds of the rate that may be used at once after a rest; one token may be, at any rate."""


BLOCK_MAX = 500
BLOCK_MILLISECONDS = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetKey:
    tenant: TenantId
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What is taken of a rate; `taken_through` is exact to the microsecond.

    `per_minute` is the rate at which the last token was taken; 0 where none ever was.
    `held` counts the tokens that were taken before they fell due, since ever: each is something
    that had to wait. `write_id` names the write that made it so (P9); empty where nobody wrote.
    """

    key: BudgetKey
    taken_through: datetime
    per_minute: int = 0
    held: int = 0
    write_id: str = ""


def burst_of(per_minute: int) -> int:
    """Give how many tokens may be used at once after a rest."""
    return max(1, per_minute * BURST_SECONDS // 60)


def time_of(count: int, per_minute: int) -> timedelta:
    """Give the time in which so many tokens fall due; rounded up, so that no sum runs ahead."""
    assert per_minute > 0
    return -(-count * MINUTE // per_minute // INSTANT_STEP) * INSTANT_STEP


def reserve(budget: Budget, per_minute: int, count: int, now: datetime) -> tuple[Budget, datetime]:
    """Take tokens, of the future too; gives when the first may be used.

    Token `n` of them, from 0, may be used at that instant plus `time_of(n, per_minute)`.
    """
    assert count > 0
    first = _first_free(budget, per_minute, now)
    due = _due_by(now, first, per_minute)
    taken = _taken(budget, first, per_minute, count)
    return replace(taken, held=budget.held + max(0, count - due)), max(first, now)


def take_up_to(
    budget: Budget, per_minute: int, wanted: int, now: datetime, through: datetime
) -> tuple[Budget, int]:
    """Take those tokens that fall due at or before `through`, at most `wanted` of them."""
    first = _first_free(budget, per_minute, now)
    granted = min(wanted, _due_by(through, first, per_minute))
    return (_taken(budget, first, per_minute, granted) if granted else budget), granted


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Tokens that one executor took together; those that it does not use in time are lost.

    Token `n`, from 0, falls due at `first` plus `time_of(n, per_minute)`; `next` is the next one.
    """

    first: datetime
    per_minute: int
    size: int
    next: int = 0
    wasted: bool = False


def block_after(used: Block | None, per_minute: int) -> int:
    """Give how many tokens to take next: twice as many after a block that was used up.

    So at most as many are lost as were used. Small rates have blocks of one; large ones blocks of
    a quarter of a second, which keeps their row cool and makes others wait no longer than that.
    """
    if used is None or used.wasted or used.per_minute != per_minute:
        return 1
    largest = min(BLOCK_MAX, max(1, per_minute * BLOCK_MILLISECONDS // 60_000))
    return min(largest, used.size * 2)


def reserve_block(
    budget: Budget, per_minute: int, size: int, now: datetime, *, held: int
) -> tuple[Budget, Block]:
    """Take a block, and count what had to wait since the last one, its own first token too."""
    first = _first_free(budget, per_minute, now)
    waits = 1 if first > now else 0
    drawn = replace(_taken(budget, first, per_minute, size), held=budget.held + held + waits)
    return drawn, Block(first=first, per_minute=per_minute, size=size)


def first_of(block: Block, now: datetime) -> tuple[Block, datetime]:
    """Take the first token of a block that was just drawn, though drawing it took a moment."""
    return replace(block, next=1), max(block.first, now)


def next_of(block: Block, now: datetime) -> tuple[Block, datetime | None]:
    """Take the next token; gives when it may be used, None where none is left that is not past.

    What lies further back than the burst is past: tokens are not saved up.
    """
    rested = now - time_of(burst_of(block.per_minute) - 1, block.per_minute)
    past = max(0, _due_by(rested - INSTANT_STEP, block.first, block.per_minute))
    number = max(block.next, past)
    wasted = block.wasted or number > block.next
    if number >= block.size:
        return replace(block, wasted=wasted, next=block.size), None
    due = block.first + time_of(number, block.per_minute)
    return replace(block, wasted=wasted, next=number + 1), max(due, now)


def waiting_in(budget: Budget, per_minute: int, now: datetime) -> int:
    """Give how many of the tokens that are taken have not fallen due yet: who has them waits."""
    one = time_of(1, budget.per_minute or per_minute)
    return max(0, -(-(budget.taken_through - now) // one) - 1)


def _first_free(budget: Budget, per_minute: int, now: datetime) -> datetime:
    """Give when the next token falls due.

    A rate that is raised begins anew: who waits keeps a place at the old rate, and who comes does
    not stand behind all of them, or a limit that was far too low would be felt for weeks.
    """
    rested = now - time_of(burst_of(per_minute) - 1, per_minute)
    is_raised = 0 < budget.per_minute < per_minute
    through = min(budget.taken_through, now) if is_raised else budget.taken_through
    return max(through, rested)


def _due_by(instant: datetime, first: datetime, per_minute: int) -> int:
    """Give how many tokens fall due at or before an instant, where the first one falls due so."""
    if instant < first:
        return 0
    return (instant - first) * per_minute // MINUTE + 1


def _taken(budget: Budget, first: datetime, per_minute: int, count: int) -> Budget:
    through = first + time_of(count, per_minute)
    return replace(budget, taken_through=through, per_minute=per_minute, write_id="")
