"""What an edit does to the fires of the next 90 days, told as people would tell it."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from puntual.domain import fire_changes as module
from puntual.domain.expression import Fold, Gap, Rule
from puntual.domain.fire_changes import FIRES_COMPARED_MAX, FireChanges, fire_changes
from tests.builders import NINE, a_rule

SPAN = timedelta(days=90)
HOUR = timedelta(hours=1)
HALF_PAST_NINE = NINE + HOUR / 2
BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"
"""Six hours apart in winter."""


def changed(old: Rule | str, new: Rule | str, start: datetime = NINE) -> FireChanges:
    old, new = (a_rule(rule) if isinstance(rule, str) else rule for rule in (old, new))
    return fire_changes(old, new, start=start, span=SPAN)


def shown(*fires: datetime) -> str:
    return " → ".join(f"{fire:%a %d %H:%M}" for fire in fires)


def told(changes: FireChanges, *, days: int = 9) -> list[str]:
    """What happens on the first days, the one of the start included, in order."""
    end = changes.start.replace(hour=0, minute=0) + timedelta(days=days)
    lines = [
        *((fire, f"+ {shown(fire)}") for fire in changes.appear),
        *((fire, f"- {shown(fire)}") for fire in changes.vanish),
        *((move.before, shown(move.before, move.after)) for move in changes.move),
    ]
    return [line for fire, line in sorted(lines) if fire < end]


def counts(changes: FireChanges) -> tuple[int, int, int, int]:
    return (
        len(changes.appear),
        len(changes.vanish),
        len(changes.move),
        changes.unchanged,
    )


def test_another_time_of_day_is_a_move_on_each_day() -> None:
    changes = changed("0 9 * * *", "0 10 * * *", NINE + 3 * HOUR)
    assert told(changes, days=3) == ["Tue 01 09:00 → Tue 01 10:00", "Wed 02 09:00 → Wed 02 10:00"]
    assert counts(changes) == (0, 0, 90, 0)
    assert (changes.start, changes.through) == (NINE + 3 * HOUR, NINE + 3 * HOUR + SPAN)
    assert changes.complete


def test_a_fire_stays_on_its_day_however_far_it_moves() -> None:
    changes = changed("0 9 * * *", "0 23 * * *", NINE + 15 * HOUR)
    assert told(changes, days=2)[0] == "Tue 01 09:00 → Tue 01 23:00"
    assert counts(changes) == (0, 0, 90, 0)


def test_what_has_passed_today_is_not_there_to_be_moved() -> None:
    """The nine o'clock fire has run, so the one at ten is one more."""
    changes = changed("0 9 * * *", "0 10 * * *", HALF_PAST_NINE)
    assert told(changes, days=2) == ["+ Mon 30 10:00", "Tue 01 09:00 → Tue 01 10:00"]
    changes = changed("0 10 * * *", "0 9 * * *", HALF_PAST_NINE)
    assert told(changes, days=2) == ["- Mon 30 10:00", "Tue 01 10:00 → Tue 01 09:00"]
    changes = changed("0 9,17 * * *", "0 10,18 * * *", HALF_PAST_NINE)
    assert told(changes, days=1) == ["+ Mon 30 10:00", "Mon 30 17:00 → Mon 30 18:00"]


def test_the_last_day_is_told_as_the_others_are() -> None:
    changes = changed("0 9 * * *", "0 10 * * *", HALF_PAST_NINE)
    last = changes.move[-1]
    assert shown(last.before, last.after) == "Sun 28 09:00 → Sun 28 10:00"
    assert last.before < changes.through < last.after
    back = changed("0 10 * * *", "0 9 * * *", HALF_PAST_NINE).move[-1]
    assert (back.before, back.after) == (last.after, last.before)


def test_a_fire_at_the_very_start_belongs_to_the_comparison() -> None:
    assert told(changed("0 9 * * *", "0 10 * * *"), days=1) == ["Mon 30 09:00 → Mon 30 10:00"]


def test_a_fire_at_the_very_end_does_not() -> None:
    assert counts(changed("at(2027-02-28T09:00:00)", "0 0 1 1 *")) == (1, 0, 0, 0)


