"""Drawing tokens: who is slower looks again, and nobody uses a token twice."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from puntual.application.draw_tokens import DRAWS_MAX, DrawTokens
from puntual.domain.budget import FIRES, Budget, BudgetKey
from puntual.domain.errors import Unavailable
from tests.builders import NINE, TENANT
from tests.fakes.counting_ids import CountingIds
from tests.fakes.in_memory_budgets import InMemoryBudgets
from tests.fakes.manual_clock import ManualClock

KEY = BudgetKey(tenant=TENANT, name=FIRES)


class Contended(InMemoryBudgets):
    """Where another is faster, so many times."""

    def __init__(self, times: int, overtake: Callable[[InMemoryBudgets], object]) -> None:
        super().__init__()
        self.times, self.overtake = times, overtake

    def swap(self, budget: Budget, *, seen: Budget) -> bool:
        if self.times > 0:
            self.times -= 1
            self.overtake(self)
        return super().swap(budget, seen=seen)


def drawing(budgets: InMemoryBudgets) -> DrawTokens:
    return DrawTokens(budgets=budgets, clock=ManualClock(NINE), ids=CountingIds())


def other_draws(budgets: InMemoryBudgets) -> None:
    seen = budgets.read(KEY)
    through = max(seen.taken_through, NINE) + timedelta(seconds=10)
    budgets.rows[KEY] = Budget(key=KEY, taken_through=through, write_id=f"other {through}")


def test_each_draw_is_one_write() -> None:
    budgets = InMemoryBudgets()
    draw = drawing(budgets)
    assert [draw.reserve(KEY, 6, 1) for _ in range(3)] == [
        NINE + timedelta(seconds=seconds) for seconds in (0, 10, 20)
    ]
    assert budgets.swaps == 3


def test_a_draw_that_takes_nothing_writes_nothing() -> None:
    budgets = InMemoryBudgets()
    draw = drawing(budgets)
    draw.reserve(KEY, 6, 1)
    assert draw.take_up_to(KEY, 6, 1, through=NINE)[0] == 0
    assert draw.take_up_to(KEY, 6, 5, through=NINE + timedelta(seconds=20)) == (
        2,
        NINE + timedelta(seconds=10),
    )
    assert budgets.swaps == 2


def test_who_is_slower_draws_behind_the_other() -> None:
    draw = drawing(Contended(2, other_draws))
    assert draw.reserve(KEY, 6, 1) == NINE + timedelta(seconds=20)


def test_who_is_always_slower_is_told_to_come_again() -> None:
    with pytest.raises(Unavailable, match="fires"):
        drawing(Contended(DRAWS_MAX, other_draws)).reserve(KEY, 6, 1)
    drawing(Contended(DRAWS_MAX - 1, other_draws)).reserve(KEY, 6, 1)
