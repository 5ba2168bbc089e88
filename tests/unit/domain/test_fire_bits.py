from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puntual.domain.expression import Fold, Gap, Rule
from puntual.domain.fire_bits import fire_bits
from puntual.domain.instant import MILLISECOND, MINUTE
from tests.builders import NINE, a_rule

RULES = (
    a_rule("rate(5 minutes)"),
    a_rule("rate(7 minutes)", anchor=NINE + timedelta(seconds=23)),
    a_rule("rate(30 hours)"),
    a_rule("0 * * * *"),
    a_rule("*/5 * * * *", "Europe/Madrid", fold=Fold.BOTH),
    a_rule("30 2 * * *", "Europe/Madrid", gap=Gap.FIRE_AFTER),
    a_rule("0 9 1 * *"),
    a_rule("at(2026-11-30T10:00:30)"),
    a_rule("*/10 * * * *", end_at=NINE + timedelta(hours=5, seconds=1)),
)
STARTS = (
    NINE,
    NINE + timedelta(seconds=17),
    datetime(2026, 3, 28, 22, 59, 59, tzinfo=UTC),
    datetime(2026, 10, 24, 12, 0, tzinfo=UTC),
)


def walked(rule: Rule, first: datetime, last: datetime) -> tuple[datetime, ...]:
    return rule.fires_between(first - MILLISECOND, last, limit=100_000)


@given(
    rule=st.sampled_from(RULES),
    start=st.sampled_from(STARTS),
    seconds=st.one_of(st.integers(-5, 130), st.integers(0, 3 * 86_400)),
    number=st.integers(1, 900),
)
def test_bits_count_and_find_what_a_walk_finds(
    rule: Rule, start: datetime, seconds: int, number: int
) -> None:
    last = start + timedelta(seconds=seconds)
    fires = walked(rule, start, last)
    found = fire_bits(rule, start, last)
    assert found.count == len(fires)
    assert found.fire(number) == (fires[number - 1] if number <= len(fires) else None)


@pytest.mark.parametrize("rule", RULES[:5])
def test_fires_are_left_out_by_their_minutes(rule: Rule) -> None:
    last = NINE + timedelta(days=2)
    fires = walked(rule, NINE, last)
    found = fire_bits(rule, NINE, last)
    assert found.without(fires[0]).count == len(fires) - 1
    assert found.without(fires[0]).without(fires[0]).count == len(fires) - 1
    assert found.without_range(fires[0], last).count == 0
    assert found.without_range(NINE - timedelta(days=9), NINE - MINUTE) == found


def test_a_month_of_minutes_is_counted_at_once() -> None:
    last = NINE + timedelta(days=28)
    assert fire_bits(a_rule("* * * * *"), NINE, last).count == 28 * 1440 + 1
    assert fire_bits(a_rule("* * * * *"), NINE, last).fire(1_000) == NINE + 999 * MINUTE