def test_days_left_out_vanish_and_move_nothing() -> None:
    changes = changed("0 9 * * *", "0 9 * * MON-FRI")
    assert told(changes) == ["- Sat 05 09:00", "- Sun 06 09:00"]
    assert counts(changes) == (0, 25, 0, 65)
    back = changed("0 9 * * MON-FRI", "0 9 * * *")
    assert (back.appear, back.vanish, back.move) == (changes.vanish, (), ())


def test_days_left_out_beside_another_time() -> None:
    changes = changed("0 9 * * *", "0 10 * * MON-FRI", HALF_PAST_NINE)
    assert told(changes, days=8) == [
        "+ Mon 30 10:00",
        "Tue 01 09:00 → Tue 01 10:00",
        "Wed 02 09:00 → Wed 02 10:00",
        "Thu 03 09:00 → Thu 03 10:00",
        "Fri 04 09:00 → Fri 04 10:00",
        "- Sat 05 09:00",
        "- Sun 06 09:00",
        "Mon 07 09:00 → Mon 07 10:00",
    ]


@pytest.mark.parametrize(
    ("old", "new", "first"),
    [
        ("MON", "TUE", ["+ Tue 01 09:00", "Mon 07 09:00 → Tue 08 09:00"]),
        ("TUE", "MON", ["- Tue 01 09:00", "Tue 08 09:00 → Mon 07 09:00"]),
        ("SUN", "MON", ["Sun 06 09:00 → Mon 07 09:00"]),
        ("FRI", "MON", ["Fri 04 09:00 → Mon 07 09:00"]),
        ("MON", "FRI", ["Mon 07 09:00 → Fri 04 09:00"]),
        ("MON,THU", "TUE,FRI", [
            "+ Tue 01 09:00", "Thu 03 09:00 → Fri 04 09:00", "Mon 07 09:00 → Tue 08 09:00",
        ]),
        ("TUE,THU", "MON,WED,FRI", [
            "- Tue 01 09:00", "+ Wed 02 09:00", "- Thu 03 09:00", "+ Fri 04 09:00",
            "+ Mon 07 09:00", "- Tue 08 09:00",
        ]),
    ],
)  # fmt: skip
def test_another_weekday_is_a_move_in_each_week(old: str, new: str, first: list[str]) -> None:
    changes = changed(f"0 9 * * {old}", f"0 9 * * {new}", HALF_PAST_NINE)
    assert told(changes, days=9) == first


def test_the_moves_of_a_week_keep_its_order() -> None:
    changes = changed("0 9,17 * * TUE", "0 10 * * MON,TUE")
    assert told(changes, days=2) == ["Tue 01 09:00 → Mon 30 10:00", "Tue 01 17:00 → Tue 01 10:00"]


@pytest.mark.parametrize(
    ("old", "new", "first"),
    [
        ("1", "15", ["Tue 01 09:00 → Tue 15 09:00", "Fri 01 09:00 → Fri 15 09:00"]),
        ("15", "1", ["Tue 15 09:00 → Tue 01 09:00", "Fri 15 09:00 → Fri 01 09:00"]),
        ("28", "3", ["Mon 28 09:00 → Thu 03 09:00", "Thu 28 09:00 → Sun 03 09:00"]),
    ],
)
def test_another_day_of_the_month_is_a_move_in_each_month(
    old: str, new: str, first: list[str]
) -> None:
    changes = changed(f"0 9 {old} * *", f"0 9 {new} * *", HALF_PAST_NINE)
    assert told(changes, days=62) == first


def test_the_month_that_has_begun_is_told_as_the_others_are() -> None:
    tenth = datetime(2026, 12, 10, tzinfo=UTC)
    assert told(changed("0 9 1 * *", "0 9 15 * *", tenth), days=30) == [
        "+ Tue 15 09:00",
        "Fri 01 09:00 → Fri 15 09:00",
    ]


def test_a_faster_pace_only_adds() -> None:
    changes = changed("0 * * * *", "*/15 * * * *", NINE + HOUR / 3)
    assert told(changes, days=1)[:3] == ["+ Mon 30 09:30", "+ Mon 30 09:45", "+ Mon 30 10:15"]
    assert changes.vanish == changes.move == ()
    assert len(changes.appear) == 3 * changes.unchanged + 2


