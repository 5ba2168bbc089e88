from datetime import datetime, timedelta

import pytest

from puntual.domain.backfill import (
    BACKFILL_AGE_MAX,
    DRAINS_WITHIN_MAX,
    LOST_AFTER,
    Found,
    check_drains,
    check_range,
    found_at,
)
from puntual.domain.errors import Rejected
from puntual.domain.instant import MILLISECOND
from puntual.domain.occurrence import Kind
from puntual.domain.run import Run, RunState, Span
from puntual.domain.timeline import Fire
from tests.builders import NINE, a_run, a_span, an_occurrence

FIRE = Fire(occurrence=an_occurrence(), available_at=NINE)
SOON = NINE + timedelta(hours=1)
HOUR = timedelta(hours=1)


def row(state: RunState, *, kind: Kind = Kind.REGULAR, attempt: int = 0) -> Run:
    return a_run(an_occurrence(kind=kind, request_id="r-1"), state=state, attempt=attempt)


@pytest.mark.parametrize(
    ("rows", "spans", "found"),
    [
        ([row(RunState.SUCCEEDED, attempt=1)], [], Found.RAN),
        ([row(RunState.RUNNING, attempt=1)], [], Found.RAN),
        ([row(RunState.DEAD, attempt=5)], [], Found.RAN),
        ([row(RunState.DEAD)], [], Found.RAN),
        ([row(RunState.SKIPPED_OVERLAP)], [], Found.RAN),
        ([row(RunState.CANCELED, attempt=1)], [], Found.RAN),
        ([row(RunState.MISSED)], [], Found.MISSING),
        ([row(RunState.CANCELED)], [], Found.MISSING),
        ([], [a_span(NINE - HOUR, SOON)], Found.MISSING),
        ([], [a_span(NINE, NINE, state=RunState.CANCELED)], Found.MISSING),
        ([], [a_span(NINE, SOON, version=2)], Found.PENDING),
        ([], [], Found.PENDING),
        # What an earlier backfill runs, or will, is not missing any more.
        ([row(RunState.RETRY_WAIT, kind=Kind.BACKFILL)], [a_span(NINE, SOON)], Found.RAN),
        ([row(RunState.CANCELED, kind=Kind.BACKFILL)], [a_span(NINE, SOON)], Found.MISSING),
        # It says nothing of the regular one, which may still be on its way.
        ([row(RunState.CANCELED, kind=Kind.BACKFILL)], [], Found.PENDING),
        # What was triggered in this very second is no run of the instant.
        ([row(RunState.SUCCEEDED, kind=Kind.MANUAL, attempt=1)], [], Found.PENDING),
    ],
)
def test_what_became_of_an_instant(rows: list[Run], spans: list[Span], found: Found) -> None:
    assert found_at(FIRE, rows, spans, SOON) is found


def test_an_instant_without_a_trace_counts_as_lost_after_a_day() -> None:
    assert found_at(FIRE, [], [], NINE + LOST_AFTER) is Found.PENDING
    assert found_at(FIRE, [], [], NINE + LOST_AFTER + MILLISECOND) is Found.MISSING


def test_a_range_is_past_and_remembered() -> None:
    check_range(NINE - BACKFILL_AGE_MAX, NINE, now=NINE)
    check_range(NINE, NINE, now=NINE)


@pytest.mark.parametrize(
    ("start", "end", "field"),
    [
        (NINE - BACKFILL_AGE_MAX - MILLISECOND, NINE, "from"),
        (NINE - HOUR, NINE + MILLISECOND, "until"),
        (NINE, NINE - MILLISECOND, "until"),
    ],
)
def test_any_other_range_is_refused(start: datetime, end: datetime, field: str) -> None:
    with pytest.raises(Rejected) as caught:
        check_range(start, end, now=NINE)
    assert caught.value.field == field


def test_what_the_rate_does_not_let_through_in_a_day_is_refused() -> None:
    check_drains(NINE + DRAINS_WITHIN_MAX, count=3, per_minute=1, now=NINE)
    with pytest.raises(Rejected) as caught:
        check_drains(NINE + DRAINS_WITHIN_MAX + MILLISECOND, count=3, per_minute=1, now=NINE)
    assert (caught.value.field, caught.value.value) == ("limit", "3")
