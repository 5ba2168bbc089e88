"""Sentences about rules: their wording, and that no two rules that differ share one."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puntual.domain.cron_grammar import At, CronFields, Parsed, Rate
from puntual.domain.description import sentence_of
from puntual.domain.expression import Rule

NOW = datetime(2026, 12, 1, tzinfo=UTC)
LATER = datetime(2027, 12, 1, 8, 30, tzinfo=UTC)


def a_rule(
    expression: str,
    time_zone: str = "UTC",
    *,
    start_at: datetime | None = None,
    end_at: datetime | None = None,
) -> Rule:
    return Rule(
        expression=expression, time_zone=time_zone, anchor=NOW, start_at=start_at, end_at=end_at
    )


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("* * * * *", "Every minute, in UTC."),
        ("*/15 * * * *", "Every 15 minutes, in UTC."),
        ("0,0,30 * * * *", "Every 30 minutes, in UTC."),
        ("0 * * * *", "Every hour at minute 0, in UTC."),
        ("@hourly", "Every hour at minute 0, in UTC."),
        ("5/15 * * * *", "Every hour at minutes 5, 20, 35 and 50, in UTC."),
        ("*/7 * * * *", "Every hour at minutes 0 to 56 in steps of 7, in UTC."),
        ("0-9 * * * *", "Every hour at minutes 0 to 9, in UTC."),
        ("0-9,30 * * * *", "Every hour at minutes 0 to 9 and 30, in UTC."),
        ("*/90 * * * *", "Every hour at minute 0, in UTC."),
        ("0 * L * *", "Every hour at minute 0 on the last day of every month, in UTC."),
        ("*/5 * * * 1-5", "Every 5 minutes from Monday to Friday, in UTC."),
        ("*/5 * * 1 *", "Every 5 minutes on every day of January, in UTC."),
        ("@daily", "At 00:00 every day, in UTC."),
        ("  0   9\t* * *", "At 09:00 every day, in UTC."),
        ("0 9-9 * * *", "At 09:00 every day, in UTC."),
        ("0 9,17 * * *", "At 09:00 and 17:00 every day, in UTC."),
        ("*/20 1 * * *", "At 01:00, 01:20 and 01:40 every day, in UTC."),
        ("20 */4 * * *", "Every 4 hours from 00:20 through 20:20 every day, in UTC."),
        ("0 9-17 * * *", "Every hour from 09:00 through 17:00 every day, in UTC."),
        ("*/15 9-17 * * *", "Every 15 minutes from 09:00 through 17:45 every day, in UTC."),
        ("* 9 * * *", "Every minute from 09:00 through 09:59 every day, in UTC."),
        (
            "0 22-2 * * *",
            "At 00:00, 01:00, 02:00, 22:00 and 23:00 every day, in UTC.",
        ),
        ("* 0-4,22 * * *", "Every minute of hours 0 to 4 and 22 every day, in UTC."),
        ("*/20 9,12 * * *", "At minutes 0, 20 and 40 of hours 9 and 12 every day, in UTC."),
        (
            "0,10,20,30,41 9 * * *",
            "At minutes 0, 10, 20, 30 and 41 of hour 9 every day, in UTC.",
        ),
        ("0 9 * * mon-Fri", "At 09:00 from Monday to Friday, in UTC."),
        ("0 9 * * 5-7", "At 09:00 from Friday to Sunday, in UTC."),
        ("0 9 * * FRI-MON", "At 09:00 from Friday to Monday, in UTC."),
        ("0 9 * * 7", "At 09:00 on Sunday, in UTC."),
        ("0 9 * * 0,6", "At 09:00 on Saturday and Sunday, in UTC."),
        ("0 9 * * 1-7/2", "At 09:00 on Monday, Wednesday, Friday and Sunday, in UTC."),
        ("0 0 * * 0-7", "At 00:00 every day, in UTC."),
        ("0 0 1-31 * *", "At 00:00 every day, in UTC."),
        ("0 0 1-31 * 1", "At 00:00 every day, in UTC."),
        ("0 0 13 * 0-6", "At 00:00 every day, in UTC."),
        ("0 0 * 3 *", "At 00:00 on every day of March, in UTC."),
        ("0 0 * 3-5 *", "At 00:00 on every day of every month from March to May, in UTC."),
        ("0 0 1 NOV-FEB *", "At 00:00 on day 1 of every month from November to February, in UTC."),
        ("0 0 1,2 1 *", "At 00:00 on days 1 and 2 of January, in UTC."),
        ("30 2 1,15 jan,Jul *", "At 02:30 on days 1 and 15 of January and July, in UTC."),
        ("0 0 1-7,15 * *", "At 00:00 on days 1 to 7 and 15 of every month, in UTC."),
        ("0 0 */10 * *", "At 00:00 on days 1, 11, 21 and 31 of every month, in UTC."),
        ("0 0 L * *", "At 00:00 on the last day of every month, in UTC."),
        ("0 0 15,L * *", "At 00:00 on day 15 and on the last day of every month, in UTC."),
        ("0 0 15W * *", "At 00:00 on the weekday nearest to day 15 of every month, in UTC."),
        ("0 0 29 2 *", "At 00:00 on day 29 of February, in UTC."),
        ("0 0 13 * 5", "At 00:00 on day 13 of every month or on Friday, in UTC."),
        (
            "0 0 31 2 0",
            "At 00:00 on day 31 of February or on Sunday in February, in UTC.",
        ),
        (
            "0 0 1,L * 5",
            "At 00:00 on day 1 and on the last day of every month or on Friday, in UTC.",
        ),
        ("0 0 * 2 MON#5", "At 00:00 on the fifth Monday of February, in UTC."),
        ("0 0 * * L5", "At 00:00 on the last Friday of every month, in UTC."),
        ("0 0 * * 1#1,0#1,1#1",
         "At 00:00 on the first Sunday and the first Monday of every month, in UTC."),
        ("0 0 * * L0,6#4",
         "At 00:00 on the fourth Saturday and the last Sunday of every month, in UTC."),
        ("cron(0 12 ? * 1 *)", "At 12:00 on Sunday, in UTC."),
        ("cron(0 9 ? * L *)", "At 09:00 on Saturday, in UTC."),
        ("cron(0 9 ? * 3#2 *)", "At 09:00 on the second Tuesday of every month, in UTC."),
        ("cron(0 9 31W 1,5 ? *)",
         "At 09:00 on the weekday nearest to day 31 of January and May, in UTC."),
        ("cron(0 0 1 1 ? 2150)", "At 00:00 on day 1 of January in the year 2150, in UTC."),
        (
            "cron(15 10 ? * 6L 2022-2023)",
            "At 10:15 on the last Friday of every month in the years 2022 and 2023, in UTC.",
        ),
        (
            "cron(0 0 * * ? 2027-2199/4)",
            "At 00:00 every day in the years 2027 to 2199 in steps of 4, in UTC.",
        ),
        ("rate(1 minute)", "Every minute, counted from 2026-12-01T00:00:00Z."),
        ("rate(90 minutes)", "Every 90 minutes, counted from 2026-12-01T00:00:00Z."),
        ("rate(60 minutes)", "Every hour, counted from 2026-12-01T00:00:00Z."),
        ("rate(1 day)", "Every 24 hours, counted from 2026-12-01T00:00:00Z."),
        ("rate(7 days)", "Every 7 days of 24 hours, counted from 2026-12-01T00:00:00Z."),
        ("at(2026-12-24T09:00:00)", "Once, at 2026-12-24 09:00:00 in UTC."),
    ],
)  # fmt: skip
def test_a_rule_is_described_in_a_sentence(expression: str, sentence: str) -> None:
    assert a_rule(expression).describe() == sentence


def test_the_zone_and_the_bounds_are_said() -> None:
    zone = "Europe/Berlin"
    assert a_rule("0 9 * * *", zone).describe() == "At 09:00 every day, in Europe/Berlin."
    assert a_rule("0 9 * * *", start_at=NOW, end_at=LATER).describe() == (
        "At 09:00 every day, in UTC, from 2026-12-01T00:00:00Z until 2027-12-01T08:30:00Z."
    )
    assert a_rule("at(2026-12-24T09:00:00)", zone, end_at=LATER).describe() == (
        "Once, at 2026-12-24 09:00:00 in Europe/Berlin, until 2027-12-01T08:30:00Z."
    )
    assert a_rule("rate(2 hours)", start_at=NOW).describe() == (
        "Every 2 hours, counted from 2026-12-01T00:00:00Z, from 2026-12-01T00:00:00Z on."
    )


def a_set(low: int, high: int) -> st.SearchStrategy[frozenset[int]]:
    """Sets as fields give them: a few values, a range, steps, or all."""
    numbers = st.integers(low, high)
    ranges = st.builds(
        lambda ends, step: frozenset(range(min(ends), max(ends) + 1, step)),
        st.tuples(numbers, numbers),
        st.sampled_from([1, 1, 2, 3, 5, 15]),
    )
    every = st.just(frozenset(range(low, high + 1)))
    return st.one_of(st.frozensets(numbers, min_size=1, max_size=6), ranges, every)


ORDINALS = st.lists(
    st.builds("{}#{}".format, st.integers(0, 6), st.integers(1, 5))
    | st.builds("L{}".format, st.integers(0, 6)),
    min_size=1,
    max_size=3,
).map(tuple)
EVERY_DAY: dict[str, Any] = {"days": frozenset(range(1, 32)), "any_day": True}
EVERY_WEEKDAY: dict[str, Any] = {"weekdays": frozenset(range(7)), "any_weekday": True}
DAYS = st.one_of(
    st.just(EVERY_DAY),
    st.fixed_dictionaries({"days": a_set(1, 31), "last_day": st.booleans()}),
    st.just({"days": frozenset(), "last_day": True}),
    st.fixed_dictionaries({"days": st.just(frozenset()), "nearest_weekday": st.integers(1, 31)}),
)
WEEKDAYS = st.one_of(
    st.just(EVERY_WEEKDAY),
    st.fixed_dictionaries({"weekdays": a_set(0, 6)}),
    st.fixed_dictionaries({"weekdays": st.just(frozenset()), "ordinal_weekdays": ORDINALS}),
)


@st.composite
def crons(draw: st.DrawFn) -> CronFields:
    days, weekdays = draw(DAYS), draw(WEEKDAYS)
    # The grammar refuses these two beside a restriction of the other day field.
    if "nearest_weekday" in days:
        weekdays = EVERY_WEEKDAY
    if "ordinal_weekdays" in weekdays:
        days = EVERY_DAY
    unsaid: dict[str, Any] = {
        "any_day": False,
        "last_day": False,
        "nearest_weekday": None,
        "any_weekday": False,
        "ordinal_weekdays": (),
    }
    return CronFields(
        minutes=draw(a_set(0, 59)),
        hours=draw(a_set(0, 23)),
        months=draw(a_set(1, 12)),
        years=draw(st.none() | a_set(1970, 2199)),
        **{**unsaid, **days, **weekdays},
    )


def meaning_of(fields: CronFields) -> object:
    """Reduce fields to what decides their fires: a truth table of days, and what is beside it."""

    def names(day: int, weekday: int) -> bool:
        in_month, in_week = day in fields.days, weekday in fields.weekdays
        either = not fields.any_day and not fields.any_weekday
        return (in_month or in_week) if either else (in_month and in_week)

    table = {(day, weekday) for day in range(1, 32) for weekday in range(7) if names(day, weekday)}
    every_day = len(table) == 31 * 7
    return (
        fields.minutes,
        fields.hours,
        fields.months,
        fields.years,
        frozenset(table),
        fields.last_day and not every_day,
        fields.nearest_weekday,
        frozenset(fields.ordinal_weekdays),
    )


def meaning(parsed: Parsed) -> object:
    return meaning_of(parsed) if isinstance(parsed, CronFields) else parsed


def described(parsed: Parsed, time_zone: str = "UTC") -> str:
    return sentence_of(parsed, time_zone=time_zone, anchor=NOW, start_at=None, end_at=None)


FIELDS = (
    ("minutes",),
    ("hours",),
    ("months",),
    ("years",),
    ("days", "any_day", "last_day", "nearest_weekday"),
    ("weekdays", "any_weekday", "ordinal_weekdays"),
)


def is_written_so(fields: CronFields) -> bool:
    """Whether the grammar lets the two day fields stand beside each other."""
    if fields.nearest_weekday is not None and not fields.any_weekday:
        return False
    return not fields.ordinal_weekdays or fields.any_day


@given(crons(), crons(), st.sampled_from(FIELDS))
def test_rules_of_the_same_description_mean_the_same(
    one: CronFields, other: CronFields, field: tuple[str, ...]
) -> None:
    """Any two, and two that share all but one of their fields, which are the likelier to clash."""
    near = replace(one, **{name: getattr(other, name) for name in field})
    for another in (other, near):
        if is_written_so(another) and described(one) == described(another):
            assert meaning(one) == meaning(another)


@given(crons(), st.data())
def test_a_value_more_or_less_is_another_description(
    fields: CronFields, data: st.DataObject
) -> None:
    bounds = {"minutes": (0, 59), "hours": (0, 23), "months": (1, 12), "years": (1970, 2199)}
    name = data.draw(st.sampled_from([*bounds, "days", "weekdays"]))
    low, high = bounds.get(name) or ((1, 31) if name == "days" else (0, 6))
    values = getattr(fields, name)
    changed = values ^ {data.draw(st.integers(low, high))} if values else None
    if not changed or (name == "days" and fields.any_day) or fields.ordinal_weekdays:
        return
    if name == "weekdays" and fields.any_weekday:
        return
    near = replace(fields, **{name: changed})
    assert (described(fields) == described(near)) == (meaning(fields) == meaning(near))


MOMENTS = st.datetimes(timezones=st.just(UTC)) | st.just(NOW)
ELAPSED = st.builds(lambda minutes: Rate(timedelta(minutes=minutes)), st.integers(1, 10**7))
ONCE = st.datetimes().map(lambda wall: At(wall.replace(microsecond=0)))
ANY = crons() | ELAPSED | ONCE
PAIRS = st.tuples(ANY, ANY) | ANY.map(lambda parsed: (parsed, parsed))
PARTS = st.fixed_dictionaries(
    {
        "time_zone": st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]),
        "anchor": MOMENTS,
        "start_at": st.none() | MOMENTS,
        "end_at": st.none() | MOMENTS,
    }
)


@given(PAIRS, PARTS, PARTS, st.sampled_from(["time_zone", "anchor", "start_at", "end_at"]))
def test_zone_bounds_and_anchor_are_never_lost(
    pair: tuple[Parsed, Parsed], parts: dict[str, Any], others: dict[str, Any], name: str
) -> None:
    one, other = pair
    for changed in (others, {**parts, name: others[name]}):
        alike = sentence_of(one, **parts) == sentence_of(other, **changed)
        # A rate does not look at the zone, and nothing else at the anchor.
        ignored = "time_zone" if isinstance(one, Rate) else "anchor"
        same_parts = all(parts[each] == changed[each] for each in parts if each != ignored)
        assert alike == (meaning(one) == meaning(other) and same_parts)


@given(crons())
def test_a_sentence_is_one_and_counts_as_english_does(fields: CronFields) -> None:
    sentence = described(fields)
    assert sentence[0].isupper()
    assert sentence.endswith(", in UTC.")
    assert "  " not in sentence
    counted = r"\b(?:minute|hour|day|year)(s?) \d+(, \d| and \d| to \d)?"
    for plural, more in re.findall(counted, sentence):
        assert bool(plural) == bool(more), sentence
    assert not re.search(r"\b1 (?:minutes|hours|days)", sentence)
