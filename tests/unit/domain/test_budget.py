"""Budgets: what may be used when, as tables, and the laws of a rate."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puntual.domain.budget import (
    FIRES,
    Budget,
    BudgetKey,
    burst_of,
    reserve,
    take_up_to,
    time_of,
    waiting_in,
)
from puntual.domain.instant import EPOCH, INSTANT_STEP, MINUTE
from tests.builders import NINE, TENANT

KEY = BudgetKey(tenant=TENANT, name=FIRES)
WHOLE = Budget(key=KEY, taken_through=EPOCH)


def after(seconds: float) -> datetime:
    return NINE + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("per_minute", "burst"), [(1, 1), (60, 1), (119, 1), (120, 2), (6000, 100)]
)
def test_a_second_of_the_rate_may_be_used_at_once(per_minute: int, burst: int) -> None:
    budget, granted = take_up_to(WHOLE, per_minute, 10**6, NINE, NINE)
    assert granted == burst_of(per_minute) == burst
    assert take_up_to(budget, per_minute, 1, NINE, NINE) == (budget, 0)


@pytest.mark.parametrize(
    ("per_minute", "counts", "firsts"),
    [
        (6, [1, 1, 1], [0, 10, 20]),
        (6, [3, 1], [0, 30]),
        (1, [1, 1], [0, 60]),
        (120, [1, 1, 1, 1], [0, 0, 0.5, 1]),
        (7, [1, 1], [0, 8.571429]),
    ],
)
def test_tokens_of_the_future_are_reserved_one_after_the_other(
    per_minute: int, counts: list[int], firsts: list[float]
) -> None:
    budget, reserved = WHOLE, []
    for count in counts:
        budget, first_at = reserve(budget, per_minute, count, NINE)
        reserved.append(first_at)
    assert reserved == [after(seconds) for seconds in firsts]


def test_what_nobody_used_is_gone_but_for_the_burst() -> None:
    budget, _ = reserve(WHOLE, 6, 1, NINE)
    later = after(3600)
    assert take_up_to(budget, 6, 5, later, later)[1] == 1


@pytest.mark.parametrize(("seconds", "granted"), [(0, 1), (9.9, 1), (10, 2), (60, 7), (600, 9)])
def test_up_to_an_instant_what_falls_due_is_granted(seconds: float, granted: int) -> None:
    assert take_up_to(WHOLE, 6, 9, NINE, after(seconds))[1] == granted


def test_nothing_is_granted_before_what_others_reserved() -> None:
    budget, _ = reserve(WHOLE, 6, 7, NINE)
    assert take_up_to(budget, 6, 1, NINE, after(60)) == (budget, 0)
    assert take_up_to(budget, 6, 1, NINE, after(70))[1] == 1


def test_tokens_taken_before_they_fall_due_are_counted_as_held() -> None:
    budget, _ = reserve(WHOLE, 6, 1, NINE)
    assert (budget.held, waiting_in(budget, 6, NINE)) == (0, 1)
    budget, _ = reserve(budget, 6, 3, NINE)
    assert (budget.held, waiting_in(budget, 6, NINE)) == (3, 4)
    assert waiting_in(budget, 6, after(25)) == 1
    assert waiting_in(budget, 6, after(3600)) == 0


def test_a_draw_takes_the_name_of_the_former_write_away() -> None:
    signed = Budget(key=KEY, taken_through=EPOCH, write_id="one")
    assert reserve(signed, 6, 1, NINE)[0].write_id == ""


@dataclass(frozen=True, slots=True)
class Draw:
    wait: timedelta
    wanted: int
    ahead: timedelta | None


RATES = st.integers(min_value=1, max_value=100_000)
SHORT = st.integers(min_value=0, max_value=120_000).map(lambda count: timedelta(milliseconds=count))
DRAWS = st.lists(
    st.builds(Draw, SHORT, st.integers(min_value=1, max_value=200), st.none() | SHORT),
    min_size=1,
    max_size=12,
)


def used(per_minute: int, draws: list[Draw]) -> list[datetime]:
    """Give when each token may be used first, in the order in which they were drawn.

    A draw up to an instant uses what was due at once, and the rest as it falls due.
    """
    budget, now, instants = WHOLE, NINE, list[datetime]()
    for draw in draws:
        now += draw.wait
        count = draw.wanted
        if draw.ahead is None:
            budget, _ = reserve(budget, per_minute, count, now)
        else:
            budget, count = take_up_to(budget, per_minute, draw.wanted, now, now + draw.ahead)
        first = budget.taken_through - time_of(count, per_minute)
        instants += [max(now, first + time_of(n, per_minute)) for n in range(count)]
    return instants


@given(RATES, DRAWS)
def test_no_window_holds_more_than_the_rate_and_a_burst(per_minute: int, draws: list[Draw]) -> None:
    instants = used(per_minute, draws)
    for start, begun in enumerate(instants):
        for count, ended in enumerate(instants[start:], start=1):
            window = ended - begun + INSTANT_STEP  # instants are whole microseconds
            assert count <= window * per_minute / MINUTE + burst_of(per_minute)


@given(RATES, DRAWS)
def test_instants_rise(per_minute: int, draws: list[Draw]) -> None:
    instants = used(per_minute, draws)
    assert instants == sorted(instants)


@given(RATES, DRAWS)
def test_every_token_that_is_reserved_falls_due(per_minute: int, draws: list[Draw]) -> None:
    """Nobody waits longer than those before it take at the rate, rounding apart."""
    budget, now, taken = WHOLE, NINE, 0
    for draw in draws:
        now += draw.wait
        budget, first_at = reserve(budget, per_minute, draw.wanted, now)
        assert now <= first_at <= now + time_of(taken, per_minute) + len(draws) * INSTANT_STEP
        taken += draw.wanted


@given(RATES, st.integers(min_value=0, max_value=10**6))
def test_the_time_of_tokens_is_never_shorter_than_the_rate_says(
    per_minute: int, count: int
) -> None:
    assert time_of(count, per_minute) * per_minute >= count * MINUTE
    assert (time_of(count, per_minute) - INSTANT_STEP) * per_minute < count * MINUTE
