from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest

from puntual.domain.cron_search import CronClock
from puntual.domain.expression import Fold, Gap, Rule
from puntual.domain.fire_differences import (
    COMPARED_FIRES_MAX,
    COUNTED_FIRES_MAX,
    FireDifferences,
    fire_differences,
)
from puntual.domain.zone_rules import ClockDifference, differing_zones
from tests.builders import NINE, a_rule
from tests.zone_data import (
    HALF_AN_HOUR_AHEAD,
    NO_SUMMER_TIME,
    NO_WINTER_TIME,
    TWO_WEEKS_LATER,
    pinned_rules,
    rules_with_berlin,
)

SPRING = datetime(2027, 3, 28, 1, tzinfo=UTC)
"""When Berlin's clocks go forward."""


@cache
def from_berlin(rule: str) -> ClockDifference:
    former = rules_with_berlin(rule)
    return differing_zones(former, pinned_rules(), since=NINE)["Europe/Berlin"]


def moved(
    expression: str, former: str, *, after: datetime = NINE, **parts: object
) -> FireDifferences | None:
    rule = replace(a_rule(expression, time_zone="Europe/Berlin"), **parts)  # type: ignore[arg-type]
    return fire_differences(rule, from_berlin(former), after=after)


def test_summer_time_moves_a_daily_fire_by_an_hour() -> None:
    assert moved("0 9 * * *", NO_SUMMER_TIME) == FireDifferences(
        vanished=90,
        appeared=90,
        first_vanished=datetime(2027, 3, 28, 8, tzinfo=UTC),
        first_appeared=datetime(2027, 3, 28, 7, tzinfo=UTC),
    )


def test_a_change_two_weeks_later_moves_the_fires_of_those_weeks() -> None:
    found = moved("0 9 * * *", TWO_WEEKS_LATER)
    assert found is not None
    assert (found.vanished, found.appeared, found.complete) == (14, 14, True)
    assert found.first_appeared == datetime(2027, 3, 28, 7, tzinfo=UTC)


def test_a_permanent_shift_moves_the_very_next_fire() -> None:
    found = moved("0 12 * * *", NO_WINTER_TIME)
    assert found is not None
    assert found.first_vanished == NINE + timedelta(hours=1)
    assert found.first_appeared == NINE + timedelta(hours=2)


@pytest.mark.parametrize("expression", ["0 9 * 1 *", "cron(0 9 15 12 ? *)", "0 12 1-20 3 *"])
def test_a_rule_that_never_fires_where_the_clocks_differ_is_not_moved(expression: str) -> None:
    assert moved(expression, NO_SUMMER_TIME) is None


def test_a_rule_is_moved_where_it_fires_in_a_single_one_of_many_spans() -> None:
    found = moved("cron(0 9 1 7 ? 2033)", NO_SUMMER_TIME)
    assert found is not None
    assert (found.vanished, found.appeared) == (1, 1)
    assert found.first_appeared == datetime(2033, 7, 1, 7, tzinfo=UTC)


def test_a_next_fire_beyond_all_that_was_compared_is_compared_itself() -> None:
    assert moved("cron(0 9 1 7 ? 2150)", NO_SUMMER_TIME) is not None
    assert moved("cron(0 9 1 1 ? 2150)", NO_SUMMER_TIME) is None


def test_a_gap_that_is_no_more_gives_its_fire_back() -> None:
    found = moved("30 2 * 3 *", NO_SUMMER_TIME)
    assert found is not None
    assert found.first_vanished == datetime(2027, 3, 28, 1, 30, tzinfo=UTC)
    assert (found.vanished, found.appeared) == (4, 3), "it is skipped once, then moved"


def test_a_gap_that_was_not_takes_a_fire_on_the_day_of_the_change() -> None:
    found = moved("30 2 28 3,5 *", TWO_WEEKS_LATER, end_at=NINE + timedelta(days=365))
    assert found is not None
    assert (found.vanished, found.appeared, found.first_appeared) == (1, 0, None)


@pytest.mark.parametrize(
    ("expression", "end_at"),
    [
        ("30 2 28 3 *", NINE + timedelta(days=365)),
        ("cron(30 2 28 3 ? 2027)", None),
        ("0 12 30 11 *", NINE + timedelta(hours=1)),
        ("*/20 12 30 11 *", NINE + timedelta(hours=1, minutes=20)),
    ],
)
def test_the_last_fires_of_a_rule_are_not_taken_from_it(
    expression: str, end_at: datetime | None
) -> None:
    """By the rules of today they fall into a gap, or behind the end."""
    former = TWO_WEEKS_LATER if "28 3" in expression else NO_WINTER_TIME
    rule = replace(a_rule(expression, time_zone="Europe/Berlin"), end_at=end_at)
    assert rule.next_fire_by(from_berlin(former).former)(NINE) is not None
    assert rule.next_fire(NINE) is None
    assert moved(expression, former, end_at=end_at) is None


