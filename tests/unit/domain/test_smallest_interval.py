from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from puntual.domain.smallest_interval import smallest_interval
from tests.builders import a_rule

DAY = timedelta(days=1)
START = datetime(2026, 12, 31, 23, 59, tzinfo=UTC)
EVERY_WEEKDAY_OF_EVERY_DATE = timedelta(days=28 * 366)
"""After 28 years dates and weekdays meet again as before."""

FIRES_MAX = 2_000

UP_TO_A_DAY = {
    "rate(7 minutes)": timedelta(minutes=7),
    "rate(5 days)": 5 * DAY,
    "* * * * *": timedelta(minutes=1),
    "*/15 * * * *": timedelta(minutes=15),
    "7-59/13 * * * *": timedelta(minutes=8),
    "0,7,20,31,45 * * * *": timedelta(minutes=7),
    "0 * * * *": timedelta(hours=1),
    "0 9 * * *": DAY,
    "0 9,17 * * 1": timedelta(hours=8),
    "0,50 0,23 * * *": timedelta(minutes=10),
    "0,50 0,23 * * 1,3": timedelta(minutes=50),
    "5 0,23 1,2 * *": timedelta(hours=1),
    "5 0,23 1,3 * *": timedelta(hours=23),
    "5 0,23 1,31 1,3 *": timedelta(hours=23),
    "5 0,23 1,31 12,1 *": timedelta(hours=1),
    "5 0,23 1,28 2,3 *": timedelta(hours=1),
    "5 0,23 1,29 2,3 *": timedelta(hours=1),
    "5 0,23 1,27 2,3 *": timedelta(hours=23),
    "5 0,23 L * *": timedelta(hours=23),
    "5 0,23 1,L * *": timedelta(hours=1),
    "5 0,23 1,L 1,3 *": timedelta(hours=23),
    "5 0,23 27,L 2 *": timedelta(hours=1),
    "5 0,23 27,L 3 *": timedelta(hours=23),
    "5 0,23 15W * *": timedelta(hours=23),
    "5 0,23 * * 6,0": timedelta(hours=1),
    "5 0,23 * * 1,3,5": timedelta(hours=23),
    "5 0,23 * * L5,6#1": timedelta(hours=1),
    "5 0,23 * * 1#1,3#1": timedelta(hours=23),
    "5 0,23 13 * 5": timedelta(hours=1),
    "cron(5 0,23 ? * 7,1 *)": timedelta(hours=1),
    "cron(5 0,23 L * ? *)": timedelta(hours=23),
    "cron(5 0,23 ? * L *)": timedelta(hours=23),
    "cron(5 0,23 ? * 6L *)": timedelta(hours=23),
}


@pytest.mark.parametrize(("expression", "expected"), UP_TO_A_DAY.items())
def test_up_to_a_day_it_is_as_far_as_two_fires_lie_apart_at_the_least(
    expression: str, expected: timedelta
) -> None:
    rule = a_rule(expression)
    end = START + EVERY_WEEKDAY_OF_EVERY_DATE
    fires = rule.fires_between(START, end, limit=FIRES_MAX)
    assert min(later - earlier for earlier, later in pairwise(fires)) == expected
    assert smallest_interval(rule) == expected


@pytest.mark.parametrize("expression", ["0 0 1 * *", "0 9 * * 1", "0 0 29 2 *", "30 6 15W * *"])
def test_beyond_a_day_it_says_that_it_is_beyond(expression: str) -> None:
    found = smallest_interval(a_rule(expression))
    assert found is not None
    assert found > DAY


def test_a_rule_of_one_fire_has_none() -> None:
    assert smallest_interval(a_rule("at(2026-12-01T09:00:00)")) is None


def parts(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    listed = st.sets(number, min_size=1, max_size=4).map(lambda s: ",".join(map(str, sorted(s))))
    return st.just("*") | listed


EXPRESSIONS = st.one_of(
    st.builds("{} {} {} {} *".format, *(parts(*p) for p in ((0, 59), (0, 23), (1, 31), (1, 12)))),
    st.builds("{} {} * {} {}".format, *(parts(*p) for p in ((0, 59), (0, 23), (1, 12), (0, 6)))),
    st.builds(
        "{} {} {},L * *".format, *(parts(*p) for p in ((0, 59), (0, 23))), st.integers(1, 31)
    ),
    st.builds("{} {} {}W * *".format, *(parts(*p) for p in ((0, 59), (0, 23))), st.integers(1, 31)),
    st.builds(
        "{} {} {} * 1-3".format, *(parts(*p) for p in ((0, 59), (0, 23))), st.integers(1, 31)
    ),
)


@settings(max_examples=150, deadline=None)
@given(
    expression=EXPRESSIONS,
    start=st.datetimes(datetime(2026, 1, 1), datetime(2054, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 Hypothesis adds the zone
)
def test_no_two_fires_are_nearer_where_the_clocks_run_on(expression: str, start: datetime) -> None:
    rule = a_rule(expression)
    found = smallest_interval(rule)
    assert found is not None
    fires = rule.fires_between(start, start + timedelta(days=800), limit=60)
    for earlier, later in pairwise(fires):
        assert later - earlier >= min(found, DAY)
