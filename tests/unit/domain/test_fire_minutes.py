"""The minutes of a day as bits: what walking a rule's fires finds, found at once."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from puntual.domain.cron_grammar import CronFields, parse
from puntual.domain.cron_search import WallPattern
from puntual.domain.errors import Rejected
from puntual.domain.expression import Fold, Gap, Rule
from puntual.domain.fire_minutes import FireMinutes
from puntual.domain.instant import DAY, DAY_MINUTES, DAY_SECONDS, MINUTE, minute_of
from tests.builders import a_rule
from tests.unit.domain.test_expression_laws import ZONES

EPOCH_DAY = date(1970, 1, 1).toordinal()
CALENDARS = (
    "* * *",
    "1,15 * *",
    "* 3,10,11 *",
    "* * 0,6",
    "13 * 5",
    "L * *",
    "1W * *",
    "15W * *",
    "30W * *",
    "31W * *",
    "* * 2#5",
    "* * L0,1#1",
)
TURNS = (
    datetime(2026, 3, 8, 7, tzinfo=UTC),  # New York, forward
    datetime(2026, 11, 1, 6, tzinfo=UTC),  # New York, back
    datetime(2026, 4, 4, 15, tzinfo=UTC),  # Lord Howe, back by half an hour
    datetime(2026, 3, 29, 1, tzinfo=UTC),  # Dublin; Troll, forward by two hours
    datetime(2026, 10, 25, 1, tzinfo=UTC),
    datetime(2026, 4, 23, 22, tzinfo=UTC),  # Cairo, forward at midnight
    datetime(2011, 12, 30, 10, tzinfo=UTC),  # Apia skips a day
    datetime(1994, 12, 31, 10, tzinfo=UTC),  # Kiritimati skips a day
)

fields = st.one_of(
    st.just("*"),
    st.lists(st.integers(0, 23), min_size=1, max_size=4).map(lambda few: ",".join(map(str, few))),
    st.integers(1, 23).map(lambda step: f"*/{step}"),
)
crons = st.builds(
    lambda minute, hour, days: f"{minute} {hour} {days}",
    fields,
    st.one_of(fields, st.just("1,2"), st.just("0-4")),
    st.sampled_from(CALENDARS),
)
rates = st.integers(1, 4_000).map(lambda minutes: f"rate({minutes} minutes)")
starts = st.one_of(
    st.builds(
        lambda turn, minutes: turn - timedelta(minutes=minutes),
        st.sampled_from(TURNS),
        st.integers(-120, DAY_MINUTES + 120),
    ),
    st.datetimes(
        min_value=datetime(1975, 1, 1),  # noqa: DTZ001 - Hypothesis adds the zone
        max_value=datetime(2060, 1, 1),  # noqa: DTZ001
        timezones=st.just(UTC),
    ),
).map(minute_of)


@st.composite
def rules_and_starts(draw: st.DrawFn) -> tuple[Rule, datetime]:
    start = draw(starts)

    def near() -> datetime:
        return start + timedelta(milliseconds=draw(st.integers(-3_600_000, 90_000_000)))

    def wall() -> str:
        return f"at({near() + timedelta(hours=draw(st.integers(-12, 13))):%Y-%m-%dT%H:%M:%S})"

    rule = Rule(
        expression=draw(st.one_of(crons, rates, st.builds(wall))),
        time_zone=draw(st.sampled_from(ZONES)),
        gap=draw(st.sampled_from(Gap)),
        fold=draw(st.sampled_from(Fold)),
        anchor=near() - timedelta(hours=draw(st.integers(0, 100))),
        start_at=near() if draw(st.booleans()) else None,
        end_at=near() if draw(st.booleans()) else None,
    )
    return rule, start


def walked(rule: Rule, start: datetime) -> list[int]:
    step = timedelta(microseconds=1)
    fires = rule.fires_between(start - step, start + DAY - step, limit=2 * DAY_MINUTES)
    return [(fire - start) // MINUTE for fire in fires]


def minutes_of(bits: int) -> list[int]:
    return [minute for minute in range(bits.bit_length()) if bits >> minute & 1]


@settings(max_examples=400, deadline=None)
@given(rules_and_starts())
def test_the_minutes_are_those_of_a_walk(drawn: tuple[Rule, datetime]) -> None:
    rule, start = drawn
    assert minutes_of(FireMinutes(start).of(rule)) == walked(rule, start)


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", ["*/20 * * * *", "*/20 0-3 * * *", "30 10,1,2 * * *"])
def test_the_minutes_around_a_change_of_clocks_are_those_of_a_walk(
    expression: str, zone: str, turn: datetime
) -> None:
    for gap in Gap:
        for fold in Fold:
            rule = replace(a_rule(expression, time_zone=zone), gap=gap, fold=fold)
            for hours in (24, 3, 1, 0):
                start = turn - timedelta(hours=hours)
                assert minutes_of(FireMinutes(start).of(rule)) == walked(rule, start)


def test_the_rules_of_a_day_do_not_mix() -> None:
    start = datetime(2026, 10, 31, 12, tzinfo=UTC)
    minutes = FireMinutes(start)
    rules = [
        replace(a_rule(expression, time_zone=zone), fold=fold)
        for expression in ("30 1 * * *", "30 * * * *", "at(2026-11-01T01:30:00)", "rate(2 hours)")
        for zone in ZONES
        for fold in Fold
    ]
    together = [minutes.of(rule) for rule in rules]
    assert together == [FireMinutes(start).of(rule) for rule in rules]


@pytest.mark.parametrize(
    "rule",
    [a_rule("of the future"), a_rule("0 9 * * *", time_zone="Mars/Phobos")],
    ids=["expression", "zone"],
)
def test_a_rule_of_a_later_release_is_refused(rule: Rule) -> None:
    with pytest.raises(Rejected):
        FireMinutes(datetime(2026, 11, 30, 9, tzinfo=UTC)).of(rule)


SEARCHED = (
    *(f"0 0 {calendar}" for calendar in CALENDARS),
    "0 0 29 2 *",
    "0 0 1-7 * 1",
    "0 0 31 * 5",
    "0 0 L,15 * *",
    "0 0 29W 2 *",
    "0 0 * 2 1#5",
    "0 0 * * L5",
    "cron(0 0 ? * 6L *)",
    "cron(0 0 ? * L 2026-2030/2)",
    "cron(0 0 31W * ? 2027)",
)


@pytest.mark.parametrize("expression", SEARCHED)
def test_the_days_that_are_named_are_those_that_the_library_finds(expression: str) -> None:
    fields = parse(expression)
    assert isinstance(fields, CronFields)
    pattern = WallPattern(fields)
    first = date(2024, 1, 1).toordinal()
    days = range(first, first + 21 * 366)  # as far as the fifth Monday of a February
    named = [day for day in days if fields.names(date.fromordinal(day))]
    found = []
    day: int | None = first
    while day is not None and day in days:
        wall = pattern.first_from((day - EPOCH_DAY) * DAY_SECONDS)
        day = None if wall is None else wall // DAY_SECONDS + EPOCH_DAY
        if day is not None and day in days:
            found.append(day)
            day += 1
    assert named == found
    assert named
