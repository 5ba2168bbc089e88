"""Rules at create: what is refused and in which words, what H becomes, what is warned of."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest

from puntual.domain.errors import Rejected
from puntual.domain.expression import (
    AtInThePast,
    Fold,
    Gap,
    InvalidExpression,
    NeverFires,
    Rule,
    UnknownTimeZone,
    rule_of,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_rule(
    expression: object = "0 9 * * *",
    *,
    time_zone: object = "UTC",
    gap: Gap = Gap.SKIP,
    fold: Fold = Fold.AUTO,
    start_at: datetime | None = None,
    end_at: datetime | None = None,
    hash_key: str = "",
) -> Rule:
    return rule_of(
        expression,
        time_zone=time_zone,
        gap=gap,
        fold=fold,
        anchor=NOW,
        now=NOW,
        start_at=start_at,
        end_at=end_at,
        hash_key=hash_key,
    )


@pytest.mark.parametrize(
    ("expression", "parts"),
    [
        ("60 * * * *", ["minute field", "'60'", "0-59"]),
        ("0 25 * * *", ["hour field", "'25'", "0-23"]),
        ("0 0 0 * *", ["day-of-month field", "'0'", "1-31"]),
        ("0 0 * 13 *", ["month field", "'13'", "1-12 or JAN-DEC"]),
        ("0 0 * * 8", ["day-of-week field", "'8'", "0-7"]),
        ("0 0 * * MONDAY", ["day-of-week field", "'MONDAY'", "SUN-SAT"]),
        ("*/0 * * * *", ["minute field", "'*/0'", "a step is at least 1"]),
        ("0 22-2/3 * * *", ["hour field", "'22-2/3'", "two terms"]),
        ("0 0 * * FRI-MON/2", ["day-of-week field", "'FRI-MON/2'", "two terms"]),
        ("0 0 * * 5/2", ["day-of-week field", "'5/2'", "1-5/2"]),
        ("0 0 */2 * 1", ["day-of-month field", "'*/2'", "1-31/2", "either-or", "write *"]),
        ("0 0 1 * */2", ["day-of-week field", "'*/2'", "0-6/2", "either-or", "write *"]),
        ("0 0 1 * */1", ["day-of-week field", "'*/1'"]),
        ("0 0 1 * 1#2", ["day-of-week field", "'1#2'", "day-of-month field is *"]),
        ("0 0 1 * L5", ["day-of-week field", "'L5'", "day-of-month field is *"]),
        ("0 0 15W * 1", ["day-of-month field", "'15W'", "day-of-week field is *"]),
        ("0 0 1,15W * *", ["day-of-month field", "'15W'", "nW alone"]),
        ("0 0 LW * *", ["day-of-month field", "'LW'"]),
        ("0 0 L-3 * *", ["day-of-month field", "'L-3'"]),
        ("0 0 * * 5L", ["day-of-week field", "'5L'"]),
        ("0 0 * * L", ["day-of-week field", "'L'"]),
        ("0 0 * * FRI#L", ["day-of-week field", "'FRI#L'"]),
        ("0 0 * * 1#6", ["day-of-week field", "'1#6'", "n#1 to n#5"]),
        ("0 0 * * 1,5#3", ["day-of-week field", "'1,5#3'", "plain days"]),
        ("0 0 ? * 1", ["day-of-month field", "'?'"]),
        ("R * * * *", ["minute field", "'R'"]),
        ("R(0-29) * * * *", ["minute field", "'R(0-29)'", "0-59"]),
        ("? * * * *", ["minute field", "'?'"]),
        ("0 0 * * ?", ["day-of-week field", "'?'"]),
        ("0 50-10/20 * * *", ["hour field", "'50'"]),
        ("50-10/20 * * * *", ["minute field", "'50-10/20'", "two terms"]),
        ("0 0 28-3/2 * *", ["day-of-month field", "'28-3/2'", "two terms"]),
        ("0 0 1 NOV-FEB/2 *", ["month field", "'NOV-FEB/2'", "two terms"]),
        ("0 0 * * MON/2", ["day-of-week field", "'MON/2'", "1-5/2"]),
        ("0 0 1 * MON#2", ["day-of-week field", "'MON#2'", "day-of-month field is *"]),
        ("0 0 L * 1#2", ["day-of-week field", "'1#2'", "day-of-month field is *"]),
        ("0 0 1W * MON-FRI", ["day-of-month field", "'1W'", "day-of-week field is *"]),
        ("0 0 32W * *", ["day-of-month field", "'32'", "1-31"]),
        ("H * * * *", ["minute field", "'H'", "id of a schedule"]),
        ("0 9 * *", ["five unix cron fields", "cron(six fields)"]),
        ("0 9 * * ? *", ["five unix cron fields", "cron(six fields)"]),
        ("0 9 * * * 2026", ["five unix cron fields", "'0 9 * * * 2026'"]),
        ("*/10 * * * * *", ["five unix cron fields", "'*/10 * * * * *'"]),
        ("0 0 9 * * MON 2026", ["five unix cron fields"]),
        ("@reboot", ["@hourly @daily"]),
        ("@every 5m", ["@hourly @daily"]),
        ("CRON(0 9 * * ? *)", ["cron(six fields)"]),
        ("cron(0 9 * * ?)", ["six fields", "year"]),
        ("cron(0 9 1 * MON *)", ["'1 and MON'", "exactly one of the day-of-month field"]),
        ("cron(0 9 ? * 0 *)", ["day-of-week field", "'0'", "1-7 (1 is Sunday)"]),
        ("cron(0 9 ? * 2-6/2 *)", ["day-of-week field", "'2-6/2'", "no steps"]),
        ("cron(0 9 ? * 3#1,6#3 *)", ["day-of-week field", "alone"]),
        ("cron(0 9 L,15W * ? *)", ["day-of-month field", "'15W'"]),
        ("cron(H 9 * * ? *)", ["minute field", "'H'"]),
        ("cron(0 9 * * ? 2200)", ["year field", "'2200'", "1970-2199"]),
        ("cron(0 9 * * ? 2030-2026)", ["year field", "'2030-2026'"]),
        ("rate(0 minutes)", ["rate(value unit)", "'0 minutes'", "from 1"]),
        ("rate(5 seconds)", ["rate(value unit)", "'5 seconds'", "minute(s)"]),
        ("rate(5000000000 days)", ["rate(value unit)", "at most 9 digits"]),
        ("at(2026-02-30T09:00:00)", ["at(…)", "2026-02-30", "exist"]),
        ("at(2026-02-03T09:00:00Z)", ["at(…)", "without an offset"]),
        ("at(2026-02-03 09:00:00)", ["at(…)", "yyyy-mm-ddThh:mm:ss"]),
        ("0 9 * * *\n", ["printable ASCII"]),
        ("0 9 *\x00 * *", ["printable ASCII"]),
        ("0\u00a09 * * *", ["printable ASCII"]),
        ("٣ 9 * * *", ["printable ASCII"]),
        ("\uff10 9 * * *", ["printable ASCII"]),  # a full-width zero
        ("0 9 *\x7f * *", ["printable ASCII"]),
        ("0 9\r* * *", ["printable ASCII"]),
        ("0 9 * * *\x1f", ["printable ASCII"]),
        ("0 " + "1," * 130 + "1 * * *", ["at most 256 characters"]),
        (None, ["it is missing", "five unix cron fields"]),
        (5, ["5", "five unix cron fields"]),
    ],
)
def test_a_refusal_names_the_field_the_value_and_what_is_allowed(
    expression: object, parts: list[str]
) -> None:
    with pytest.raises(InvalidExpression) as caught:
        a_rule(expression)
    assert caught.value.field == "expression"
    for part in parts:
        assert part in str(caught.value)


def test_a_text_may_be_256_characters_long_and_no_longer() -> None:
    longest = "0," * 123 + "10 9 * * *"
    assert len(longest) == 256
    assert a_rule(longest).next_fire(NOW) == datetime(2026, 1, 1, 9, tzinfo=UTC)
    with pytest.raises(InvalidExpression, match="at most 256 characters"):
        a_rule(longest + " ")


@pytest.mark.parametrize(
    "name",
    ["", "Europe/Brlin", "europe/berlin", "localtime", "posixrules", "right/UTC", "posix/UTC",
     "../UTC", "/etc/passwd", "Europe", "Europe/", "tzdata.zi", "leapseconds", "UTC\n", "Factory",
     "A" * 65, "Europe/Berlin/UTC", "+01:00", None, 3],
)  # fmt: skip
def test_only_the_name_of_an_iana_zone_is_a_time_zone(name: object) -> None:
    with pytest.raises(UnknownTimeZone) as caught:
        a_rule(time_zone=name)
    assert caught.value.field == "time_zone"


@pytest.mark.parametrize("name", ["UTC", "Etc/GMT+5", "GMT0", "EST5EDT", "America/Port-au-Prince",
                                  "America/Argentina/ComodRivadavia"])  # fmt: skip
def test_every_kind_of_zone_name_is_accepted(name: str) -> None:
    assert a_rule(time_zone=name).time_zone == name


@pytest.mark.parametrize(
    ("expression", "zone"),
    [
        ("* * 31 2 *", "UTC"),
        ("0 0 31W 2,4 *", "UTC"),
        ("cron(0 9 * * ? 2020)", "UTC"),
        ("cron(0 0 29W 2 ? 2027-2199/2)", "UTC"),
        ("0 2 * 3 SUN#2", "America/New_York"),  # always in the gap
        ("rate(999999999 days)", "UTC"),
    ],
)
def test_a_rule_that_never_fires_is_refused(expression: str, zone: str) -> None:
    with pytest.raises(
        NeverFires, match=r"a rule with a fire after 2026-01-01T00:00:00\.000Z"
    ) as caught:
        a_rule(expression, time_zone=zone)
    assert caught.value.field == "expression"


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("* * 31 2 *", "no month that it names has such a day"),
        ("0 9 30 2 *", "no month that it names has such a day"),
        ("cron(0 9 * * ? 2020-2025)", "its last year, 2025, has passed"),
        ("0 2 * 3 SUN#2", "the clocks of America/New_York jump over each of its times"),
    ],
)
def test_a_rule_that_never_fires_is_told_why(expression: str, why: str) -> None:
    with pytest.raises(NeverFires) as caught:
        a_rule(expression, time_zone="America/New_York")
    assert f".000Z: {why}" in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ("0 9 L-3 * *", "L-n and LW are not supported"),
        ("0 9 LW * *", "L-n and LW are not supported"),
        ("cron(0 9 L-3 * ? *)", "L-n and LW are not supported"),
        ("0 9 * * 5L", "L5 is the last Friday"),
        ("0 9 * * FRIL", "L5 is the last Friday"),
        ("cron(0 9 ? * L5 *)", "6L is the last Friday"),
        ("0 0 9 * * *", "fields: seconds are not supported; cron(six fields) takes six"),
    ],
)
def test_what_people_often_write_gets_a_hint(expression: str, hint: str) -> None:
    with pytest.raises(InvalidExpression) as caught:
        a_rule(expression)
    assert hint in caught.value.allowed


def test_an_at_in_the_past_is_refused_as_such() -> None:
    with pytest.raises(AtInThePast, match=r"a time after 2026-01-01T00:00:00\.000Z"):
        a_rule("at(2026-01-01T00:00:00)")


def test_an_at_in_a_gap_is_refused_unless_it_may_fire_after_the_gap() -> None:
    text, zone = "at(2026-03-08T02:30:00)", "America/New_York"
    with pytest.raises(NeverFires, match="jump over this one") as caught:
        a_rule(text, time_zone=zone)
    assert not isinstance(caught.value, AtInThePast)
    late = a_rule(text, time_zone=zone, gap=Gap.FIRE_AFTER)
    assert late.next_fire(NOW) == datetime(2026, 3, 8, 7, tzinfo=UTC)


def test_an_at_is_bounded_by_its_instant_and_not_by_its_wall() -> None:
    last = a_rule("at(2400-01-01T05:00:00)", time_zone="Asia/Tokyo")
    assert last.next_fire(NOW) == datetime(2399, 12, 31, 20, tzinfo=UTC)
    for text, zone in (
        ("at(2399-12-31T23:30:00)", "America/New_York"),
        ("at(2500-01-01T00:00:00)", "UTC"),
        ("at(9999-12-31T23:59:59)", "UTC"),
    ):
        with pytest.raises(NeverFires, match=r"a time before 2400-01-01T00:00:00\.000Z"):
            a_rule(text, time_zone=zone)
    for text in ("at(1850-01-01T05:00:00)", "at(0001-01-01T00:00:00)"):
        with pytest.raises(AtInThePast, match="a time after 2026"):
            a_rule(text)


@pytest.mark.parametrize(
    ("fold", "hour"), [(Fold.AUTO, 5), (Fold.FIRST, 5), (Fold.BOTH, 5), (Fold.SECOND, 6)]
)
def test_an_at_in_a_repeated_hour_fires_once(fold: Fold, hour: int) -> None:
    rule = a_rule("at(2026-11-01T01:30:00)", time_zone="America/New_York", fold=fold)
    expected = datetime(2026, 11, 1, hour, 30, tzinfo=UTC)
    assert rule.fires_between(NOW, NOW + timedelta(days=400), limit=9) == (expected,)


def test_the_last_time_of_a_rule_fires_in_its_second_pass_too() -> None:
    rule = a_rule("cron(30 1 1 11 ? 2026)", time_zone="America/New_York", fold=Fold.BOTH)
    passes = (
        datetime(2026, 11, 1, 5, 30, tzinfo=UTC),
        datetime(2026, 11, 1, 6, 30, tzinfo=UTC),
    )
    assert rule.fires_between(NOW, NOW + timedelta(days=400), limit=9) == passes
    assert rule.next_fire(passes[0] + timedelta(minutes=29)) == passes[1]
    assert rule.next_fire(passes[1]) is None


def test_a_rule_with_no_fire_within_its_bounds_is_refused_by_the_bound() -> None:
    day = datetime(2026, 5, 1, 10, tzinfo=UTC)
    with pytest.raises(NeverFires, match=r"first fire, 2026-05-02T09:00:00\.000Z") as caught:
        a_rule(start_at=day, end_at=day + timedelta(hours=1))
    assert caught.value.field == "end_at"
    with pytest.raises(NeverFires) as caught:
        a_rule("cron(0 9 * * ? 2026)", start_at=datetime(2027, 1, 1, tzinfo=UTC))
    assert caught.value.field == "start_at"


def test_an_end_must_come_after_the_start() -> None:
    with pytest.raises(Rejected, match=r"later than start_at, 2026-05-01T00:00:00\.000Z") as caught:
        a_rule(start_at=datetime(2026, 5, 1, tzinfo=UTC), end_at=datetime(2026, 5, 1, tzinfo=UTC))
    assert caught.value.field == "end_at"


def test_a_bound_without_an_offset_is_refused() -> None:
    with pytest.raises(Rejected) as caught:
        a_rule(start_at=datetime(2026, 5, 1))  # noqa: DTZ001 - that is the point
    assert caught.value.field == "start_at"


def test_bounds_are_inclusive_and_kept_in_utc() -> None:
    nine = datetime(2026, 5, 1, 10, tzinfo=timezone(timedelta(hours=1)))
    rule = a_rule(start_at=nine, end_at=nine + timedelta(days=1))
    assert rule.start_at is not None
    assert rule.start_at.utcoffset() == timedelta(0)
    fires = rule.fires_between(NOW, NOW + timedelta(days=999), limit=9)
    assert fires == (nine, nine + timedelta(days=1))


def test_h_becomes_the_same_number_for_the_same_schedule_and_is_shown() -> None:
    rule = a_rule("H H(0-5) * * *", hash_key="acme/nightly")
    assert rule == a_rule("H H(0-5) * * *", hash_key="acme/nightly")
    minute, hour, *rest = rule.expression.split()
    assert 0 <= int(minute) <= 59
    assert 0 <= int(hour) <= 5
    assert rest == ["*", "*", "*"]


@pytest.mark.parametrize("key", [f"acme/{number}" for number in range(60)])
@pytest.mark.parametrize(
    ("item", "low", "high", "step"),
    [
        ("H", 0, 59, None),
        ("H/15", 0, 59, 15),
        ("H/7", 0, 59, 7),
        ("H/90", 0, 59, None),
        ("H(0-29)", 0, 29, None),
        ("H(30-59)", 30, 59, None),
        ("H(7-7)", 7, 7, None),
        ("h(0-29)/5", 0, 29, 5),
        ("H(10-19)/15", 10, 19, None),
    ],
)
def test_h_never_leaves_its_range_and_keeps_its_pace(
    key: str, item: str, low: int, high: int, step: int | None
) -> None:
    rule = a_rule(f"{item} * * * *", hash_key=key)
    hour = rule.fires_between(NOW - timedelta(minutes=1), NOW + timedelta(minutes=59), limit=99)
    minutes = [fire.minute for fire in hour]
    assert low <= minutes[0] <= minutes[-1] <= high
    if step is None:
        assert len(minutes) == 1
    else:
        assert minutes[0] < low + step
        assert minutes == list(range(minutes[0], high + 1, step))
    assert "H" not in rule.expression.upper()
    assert a_rule(rule.expression) == rule, "the text it became says the same"


@pytest.mark.parametrize("key", [f"acme/{number}" for number in range(30)])
def test_every_field_has_its_h_and_a_list_may_hold_one(key: str) -> None:
    minute, hour, day, month, weekday = a_rule("H H H H *", hash_key=key).expression.split()
    assert int(minute) in range(60)
    assert int(hour) in range(24)
    assert int(day) in range(1, 29)
    assert int(month) in range(1, 13)
    assert weekday == "*"
    assert int(a_rule("0 0 * * H", hash_key=key).expression.split()[4]) in range(7)
    assert a_rule("H,30 1 * * *", hash_key=key).expression == f"{minute},30 1 * * *"


def test_the_fields_of_a_schedule_are_hashed_apart() -> None:
    rules = [a_rule("H(0-11) H(0-11) * * *", hash_key=f"acme/{number}") for number in range(99)]
    assert any(len(set(rule.expression.split()[:2])) == 2 for rule in rules)


def test_h_spreads_schedules_over_the_field() -> None:
    rules = [a_rule("H 3 * * *", hash_key=f"acme/{number}") for number in range(600)]
    minutes = {rule.expression.split()[0] for rule in rules}
    assert minutes == {str(minute) for minute in range(60)}


@pytest.mark.parametrize("key", [f"acme/{number}" for number in range(8)])
def test_a_stepped_h_keeps_its_pace_from_a_hashed_start(key: str) -> None:
    rule = a_rule("H/15 * * * *", hash_key=key)
    fires = rule.fires_between(NOW, NOW + timedelta(hours=2), limit=99)
    assert len(fires) == 8
    assert {later - fire for fire, later in pairwise(fires)} == {timedelta(minutes=15)}


@pytest.mark.parametrize("key", [f"acme/{number}" for number in range(40)])
def test_h_picks_a_day_that_every_month_has(key: str) -> None:
    assert int(a_rule("0 0 H * *", hash_key=key).expression.split()[2]) <= 28


@pytest.mark.parametrize("item", ["H(9-5)", "H(0-60)", "H/0", "H-5", "H(1)", "HH"])
def test_a_malformed_h_is_refused(item: str) -> None:
    with pytest.raises(InvalidExpression, match="minute field"):
        a_rule(f"{item} * * * *", hash_key="acme/x")


def test_a_list_of_equal_hs_becomes_one_and_may_be_edited_again() -> None:
    listed = a_rule(",".join(["H/2"] * 61) + " * * * *", hash_key="acme/x").expression
    assert listed == a_rule("H/2 * * * *", hash_key="acme/x").expression
    assert a_rule(listed).expression == listed


def test_hs_that_become_too_long_are_refused_as_a_list_of_numbers_is() -> None:
    text = ",".join(f"H/{step}" for step in range(2, 60)) + " * * * *"
    with pytest.raises(InvalidExpression, match="256 characters with numbers in the place of H"):
        a_rule(text[-250:].lstrip("0123456789,/"), hash_key="acme/x")


def test_an_expression_without_h_stays_as_it_was_written() -> None:
    assert a_rule(" 0  9\t* * mon ", hash_key="acme/x").expression == " 0  9\t* * mon "
    assert a_rule("@Daily", hash_key="acme/x").expression == "@Daily"
    assert a_rule("1,1 9 * * *", hash_key="acme/x").expression == "1,1 9 * * *"


@pytest.mark.parametrize(
    ("expression", "same_as"),
    [
        ("0 22-2 * * *", "0 22,23,0,1,2 * * *"),
        ("0 0 * * FRI-MON", "0 0 * * 5,6,0,1"),
        ("0 0 * * 7-2", "0 0 * * 0,1,2"),
        ("0 0 28-3 * *", "0 0 28,29,30,31,1,2,3 * *"),
        ("0 0 1 NOV-FEB *", "0 0 1 11,12,1,2 *"),
        ("0 9-9/4 * * *", "0 9 * * *"),
        ("0 0 * * 0-7/7", "0 0 * * 0"),
        ("0 0 15,L * *", "0 0 L,15 * *"),
        ("0 0 * * 7#2", "0 0 * * SUN#2"),
        ("0 0 * * L7", "0 0 * * L0"),
        ("cron(0 9 ? * FRI-MON *)", "0 9 * * 5,6,0,1"),
        ("cron(0 9 ? * 6L *)", "0 9 * * L5"),
        ("cron(0 9 ? * TUE#2 *)", "0 9 * * 2#2"),
        ("cron(0 9 l * ? *)", "0 9 L * *"),
        ("0 9 15w * *", "cron(0 9 15W * ? *)"),
        ("0 0 1-31 * 1", "0 0 * * *"),  # either-or with every day written out
        # Thirty days and L are not every day.
        ("0 0 1-29,31,L 1,3,5,7,8,10,12 *", "0 0 1-29,31 1,3,5,7,8,10,12 *"),
        ("0 0 1-29,31,L 4,6,9,11 *", "0 0 1-30 4,6,9,11 *"),
        ("0 0 1-28,30,31,L 2 *", "0 0 1-28,L 2 *"),
        ("cron(0 0 1-30,L * ? *)", "0 0 1-30,L * *"),
        ("0 0 2-31,L * *", "0 0 2-31 * *"),
    ],
)
def test_two_spellings_fire_alike(expression: str, same_as: str) -> None:
    end = NOW + timedelta(days=420)
    assert a_rule(expression).fires_between(NOW, end, limit=500) == a_rule(same_as).fires_between(
        NOW, end, limit=500
    )


@pytest.mark.parametrize(
    ("day", "months"),
    [
        ("28W", "1 2 3 4 5 6 7 8 9 10 11 12"),
        ("29W", "1 3 4 5 6 7 8 9 10 11 12"),
        ("30W", "1 3 4 5 6 7 8 9 10 11 12"),
        ("31W", "1 3 5 7 8 10 12"),
    ],
)
@pytest.mark.parametrize("form", ["0 9 {} * *", "cron(0 9 {} * ? *)"])
def test_the_weekday_nearest_to_a_day_that_a_month_lacks_does_not_fire(
    form: str, day: str, months: str
) -> None:
    fires = a_rule(form.format(day)).fires_between(NOW, NOW + timedelta(days=365), limit=99)
    assert " ".join(str(fire.month) for fire in fires) == months
    assert all(fire.isoweekday() <= 5 for fire in fires)


def test_the_weekday_nearest_to_29_february_fires_in_leap_years() -> None:
    rule = a_rule("0 9 29W 2 *")
    assert rule.next_fire(NOW) == datetime(2028, 2, 29, 9, tzinfo=UTC)
    assert rule.next_fire(datetime(2031, 1, 1, tzinfo=UTC)) == datetime(2032, 2, 27, 9, tzinfo=UTC)


def test_a_rule_from_stored_data_is_a_value_that_needs_no_check() -> None:
    stored = Rule(expression="no rule at all", time_zone="Nowhere", anchor=NOW)
    assert stored == replace(stored)
    assert hash(stored) == hash(replace(stored))


def test_looking_back_over_a_long_outage_finds_the_last_fire() -> None:
    now = datetime(2036, 7, 4, 3, 4, 5, tzinfo=UTC)
    assert a_rule("*/5 * * * *").last_fire(now) == datetime(2036, 7, 4, 3, 0, tzinfo=UTC)
    assert a_rule("0 0 29 2 *").last_fire(now) == datetime(2036, 2, 29, tzinfo=UTC)
    assert a_rule("cron(0 0 1 5 ? 2027)").last_fire(now) == datetime(2027, 5, 1, tzinfo=UTC)
    assert a_rule("rate(7 days)").last_fire(NOW) is None


def test_a_search_near_the_ends_of_the_calendar_ends() -> None:
    rule = a_rule("0 0 29 2 *", time_zone="Pacific/Kiritimati")
    assert rule.next_fire(datetime.max.replace(tzinfo=UTC)) is None
    assert rule.last_fire(datetime.min.replace(tzinfo=UTC)) is None
    first = rule.next_fire(datetime.min.replace(tzinfo=UTC))
    assert first is not None
    assert first.year == 1904


def test_no_limit_means_no_fires() -> None:
    assert a_rule().fires_between(NOW, NOW + timedelta(days=9), limit=0) == ()