def test_another_pace_keeps_what_both_name_and_moves_nothing() -> None:
    """In the last hour of today one fire goes and one comes, but on no whole day."""
    changes = changed("*/15 * * * *", "*/20 * * * *", NINE + 14 * HOUR + HOUR * 3 / 5)
    assert told(changes, days=2)[:4] == [
        "+ Mon 30 23:40", "- Mon 30 23:45", "- Tue 01 00:15", "+ Tue 01 00:20",
    ]  # fmt: skip
    assert changes.move == ()


def test_the_same_wall_time_in_another_zone_is_a_move_on_each_day() -> None:
    old, new = (a_rule("0 9 * * *", time_zone=zone) for zone in (BERLIN, NEW_YORK))
    changes = changed(old, new)
    assert told(changes, days=2) == ["+ Mon 30 14:00", "Tue 01 08:00 → Tue 01 14:00"]
    assert told(changed(new, old), days=2) == ["- Mon 30 14:00", "Tue 01 14:00 → Tue 01 08:00"]


@pytest.mark.parametrize(("hour", "move"), [
    (2, "Tue 01 01:00 → Tue 01 07:00"),
    (23, "Mon 30 22:00 → Tue 01 04:00"),
])  # fmt: skip
def test_zones_that_are_on_different_days_move_no_further_than_they_lie_apart(
    hour: int, move: str
) -> None:
    old, new = (a_rule(f"0 {hour} * * *", time_zone=zone) for zone in (BERLIN, NEW_YORK))
    assert told(changed(old, new), days=2)[0] == move
    there_and_back = " → ".join(reversed(move.split(" → ")))
    assert there_and_back in told(changed(new, old), days=2)


def test_another_zone_with_the_same_instants_changes_nothing_until_the_clocks_change() -> None:
    february = datetime(2027, 2, 1, tzinfo=UTC)
    changes = changed("0 1 * * *", a_rule("0 20 * * *", time_zone=NEW_YORK), february)
    assert counts(changes) == (0, 0, 48, 42)
    assert told(changes, days=43) == ["Mon 15 01:00 → Mon 15 00:00"]


@pytest.mark.parametrize(
    ("month", "policy", "line"),
    [
        (3, {"gap": Gap.FIRE_AFTER}, "+ Sun 28 01:00"),
        (10, {"fold": Fold.BOTH}, "+ Sun 31 01:30"),
        (10, {"fold": Fold.SECOND}, "Sun 31 00:30 → Sun 31 01:30"),
    ],
)
def test_another_policy_touches_the_change_of_clocks_alone(
    month: int, policy: dict[str, Gap | Fold], line: str
) -> None:
    rule = a_rule("30 2 * * *", time_zone=BERLIN)
    changes = changed(rule, replace(rule, **policy), datetime(2027, month, 1, 12, tzinfo=UTC))  # type: ignore[arg-type]
    assert told(changes, days=90) == [line]
    assert changes.unchanged >= 89


@pytest.mark.parametrize("expression", ["0 9 * * *", "rate(5 hours)"])
def test_an_end_makes_what_comes_after_it_vanish(expression: str) -> None:
    rule = a_rule(expression)
    end = NINE + timedelta(days=20)
    changes = changed(rule, replace(rule, end_at=end), HALF_PAST_NINE)
    assert changes.appear == changes.move == ()
    assert changes.vanish == rule.fires_between(end, changes.through, limit=500)
    assert changes.unchanged == len(rule.fires_between(HALF_PAST_NINE, end, limit=500))


def test_a_time_that_becomes_a_one_off_leaves_one_fire_of_that_day() -> None:
    changes = changed("0 9 * * *", "at(2026-12-02T12:00:00)", HALF_PAST_NINE)
    assert told(changes, days=4) == [
        "- Tue 01 09:00", "Wed 02 09:00 → Wed 02 12:00", "- Thu 03 09:00"
    ]  # fmt: skip
    assert counts(changes) == (0, 89, 1, 0)


@pytest.mark.parametrize(("old", "new"), [
    ("2026-12-01", "2027-02-10"), ("2026-12-01", "2028-06-01"), ("2028-06-01", "2026-12-01"),
])  # fmt: skip
def test_a_one_off_moves_however_far(old: str, new: str) -> None:
    changes = changed(f"at({old}T09:00:00)", f"at({new}T12:00:00)")
    (move,) = changes.move
    assert (f"{move.before:%Y-%m-%d %H}", f"{move.after:%Y-%m-%d %H}") == (f"{old} 09", f"{new} 12")
    assert counts(changes) == (0, 0, 1, 0)


