from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puntual.domain.occurrence import Kind, Occurrence, available_at_of
from tests.builders import NINE, an_occurrence

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
    assert available_at_of(an_occurrence(), timedelta(0)) == NINE


def test_what_a_person_asked_for_is_never_delayed_by_a_window() -> None:
    manual = an_occurrence(kind=Kind.MANUAL, request_id="r1")
    assert available_at_of(manual, timedelta(hours=1)) == NINE


@given(version=st.integers(1, 10_000), window=st.integers(1, 86_400))
def test_jitter_is_deterministic_whole_seconds_below_the_window(version: int, window: int) -> None:
    def jitter(occurrence: Occurrence) -> timedelta:
        return available_at_of(occurrence, timedelta(seconds=window)) - NINE

    found = jitter(an_occurrence(version=version))
    assert found == jitter(an_occurrence(version=version))
    assert timedelta(0) <= found < timedelta(seconds=window)
    assert found % timedelta(seconds=1) == timedelta(0)


def test_jitter_spreads_occurrences_over_the_whole_window() -> None:
    seconds = [
        (available_at_of(an_occurrence(version=n), timedelta(seconds=100)) - NINE).total_seconds()
        for n in range(2000)
    ]
    by_tenth = [
        sum(10 * tenth <= second < 10 * tenth + 10 for second in seconds) for tenth in range(10)
    ]
    assert min(by_tenth) > 120


@pytest.mark.parametrize("window_ms", [1, 999])
def test_a_window_below_a_second_is_none(window_ms: int) -> None:
    assert available_at_of(an_occurrence(), timedelta(milliseconds=window_ms)) == NINE
