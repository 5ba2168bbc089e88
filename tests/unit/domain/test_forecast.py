"""What a forecast adds up, names and advises."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from puntual.domain.expression import Rule
from puntual.domain.forecast import (
    BUSIEST_SHOWN_MAX,
    EXPRESSIONS_SHOWN_MAX,
    HERDS_SHOWN_MAX,
    Forecast,
    Herd,
    RuleCount,
    RulePage,
    ZonedExpression,
    forecast_of,
    spread_by_hash,
)
from puntual.domain.instant import DAY, MINUTE
from tests.builders import NINE, a_rule

EXPRESSIONS = (
    "0 9 * * *",
    "*/15 * * * *",
    "5,25 8-18 * * 1-5",
    "0 0 1 * *",
    "30 2 * * *",
    "rate(7 minutes)",
    "rate(36 hours)",
    "at(2026-11-30T23:30:10)",
    "at(2026-12-09T12:00:00)",
)
ZONES = ("UTC", "Europe/Madrid", "America/New_York", "Asia/Kolkata")
NOWS = st.sampled_from(
    [NINE, NINE + timedelta(milliseconds=1), datetime(2026, 10, 24, 22, 59, 30, tzinfo=UTC)]
)


def of(*counts: tuple[Rule, int], now: datetime = NINE, share: float = 1.0) -> Forecast:
    page = RulePage(counts=tuple(RuleCount(*count) for count in counts), share=share)
    return forecast_of([page], now=now)


def fires_of(rule: Rule, start: datetime) -> Sequence[datetime]:
    step = timedelta(microseconds=1)
    return rule.fires_between(start - step, start + DAY - step, limit=2_000)


rule_counts = st.lists(
    st.tuples(
        st.builds(
            lambda expression, zone, seconds: replace(
                a_rule(expression, time_zone=zone), anchor=NINE - timedelta(seconds=seconds)
            ),
            st.sampled_from(EXPRESSIONS),
            st.sampled_from(ZONES),
            st.sampled_from([1, 60, 7_777]),
        ),
        st.integers(1, 40),
    ),
    max_size=12,
)


@settings(max_examples=100, deadline=None)
@given(rule_counts, NOWS)
def test_a_forecast_is_exact_where_all_was_read(
    counts: list[tuple[Rule, int]], now: datetime
) -> None:
    """By walking every fire of every rule."""
    forecast = of(*counts, now=now)
    minutes: Counter[int] = Counter()
    by_text: Counter[ZonedExpression] = Counter()
    schedules: Counter[ZonedExpression] = Counter()
    herds: dict[int, Counter[ZonedExpression]] = {}
    for rule, number in counts:
        zoned = ZonedExpression(rule.expression, rule.time_zone)
        schedules[zoned] += number
        for fire in fires_of(rule, forecast.start):
            minute = (fire - forecast.start) // MINUTE
            minutes[minute] += number
            by_text[zoned] += number
            herds.setdefault(minute, Counter())[zoned] += number
    assert forecast.minutes == tuple(minutes[minute] for minute in range(1_440))
    assert forecast.fires == minutes.total()
    assert forecast.schedules == forecast.schedules_read == schedules.total()
    assert not forecast.is_sampled
    on_zero = sum(
        fires for minute, fires in minutes.items() if (forecast.start + minute * MINUTE).minute == 0
    )
    assert forecast.minute_0_fires == on_zero
    assert {line.zoned: line.fires for line in forecast.expressions} == {
        zoned: by_text[zoned] for zoned in schedules
    }
    assert {line.zoned: line.schedules for line in forecast.expressions} == schedules
    assert [busy.fires for busy in forecast.busiest] == sorted(
        (fires for fires in minutes.values()), reverse=True
    )[:BUSIEST_SHOWN_MAX]
    for busy in forecast.busiest:
        herd = herds[(busy.start - forecast.start) // MINUTE]
        assert [fires for _, fires in busy.herds] == sorted(herd.values(), reverse=True)[
            :HERDS_SHOWN_MAX
        ]
        assert all(herd[zoned] == fires for zoned, fires in busy.herds)


@pytest.mark.parametrize(
    ("now", "start"),
    [
        (NINE, NINE),
        (NINE + timedelta(milliseconds=1), NINE + MINUTE),
        (NINE + timedelta(seconds=59), NINE + MINUTE),
    ],
)
def test_the_minutes_begin_with_the_first_that_has_not_begun(
    now: datetime, start: datetime
) -> None:
    forecast = of((a_rule("* * * * *"), 1), now=now)
    assert (forecast.start, forecast.end) == (start, start + DAY)
    assert forecast.minutes == (1,) * 1_440


def test_nothing_read_is_no_fires_and_no_share_of_them() -> None:
    forecast = of()
    assert forecast.minutes == (0,) * 1_440
    assert (forecast.fires, forecast.minute_0_share) == (0, None)
    assert (forecast.busiest, forecast.expressions, forecast.hints) == ((), (), ())


def test_most_of_the_fires_are_named_first_and_the_rest_is_counted() -> None:
    rules = [(a_rule(f"{minute} 9 * * *"), minute + 1) for minute in range(60)]
    forecast = of(*rules)
    assert forecast.distinct_expressions == 60
    assert len(forecast.expressions) == EXPRESSIONS_SHOWN_MAX
    assert [line.schedules for line in forecast.expressions] == list(range(60, 40, -1))
    assert [busy.fires for busy in forecast.busiest] == list(range(60, 50, -1))


def test_a_herd_is_found_among_those_that_have_more_schedules_but_fewer_fires() -> None:
    rates = [
        (replace(a_rule("rate(10 minutes)"), anchor=NINE + timedelta(minutes=minute)), 30)
        for minute in range(10)
    ]
    others = [(a_rule(f"0 {hour} * * *"), 40) for hour in range(10)]
    forecast = of(*rates, *others)
    shared = [busy for busy in forecast.busiest if busy.fires == 70]
    assert len(shared) == 9, "a rate has no fire at its anchor"
    assert all([fires for _, fires in busy.herds] == [40, 30] for busy in shared)


def test_herds_are_found_in_whatever_order_they_were_read() -> None:
    sizes = (5, 5, 5, 5, 5, 1, 9)
    forecast = of(*((a_rule(f"0,{n} 9 * * *"), size) for n, size in enumerate(sizes, 1)))
    assert [fires for _, fires in forecast.busiest[0].herds] == [9, 5, 5, 5, 5]


def test_the_herds_on_minute_0_are_those_with_most_fires_not_schedules() -> None:
    daily = [(a_rule(f"0 {hour} * * *"), 10) for hour in range(HERDS_SHOWN_MAX)]
    forecast = of(*daily, (a_rule("0 * * * *"), 9))
    assert forecast.minute_0_herds[0] == Herd(ZonedExpression("0 * * * *", "UTC"), 24 * 9)


def test_what_was_read_stands_for_all_of_it() -> None:
    forecast = of((a_rule("*/30 * * * *"), 10), (a_rule("0 9 * * *"), 5), share=0.25)
    assert forecast.is_sampled
    assert (forecast.schedules, forecast.schedules_read) == (60, 15)
    assert forecast.fires == 4 * (48 * 10 + 5)
    assert max(forecast.minutes) == 60
    assert forecast.busiest[0].fires == 60
    assert forecast.busiest[0].herds == (
        Herd(ZonedExpression("*/30 * * * *", "UTC"), 40),
        Herd(ZonedExpression("0 9 * * *", "UTC"), 20),
    )
    assert [line.schedules for line in forecast.expressions] == [40, 20]
    assert forecast.minute_0_share == pytest.approx((24 * 10 + 5) / (48 * 10 + 5))


@pytest.mark.parametrize("seed", range(3))
def test_the_estimate_from_a_fifth_of_a_large_tenant_is_within_a_few_percent(seed: int) -> None:
    source = random.Random(seed)
    rules = [
        a_rule(
            source.choice(
                [
                    f"{source.randrange(60)} {source.randrange(24)} * * *",
                    "0 * * * *",
                    f"*/{source.randrange(5, 60)} * * * *",
                    f"rate({source.randrange(5, 3_000)} minutes)",
                ]
            )
        )
        for _ in range(20_000)
    ]
    whole = of(*((rule, 1) for rule in rules))
    part = of(*((rule, 1) for rule in source.sample(rules, 4_000)), share=0.2)
    assert part.schedules == whole.schedules
    assert part.fires == pytest.approx(whole.fires, rel=0.05)
    assert part.minute_0_share == pytest.approx(whole.minute_0_share, rel=0.05)
    assert part.busiest[0].fires == pytest.approx(whole.busiest[0].fires, rel=0.05)


def test_pages_add_up() -> None:
    first = RulePage(counts=(RuleCount(a_rule("0 9 * * *"), 3),), share=0.5)
    second = RulePage(
        counts=(RuleCount(a_rule("0 9 * * *"), 4), RuleCount(a_rule("1 9 * * *"), 1)), share=0.25
    )
    forecast = forecast_of([first, second], now=NINE)
    assert forecast.share == 0.75
    assert forecast.schedules_read == first.schedules + second.schedules == 8
    assert forecast.minutes[:2] == (9, 1)
    assert [line.schedules for line in forecast.expressions] == [9, 1]


def test_rules_that_cannot_be_read_are_counted_and_stop_nobody() -> None:
    page = RulePage(
        counts=(
            RuleCount(a_rule("of the future"), 2),
            RuleCount(a_rule("0 9 * * *", time_zone="Mars/Phobos"), 3),
            RuleCount(a_rule("0 9 * * *"), 1),
        ),
        share=1.0,
        unreadable=4,
    )
    forecast = forecast_of([page], now=NINE)
    assert (forecast.fires, forecast.schedules, forecast.unreadable) == (1, 10, 9)
    assert forecast.unreadable_rule == "of the future"
    read = forecast_of([replace(page, unreadable_rule="#zz#")], now=NINE)
    assert read.unreadable_rule == "#zz#"


def test_a_herd_on_minute_0_is_told_how_to_spread() -> None:
    forecast = of((a_rule("0 9 * * *", time_zone="Europe/Madrid"), 61), (a_rule("7 9 * * *"), 39))
    general, replacement = forecast.hints
    assert general == (
        "61% of the fires fall on minute 0 of an hour, where an even spread has 2%: H in the "
        "minute field of a unix expression gives each schedule a minute of its own."
    )
    assert replacement == (
        "61 of them come from 0 9 * * * in Europe/Madrid; H 9 * * * would spread them."
    )


def test_a_herd_whose_expression_takes_no_hash_gets_the_general_hint() -> None:
    (hint,) = of((a_rule("rate(1 hour)"), 9)).hints
    assert hint.startswith("100% of the fires")


@pytest.mark.parametrize("expression", ["* * * * *", "7 * * * *", "*/5 * * * *"])
def test_fires_that_are_spread_get_no_hint(expression: str) -> None:
    assert of((a_rule(expression), 500)).hints == ()


def test_minute_0_is_that_of_utc() -> None:
    assert of((a_rule("0 9 * * *", time_zone="Asia/Kolkata"), 1)).minute_0_share == 0
    assert of((a_rule("30 9 * * *", time_zone="Asia/Kolkata"), 1)).minute_0_share == 1


@pytest.mark.parametrize(
    ("expression", "spread"),
    [
        ("0 * * * *", "H * * * *"),
        ("0 9 * * MON", "H 9 * * MON"),
        ("*/15 8-18 * * *", "H/15 8-18 * * *"),
        ("0,30 * * * *", None),
        ("@hourly", None),
        ("rate(1 hour)", None),
        ("cron(0 9 * * ? *)", None),
    ],
)
def test_only_unix_expressions_on_minute_0_are_rewritten(
    expression: str, spread: str | None
) -> None:
    assert spread_by_hash(expression) == spread