def test_a_one_off_that_has_run_leaves_nothing_to_move() -> None:
    changes = changed("at(2026-11-30T09:00:00)", "at(2026-11-30T12:00:00)", HALF_PAST_NINE)
    assert told(changes) == ["+ Mon 30 12:00"]
    assert changed("at(2028-11-30T09:00:00)", "at(2029-11-30T12:00:00)").compared == 0


def test_the_same_rule_is_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_known", None)
    changes = changed("* * * * *", "* * * * *")
    assert changes == FireChanges(
        start=NINE, through=NINE + SPAN, complete=True, next_before=NINE, next_after=NINE
    )


@pytest.mark.parametrize(
    ("old", "new", "following"),
    [
        ("0 9 * * *", "0 10 * * *", (NINE, NINE + HOUR)),
        ("0 9 1 4 *", "0 9 1 5 *", (datetime(2027, 4, 1, 9), datetime(2027, 5, 1, 9))),  # noqa: DTZ001 - the test adds the zone
        ("at(2026-11-30T08:59:00)", "at(2030-01-01T00:00:00)", (None, datetime(2030, 1, 1))),  # noqa: DTZ001 - as above
    ],
)
def test_the_next_fires_are_told_however_far_ahead(
    old: str, new: str, following: tuple[datetime | None, datetime | None]
) -> None:
    changes = changed(old, new)
    before, after = (fire and fire.replace(tzinfo=UTC) for fire in following)
    assert (changes.next_before, changes.next_after) == (before, after)


def test_two_spellings_of_a_rule_change_nothing() -> None:
    changes = changed("0 9 * * *", "cron(0 9 * * ? *)")
    assert (counts(changes), changes.compared) == ((0, 0, 0, 90), 180)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (a_rule("* * * * *"), a_rule("*/2 * * * *")),
        (
            a_rule("0-58/2 * * * *", time_zone="Pacific/Pago_Pago"),
            a_rule("1-59/2 * * * *", time_zone="Pacific/Kiritimati"),
        ),
        (
            a_rule("* * * * *", time_zone="Pacific/Pago_Pago"),
            a_rule("rate(1 minute)", time_zone="Pacific/Kiritimati"),
        ),
    ],
)
def test_a_comparison_is_cut_at_a_midnight_and_says_so(old: Rule, new: Rule) -> None:
    changes = changed(old, new, HALF_PAST_NINE)
    assert not changes.complete
    assert HALF_PAST_NINE + timedelta(days=1) < changes.through < HALF_PAST_NINE + SPAN
    assert FIRES_COMPARED_MAX / 2 < changes.compared <= FIRES_COMPARED_MAX
    assert (changes.through.hour, changes.through.minute) in {(0, 0), (10, 0), (11, 0)}
    assert_accounts(old, new, changes)


def test_a_cut_comparison_moves_nothing_on_a_day_that_it_knows_in_part() -> None:
    changes = changed("0-58/2 * * * *", "1-59/2 * * * *", HALF_PAST_NINE)
    assert all(move.after - move.before == timedelta(minutes=1) for move in changes.move)
    assert changes.appear == changes.vanish == ()


def test_a_cut_comparison_moves_nothing_in_a_week_that_it_knows_in_part() -> None:
    """As many go on the last Monday as come on the last Tuesday, but Wednesday is out of sight."""
    changes = changed("0-47 * * * MON,WED", "0-47 * * * TUE")
    assert f"{changes.through:%a}" == "Wed"
    assert changes.move == ()


def test_a_day_that_has_begun_is_known_whole_in_both_zones() -> None:
    """Since midnight in London as many go as come, but not since that in Kathmandu."""
    old = a_rule("10,40 0-17,19-23 * * *", time_zone="Europe/London")
    assert changed(old, a_rule("26,56 6-23 * * *", time_zone="Asia/Kathmandu")).move == ()


def test_what_is_known_beyond_the_span_does_not_make_it_incomplete() -> None:
    """8,640 fires are in the span, and not all that follow are affordable."""
    changes = changed("0,30 * * * *", "1,31 * * * *")
    assert changes.complete
    assert counts(changes) == (0, 0, 4320, 0)