PACES = (
    "* * * * *", "*/15 * * * *", "7 * * * *", "*/5 * * * 0-6", "*/5 * 1-31 * *", "*/5 * 1-30,L * *",
    "cron(*/5 * ? * SUN-SAT *)", "*/5 * 1-31 1-12 1",
)  # fmt: skip


@pytest.mark.parametrize("expression", PACES)
@pytest.mark.parametrize("fold", [Fold.AUTO, Fold.BOTH])
def test_whole_hours_do_not_move_a_pace(expression: str, fold: Fold) -> None:
    assert moved(expression, NO_SUMMER_TIME, fold=fold) is None
    # The proof by comparison, for the first weeks of both summer and winter.
    rule = replace(a_rule(expression, time_zone="Europe/Berlin"), fold=fold)
    former = rule.next_fire_by(from_berlin(NO_SUMMER_TIME).former)
    for start in (SPRING - timedelta(hours=3), datetime(2027, 10, 30, 22, tzinfo=UTC)):
        fire = start
        for _ in range(400):
            expected = former(fire)
            assert rule.next_fire(fire) == expected
            assert expected is not None
            fire = expected


@pytest.mark.parametrize(
    ("expression", "is_moved"),
    [("* * * * *", False), ("*/15 * * * *", False), ("0,30 * * * *", False), ("7 * * * *", True)],
)
def test_half_an_hour_moves_a_pace_that_half_an_hour_does_not_map_to_itself(
    expression: str,
    is_moved: bool,  # noqa: FBT001 a parameter of the test
) -> None:
    assert (moved(expression, HALF_AN_HOUR_AHEAD) is not None) is is_moved


def test_a_pace_that_pauses_in_the_repeated_hour_is_moved() -> None:
    found = moved("0 * * * *", NO_SUMMER_TIME, fold=Fold.FIRST)
    assert found is not None
    assert found.first_vanished == datetime(2027, 10, 31, 1, tzinfo=UTC)


def test_a_pace_of_some_days_is_moved_at_their_midnights() -> None:
    assert moved("0 * * * 1-5", NO_SUMMER_TIME) is not None


@pytest.mark.parametrize("expression", ["rate(5 minutes)", "rate(1 day)"])
def test_elapsed_time_is_never_moved(expression: str) -> None:
    assert moved(expression, NO_WINTER_TIME) is None


def test_a_single_fire_is_moved_where_its_instant_is_another() -> None:
    assert moved("at(2027-07-01T09:00:00)", NO_SUMMER_TIME) == FireDifferences(
        vanished=1,
        appeared=1,
        first_vanished=datetime(2027, 7, 1, 8, tzinfo=UTC),
        first_appeared=datetime(2027, 7, 1, 7, tzinfo=UTC),
    )
    assert moved("at(2027-01-01T09:00:00)", NO_SUMMER_TIME) is None


def test_a_single_fire_that_the_clocks_now_jump_over_runs_when_it_was_planned() -> None:
    assert moved("at(2027-03-28T02:30:00)", NO_SUMMER_TIME) is None
    found = moved("at(2027-03-28T02:30:00)", NO_SUMMER_TIME, gap=Gap.FIRE_AFTER)
    assert found is not None
    assert found.first_appeared == SPRING


