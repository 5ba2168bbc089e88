import itertools
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puntual.domain.instant import MILLISECOND, text_of
from puntual.domain.occurrence import Kind
from puntual.domain.run import DETAIL_LENGTH_MAX, LEASE_MARGIN, RunState
from tests.builders import NINE, a_note, a_run, a_span, an_occurrence

MIDNIGHT = NINE.replace(hour=0) + timedelta(days=1)


@pytest.mark.parametrize(
    ("state", "terminal"),
    [
        (RunState.RUNNING, False),
        (RunState.RETRY_WAIT, False),
        (RunState.SUCCEEDED, True),
        (RunState.DEAD, True),
        (RunState.MISSED, True),
        (RunState.CANCELED, True),
        (RunState.SKIPPED_OVERLAP, True),
    ],
)
def test_a_run_ends_in_every_state_but_two(state: RunState, terminal: bool) -> None:  # noqa: FBT001
    assert state.is_terminal is terminal


def test_p5_a_lease_is_live_until_no_clock_can_think_otherwise() -> None:
    run = a_run()
    assert run.lease_until is not None
    assert run.has_live_lease(run.lease_until + LEASE_MARGIN)
    assert not run.has_live_lease(run.lease_until + LEASE_MARGIN + MILLISECOND)


@pytest.mark.parametrize("state", [state for state in RunState if state is not RunState.RUNNING])
def test_only_a_running_row_has_a_lease(state: RunState) -> None:
    assert not a_run(state=state).has_live_lease(NINE)


def test_closing_an_attempt_leaves_those_before_it() -> None:
    first, second = a_run(attempt=2).finished_attempt(now=NINE, result="HTTP 503")
    assert (first.finished_at, first.result) == (None, "")
    assert (second.number, second.finished_at, second.result) == (2, NINE, "HTTP 503")


def test_a_long_result_is_cut() -> None:
    (attempt,) = a_run().finished_attempt(now=NINE, result="x" * 5000)
    assert len(attempt.result) == DETAIL_LENGTH_MAX


def test_a_row_without_attempts_has_none_to_close() -> None:
    assert a_run(attempt=0).finished_attempt(now=NINE, result="x") == ()


def test_a_span_within_a_day_stays_whole() -> None:
    span = a_span(NINE, NINE + timedelta(hours=3))
    assert list(span.cut_at_midnights()) == [span]


def test_a_span_is_cut_at_each_utc_midnight() -> None:
    parts = list(a_span(NINE, NINE + timedelta(days=2)).cut_at_midnights())
    assert [(part.first, part.last) for part in parts] == [
        (NINE, MIDNIGHT - MILLISECOND),
        (MIDNIGHT, MIDNIGHT + timedelta(days=1) - MILLISECOND),
        (MIDNIGHT + timedelta(days=1), NINE + timedelta(days=2)),
    ]


def test_a_span_of_one_instant_at_midnight_is_one_part_of_the_new_day() -> None:
    span = a_span(MIDNIGHT, MIDNIGHT)
    assert list(span.cut_at_midnights()) == [span]


@given(
    start=st.integers(0, 200_000).map(lambda minutes: NINE + timedelta(minutes=minutes)),
    length=st.integers(0, 20_000).map(lambda minutes: timedelta(minutes=minutes)),
)
def test_the_parts_of_a_span_cover_it_without_gap_or_overlap(
    start: datetime, length: timedelta
) -> None:
    parts = list(a_span(start, start + length).cut_at_midnights())
    assert (parts[0].first, parts[-1].last) == (start, start + length)
    for one, following in itertools.pairwise(parts):
        assert one.last + MILLISECOND == following.first
    assert all(part.first.date() == part.last.date() for part in parts)
    assert len({part.key for part in parts}) == len(parts)


def test_a_missed_span_stands_at_its_end() -> None:
    span = a_span(NINE, NINE + timedelta(hours=1))
    assert span.key.run == "2026-11-30T10:00:00.000Z#missed"


def test_a_canceled_span_has_its_version_in_its_place_since_another_may_own_the_same_end() -> None:
    places = {
        a_span(NINE, NINE, version=version, state=state).key.run
        for version in (1, 2)
        for state in (RunState.MISSED, RunState.CANCELED)
    }
    assert places == {
        "2026-11-30T09:00:00.000Z#missed",
        "2026-11-30T09:00:00.000Z#canceled#v1",
        "2026-11-30T09:00:00.000Z#canceled#v2",
    }


def test_a_note_stands_beside_the_run_one_per_version() -> None:
    run = a_run()
    note = a_note(an_occurrence(version=2))
    assert note.key.run == f"{text_of(NINE)}#v2"
    assert note.key != run.occurrence.key
    manual = a_note(an_occurrence(kind=Kind.MANUAL, request_id="r1"))
    assert manual.key.run == f"{text_of(NINE)}#manual#r1#v1"