# --- laws -------------------------------------------------------------------------------------

EXPRESSIONS = (
    "0 9 * * *", "30 2 * * *", "0 10 * * MON-FRI", "30 1,22 * * SUN", "0 0 1,15 * *", "0 23 L * *",
    "*/20 * * * *", "7-59/13 1 * * *", "0 */5 * * *", "* * * * *", "0 0 29 2 *", "0 9 13 * FRI",
    "cron(15 4 ? * MON#2 2026-2027)", "rate(1 day)", "rate(7 hours)", "rate(11 minutes)",
    "at(2026-12-24T00:30:00)", "at(2027-03-28T03:30:00)",
)  # fmt: skip
ZONES = ("UTC", BERLIN, NEW_YORK, "Pacific/Pago_Pago", "Pacific/Kiritimati", "Africa/Cairo")
STARTS = st.datetimes(
    min_value=datetime(2026, 9, 1),  # noqa: DTZ001 - Hypothesis adds the zone
    max_value=datetime(2027, 11, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
).map(lambda instant: instant.replace(microsecond=0))
RULES = st.builds(
    Rule,
    expression=st.sampled_from(EXPRESSIONS),
    time_zone=st.sampled_from(ZONES),
    gap=st.sampled_from(Gap),
    fold=st.sampled_from(Fold),
    anchor=st.sampled_from([NINE - timedelta(days=50), NINE, NINE + timedelta(days=9)]),
    start_at=st.sampled_from([None, None, NINE + timedelta(days=3)]),
    end_at=st.sampled_from([None, None, NINE + timedelta(days=20)]),
)
few = settings(max_examples=60, deadline=None)


def fires_in(rule: Rule, changes: FireChanges) -> set[datetime]:
    before = timedelta(microseconds=1)
    return set(
        rule.fires_between(
            changes.start - before, changes.through - before, limit=FIRES_COMPARED_MAX + 1
        )
    )


def assert_accounts(old: Rule, new: Rule, changes: FireChanges) -> None:
    """Every fire of the time compared is in exactly one class, and nothing else is in any."""
    held, come = fires_in(old, changes), fires_in(new, changes)
    leave = Counter([*changes.vanish, *(move.before for move in changes.move)])
    enter = Counter([*changes.appear, *(move.after for move in changes.move)])
    assert set(leave.values()) | set(enter.values()) <= {1}
    within = {fire for fire in (*leave, *enter) if changes.start <= fire < changes.through}
    assert held - leave.keys() == come - enter.keys() == held & come
    assert held - come == leave.keys() & within
    assert come - held == enter.keys() & within
    assert changes.unchanged == len(held & come)
    assert changes.compared == len(held) + len(come)
    for move in changes.move:
        assert changes.start <= min(move.before, move.after) < changes.through
        assert max(move.before, move.after) not in held & come


@few
@given(RULES, RULES, STARTS)
@example(a_rule("0 9 * * *"), a_rule("0 10 * * *"), HALF_PAST_NINE)
def test_every_fire_is_accounted_for_once(old: Rule, new: Rule, start: datetime) -> None:
    changes = changed(old, new, start)
    if old != new:
        assert_accounts(old, new, changes)
    assert changes.complete == (changes.through == start + SPAN)
    assert changes.start < changes.through <= start + SPAN
    assert changes.compared <= FIRES_COMPARED_MAX
    assert all(fires == tuple(sorted(fires)) for fires in (changes.appear, changes.vanish))


@few
@given(RULES, RULES, STARTS)
@example(  # Twelve hours apart: neither zone's days make the shorter moves.
    a_rule("0 9 * * *"), a_rule("0 9 * * *", time_zone="Pacific/Wake"), NINE
)
def test_taking_a_change_back_swaps_what_it_did(old: Rule, new: Rule, start: datetime) -> None:
    there, back = changed(old, new, start), changed(new, old, start)
    assert (there.appear, there.vanish) == (back.vanish, back.appear)
    assert {(move.before, move.after) for move in there.move} == {
        (move.after, move.before) for move in back.move
    }
    assert (there.unchanged, there.compared, there.through) == (
        back.unchanged,
        back.compared,
        back.through,
    )
