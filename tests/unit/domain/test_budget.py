"""Budgets: what may be used when, as tables, and the laws of a rate."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puntual.domain.budget import (
    FIRES,
    Block,
    Budget,
    BudgetKey,
    block_after,
    burst_of,
    first_of,
    next_of,
    reserve,
    reserve_block,
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
    assert (budget.held, waiting_in(budget, 6, NINE)) == (0, 0)
    budget, _ = reserve(budget, 6, 3, NINE)
    assert (budget.held, waiting_in(budget, 6, NINE)) == (3, 3)
    assert waiting_in(budget, 6, after(25)) == 1
    assert waiting_in(budget, 6, after(3600)) == 0


@pytest.mark.parametrize(
    ("per_minute", "count", "seconds", "waiting"),
    [
        (60, 11, 0, 10),
        (60, 11, 0.001, 10),
        (60, 11, 0.999, 10),
        (60, 11, 1, 9),
        (60, 11, 9.999, 1),
        (60, 11, 10, 0),
        (600, 11, 0, 1),
        (600, 11, 0.1, 0),
        (7, 4, 0, 3),
        (7, 4, 60 * 3 / 7 + 0.001, 0),
    ],
)
def test_who_waits_is_whose_token_falls_due_later(
    per_minute: int, count: int, seconds: float, waiting: int
) -> None:
    budget, _ = reserve(WHOLE, per_minute, count, NINE)
    assert waiting_in(budget, per_minute, after(seconds)) == waiting


def test_a_draw_takes_the_name_of_the_former_write_away() -> None:
    signed = Budget(key=KEY, taken_through=EPOCH, write_id="one")
    assert reserve(signed, 6, 1, NINE)[0].write_id == ""


# Blocks


def a_block(per_minute: int, size: int, *, taken_through: datetime = EPOCH) -> Block:
    budget = replace(WHOLE, taken_through=taken_through)
    return reserve_block(budget, per_minute, size, NINE, held=0)[1]


def test_a_block_takes_what_it_holds_and_counts_what_waits() -> None:
    budget, block = reserve_block(WHOLE, 6, 3, NINE, held=2)
    assert (budget.taken_through, budget.held) == (after(30), 2)
    assert (block.first, block.size, block.next) == (NINE, 3, 0)
    budget, block = reserve_block(budget, 6, 1, NINE, held=1)
    assert (block.first, budget.held) == (after(30), 4), "its own first token waits too"


def test_the_tokens_of_a_block_fall_due_one_after_the_other() -> None:
    block, instants = a_block(6, 3), list[datetime | None]()
    for _ in range(4):
        block, instant = next_of(block, NINE)
        instants.append(instant)
    assert instants == [NINE, after(10), after(20), None]
    assert not block.wasted


def test_tokens_of_a_block_are_not_saved_up() -> None:
    block, instant = next_of(a_block(6, 9), after(35))
    assert (instant, block.next, block.wasted) == (after(40), 5, True)
    assert next_of(a_block(6, 3), after(35)) == (replace(a_block(6, 3), next=3, wasted=True), None)


def test_the_first_token_of_a_block_outlives_its_drawing() -> None:
    drawn = a_block(600, 1)
    assert drawn.first < NINE, "it is of the burst"
    assert first_of(drawn, after(1)) == (replace(drawn, next=1), after(1))
    assert first_of(a_block(6, 1, taken_through=after(60)), NINE)[1] == after(60)


@pytest.mark.parametrize(
    ("per_minute", "sizes"),
    [
        (1, [1, 1, 1]),
        (480, [1, 2, 2]),
        (60_000, [1, 2, 4, 8, 16, 32, 64, 128, 250, 250]),
        (10**6, [1, 2, 4, 8, 16, 32, 64, 128, 256, 500, 500]),
    ],
)
def test_blocks_grow_with_use_to_a_quarter_of_a_second(per_minute: int, sizes: list[int]) -> None:
    used: Block | None = None
    for size in sizes:
        assert block_after(used, per_minute) == size
        used = replace(a_block(per_minute, size), next=size)
    assert used is not None
    assert block_after(replace(used, wasted=True), per_minute) == 1, "some were lost"
    assert block_after(used, per_minute + 1) == 1, "the rate has changed"


# Laws


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
    """How many tokens are ahead of the rate rises by no more than a burst, whichever came first."""
    fullest = MINUTE * burst_of(per_minute) + INSTANT_STEP * per_minute
    lowest: timedelta | None = None
    for number, instant in enumerate(used(per_minute, draws)):
        ahead = MINUTE * number - (instant - NINE) * per_minute
        lowest = ahead if lowest is None else min(lowest, ahead)
        assert ahead - lowest + MINUTE <= fullest  # instants are whole microseconds


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


@given(RATES, st.lists(SHORT, min_size=1, max_size=40))
def test_blocks_keep_to_the_rate_too(per_minute: int, waits: list[timedelta]) -> None:
    budget, block, now, instants = WHOLE, None, NINE, list[datetime]()
    for wait in waits:
        now += wait
        instant = None
        if block is not None:
            block, instant = next_of(block, now)
        if instant is None:
            size = block_after(block, per_minute)
            budget, drawn = reserve_block(budget, per_minute, size, now, held=0)
            block, instant = first_of(drawn, now)
        instants.append(instant)
    assert instants == sorted(instants)
    for start, begun in enumerate(instants):
        for count, ended in enumerate(instants[start:], start=1):
            window = ended - begun + INSTANT_STEP
            assert count <= window * per_minute / MINUTE + burst_of(per_minute)


def test_who_comes_after_a_raise_does_not_wait_behind_those_who_came_before_it() -> None:
    budget, _ = reserve(WHOLE, 1, 10_000, NINE)
    assert waiting_in(budget, 600, NINE) == 9_999
    raised, first_at = reserve(budget, 600, 30, NINE)
    assert first_at == NINE
    assert reserve(raised, 600, 1, NINE)[1] == after(3)
    assert reserve_block(budget, 600, 1, NINE, held=0)[1].first == NINE
    assert take_up_to(budget, 600, 20, NINE, after(1))[1] == 11


def test_who_comes_after_a_limit_was_lowered_waits_behind_those_who_came_before_it() -> None:
    budget, _ = reserve(WHOLE, 600, 600, NINE)
    lowered, first_at = reserve(budget, 6, 1, NINE)
    assert first_at > after(55)
    assert reserve(lowered, 6, 1, NINE)[1] == first_at + timedelta(seconds=10)
