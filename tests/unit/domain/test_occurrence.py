from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puntual.domain.expression import Fold, Gap, Rule
from puntual.domain.occurrence import Kind, Occurrence, available_at_of
from tests.builders import NINE, a_rule, an_occurrence

ONCE = a_rule("at(2026-11-30T09:00:00)")

OTHERS = [
    an_occurrence(tenant="other"),
    an_occurrence(schedule="other"),
    an_occurrence(version=2),
    an_occurrence(scheduled_for=NINE + timedelta(seconds=1)),
    an_occurrence(kind=Kind.MANUAL, request_id="r1"),
    an_occurrence(kind=Kind.MANUAL, request_id="r2"),
    an_occurrence(kind=Kind.BACKFILL, request_id="r1"),
]


def test_the_id_is_the_same_for_ever() -> None:
    # Receivers keep it as their idempotency key: a release must never change it.
    assert an_occurrence().id == "e59c9787c1e6d2a62fa9041ab496aac7"


def test_every_part_of_an_occurrence_makes_another_id() -> None:
    ids = {occurrence.id for occurrence in [an_occurrence(), *OTHERS]}
    assert len(ids) == 1 + len(OTHERS)


def test_parts_never_run_into_each_other() -> None:
    one = an_occurrence(tenant="ab", schedule="c")
    other = an_occurrence(tenant="a", schedule="bc")
    assert one.id != other.id


def test_p6_versions_of_one_regular_fire_share_their_place_in_the_ledger() -> None:
    assert an_occurrence(version=1).key == an_occurrence(version=2).key


def test_manual_runs_and_backfills_have_a_place_of_their_own() -> None:
    keys = {occurrence.key for occurrence in [an_occurrence(), *OTHERS[4:]]}
    assert len(keys) == 4


def test_without_a_window_an_occurrence_is_available_at_its_time() -> None:
    assert available_at_of(an_occurrence(), rule=ONCE, window=timedelta(0)) == NINE


def test_what_a_person_asked_for_is_never_delayed_by_a_window() -> None:
    manual = an_occurrence(kind=Kind.MANUAL, request_id="r1")
    assert available_at_of(manual, rule=ONCE, window=timedelta(hours=1)) == NINE


@given(version=st.integers(1, 10_000), window=st.integers(1, 86_400))
def test_jitter_is_deterministic_whole_seconds_below_the_window(version: int, window: int) -> None:
    def jitter(occurrence: Occurrence) -> timedelta:
        return available_at_of(occurrence, rule=ONCE, window=timedelta(seconds=window)) - NINE

    found = jitter(an_occurrence(version=version))
    assert found == jitter(an_occurrence(version=version))
    assert timedelta(0) <= found < timedelta(seconds=window)
    assert found % timedelta(seconds=1) == timedelta(0)


def test_jitter_spreads_occurrences_over_the_whole_window() -> None:
    window = timedelta(seconds=100)
    seconds = [
        (available_at_of(an_occurrence(version=n), rule=ONCE, window=window) - NINE).total_seconds()
        for n in range(2000)
    ]
    by_tenth = [
        sum(10 * tenth <= second < 10 * tenth + 10 for second in seconds) for tenth in range(10)
    ]
    assert min(by_tenth) > 120


@pytest.mark.parametrize("window_ms", [1, 999])
def test_a_window_below_a_second_is_none(window_ms: int) -> None:
    window = timedelta(milliseconds=window_ms)
    assert available_at_of(an_occurrence(), rule=ONCE, window=window) == NINE


def test_the_jitter_is_the_same_for_ever() -> None:
    # Cursors lie where it puts them, and people are told of it days ahead.
    found = available_at_of(an_occurrence(), rule=ONCE, window=timedelta(hours=24))
    assert found == NINE + timedelta(seconds=20_394)


SPRING = datetime(2027, 3, 28, 0, 59, tzinfo=UTC)
"""01:59 in Madrid; in a minute it is 03:00 there."""


def test_p10_a_window_ends_before_the_next_fire_where_the_clocks_bring_it_nearer() -> None:
    rule = replace(a_rule("0,59 1-4 * * *", time_zone="Europe/Madrid"), gap=Gap.FIRE_AFTER)
    assert rule.next_fire(SPRING) == SPRING + timedelta(minutes=1)
    found = {
        available_at_of(
            an_occurrence(version=n, scheduled_for=SPRING), rule=rule, window=timedelta(hours=1)
        )
        for n in range(500)
    }
    assert (min(found), max(found)) == (SPRING, SPRING + timedelta(seconds=59))


ZONES = ("UTC", "Europe/Madrid", "Australia/Lord_Howe", "Antarctica/Troll", "Pacific/Apia")
TURNS = (
    datetime(2011, 12, 28, tzinfo=UTC),  # Apia skips a day
    datetime(2026, 3, 28, 12, tzinfo=UTC),
    datetime(2026, 4, 4, 3, tzinfo=UTC),
    datetime(2026, 10, 24, 12, tzinfo=UTC),
    datetime(2026, 10, 3, 3, tzinfo=UTC),
)


@given(
    rule=st.builds(
        Rule,
        expression=st.sampled_from(
            ["59 1 * * *", "0,59 * * * *", "*/20 1-3 * * *", "30 2 * * *", "0 0,12 * * *"]
        ),
        time_zone=st.sampled_from(ZONES),
        gap=st.sampled_from(Gap),
        fold=st.sampled_from(Fold),
        anchor=st.just(NINE),
    ),
    start=st.sampled_from(TURNS),
    window=st.integers(0, 86_400),
    version=st.integers(1, 100),
)
def test_p10_occurrences_become_available_in_their_order(
    rule: Rule, start: datetime, window: int, version: int
) -> None:
    fires = rule.fires_between(start, start + timedelta(days=3), limit=60)
    available = [
        available_at_of(
            an_occurrence(version=version, scheduled_for=fire),
            rule=rule,
            window=timedelta(seconds=window),
        )
        for fire in fires
    ]
    for fire, instant, following in zip(fires, available, fires[1:], strict=False):
        assert fire <= instant < following, "so its successor is available later"
