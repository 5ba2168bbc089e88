from datetime import timedelta

import pytest

from puntual.domain.lane import Lane
from puntual.domain.occurrence import Kind
from tests.builders import NINE, a_page, a_planned, an_occurrence

FIRST = a_planned(an_occurrence(schedule="a"))
SECOND = a_planned(an_occurrence(schedule="b"))


def test_p2_the_same_occurrences_make_the_same_page_whoever_writes_it_and_when() -> None:
    earlier = a_page(FIRST, SECOND, written_at=NINE - timedelta(minutes=10))
    later = a_page(FIRST, SECOND, written_at=NINE)
    assert earlier.id == later.id


def test_p2_other_occurrences_or_another_order_make_another_page() -> None:
    ids = {a_page(*planned).id for planned in [(FIRST,), (FIRST, SECOND), (SECOND, FIRST)]}
    assert len(ids) == 3


@pytest.mark.parametrize(
    ("late_ms", "flexible", "lane"),
    [
        (-600_000, False, Lane.STRICT),
        (60_000, False, Lane.STRICT),
        (60_000, True, Lane.FLEXIBLE),
        (60_001, False, Lane.RECOVERY),
        (60_001, True, Lane.RECOVERY),
    ],
)
def test_what_is_late_takes_the_recovery_lane(late_ms: int, flexible: bool, lane: Lane) -> None:  # noqa: FBT001
    planned = a_planned(flexible=flexible)
    assert planned.lane_at(planned.available_at + timedelta(milliseconds=late_ms)) is lane


def test_a_backfill_takes_the_recovery_lane_however_early_it_is() -> None:
    planned = a_planned(an_occurrence(kind=Kind.BACKFILL, request_id="r-1"))
    assert planned.lane_at(planned.available_at - timedelta(minutes=5)) is Lane.RECOVERY