@pytest.mark.parametrize("minutes", [7 * 60, 7 * 60 + 30, 8 * 60, 9 * 60])
def test_a_single_fire_that_is_past_by_either_is_let_be(minutes: int) -> None:
    """At seven by the rules of today, at eight by the former ones."""
    after = datetime(2027, 7, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    assert moved("at(2027-07-01T09:00:00)", NO_SUMMER_TIME, after=after) is None


def test_a_single_fire_that_has_run_by_the_former_rules_does_not_run_again() -> None:
    """At seven by the former rules, and at eight by those of today."""
    after = datetime(2027, 1, 1, 7, 30, tzinfo=UTC)
    assert moved("at(2027-01-01T09:00:00)", NO_WINTER_TIME, after=after) is None
    assert moved("at(2027-01-01T09:00:00)", NO_WINTER_TIME) is not None


def test_the_bounds_of_a_rule_bound_what_is_compared() -> None:
    until_spring = {"end_at": SPRING - timedelta(days=1)}
    assert moved("0 9 * * *", NO_SUMMER_TIME, **until_spring) is None
    found = moved("0 9 * * *", NO_SUMMER_TIME, end_at=datetime(2027, 3, 29, 7, tzinfo=UTC))
    assert found is not None
    assert (found.vanished, found.appeared) == (1, 2)


def test_a_rule_without_a_fire_is_not_moved() -> None:
    assert moved("0 9 * * *", NO_SUMMER_TIME, end_at=NINE - timedelta(days=1)) is None


@pytest.mark.parametrize("expression", ["* * * * *", "*/5 * * * 0-6"])
def test_a_dense_pace_is_compared_where_it_may_pause_alone(expression: str) -> None:
    """Hundreds of thousands of equal fires lie before the repeated hour of autumn."""
    found = moved(expression, NO_SUMMER_TIME, fold=Fold.FIRST)
    assert found is not None
    assert found.first_vanished == datetime(2027, 10, 31, 1, tzinfo=UTC)


def test_what_takes_too_many_fires_to_tell_is_taken_for_moved() -> None:
    """It pauses in winter alone, when the clocks are the same."""
    assert moved("* * * 1-11 *", NO_SUMMER_TIME) == FireDifferences(complete=False)


FORMS = ("15,45 0-4 * * *", "*/30 * * * *", "0 1-3 * * *", "59 1 * * *", "0 2 * * *")


@pytest.mark.parametrize("gap", Gap)
@pytest.mark.parametrize("fold", Fold)
@pytest.mark.parametrize("expression", FORMS)
@pytest.mark.parametrize(
    "former", [NO_SUMMER_TIME, NO_WINTER_TIME, TWO_WEEKS_LATER, HALF_AN_HOUR_AHEAD]
)
def test_the_first_difference_is_found_wherever_it_lies(
    former: str, expression: str, fold: Fold, gap: Gap
) -> None:
    rule = replace(a_rule(expression, time_zone="Europe/Berlin"), fold=fold, gap=gap)
    by_former = rule.next_fire_by(from_berlin(former).former)
    was: datetime | None
    was, will = by_former(NINE), rule.next_fire(NINE)
    for _ in range(20_000):
        if was is None or was != will:
            break
        fire = was
        was, will = by_former(fire), rule.next_fire(fire)
    found = moved(expression, former, fold=fold, gap=gap)
    if was == will:
        assert found is None
        return
    assert found is not None
    firsts = (found.first_vanished, found.first_appeared)
    assert min(first for first in firsts if first) == min(fire for fire in (was, will) if fire)


def steps_taken(expression: str, fold: Fold, monkeypatch: pytest.MonkeyPatch) -> int:
    """Count the fires that are computed to compare a rule."""
    steps = 0
    after = CronClock.next_after

    def counted(self: CronClock, instant: int) -> int | None:
        nonlocal steps
        steps += 1
        return after(self, instant)

    monkeypatch.setattr(CronClock, "next_after", counted)
    moved(expression, NO_SUMMER_TIME, fold=fold)
    return steps


@pytest.mark.parametrize(
    "expression", ["* 8-20 * * *", "* * * 1-11 *", "* 0-22 * * *", "0 9 * 1 *", "*/7 * 1-30 * *"]
)
@pytest.mark.parametrize("fold", Fold)
def test_comparing_one_rule_is_bounded(
    expression: str, fold: Fold, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound = 2 * (COMPARED_FIRES_MAX + COUNTED_FIRES_MAX) + 1_000
    assert steps_taken(expression, fold, monkeypatch) <= bound


def test_what_is_too_much_to_count_says_so() -> None:
    found = moved("* 8-20 * * *", NO_SUMMER_TIME)
    assert found is not None
    assert not found.complete
    assert 0 < found.vanished + found.appeared <= COUNTED_FIRES_MAX


def test_a_rule_by_the_pinned_rules_of_its_own_zone_fires_as_ever() -> None:
    rule = Rule(expression="30 2 * * *", time_zone="Europe/Berlin", anchor=NINE)
    by_pinned = rule.next_fire_by(pinned_rules().zone("Europe/Berlin"))
    fire: datetime | None = NINE
    for _ in range(400):
        assert fire is not None
        following = rule.next_fire(fire)
        assert by_pinned(fire) == following
        fire = following
