from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puntual.domain.instant import MILLISECOND
from puntual.domain.lane import Lane
from puntual.domain.message import CLOCK_TOLERANCE, PARK_MAX, delay_until, message_of
from tests.builders import NINE, a_message, a_planned, an_occurrence


@pytest.mark.parametrize(
    ("wait_ms", "delay_seconds"),
    [
        (-1000, 0),
        (0, 0),
        (1, 1),
        (1000, 1),
        (1001, 2),
        (899_001, 900),
        (900_000, 900),
        (900_001, 900),
        (86_400_000, 900),
    ],
)
def test_a_delay_is_whole_seconds_rounded_up_and_capped(wait_ms: int, delay_seconds: int) -> None:
    delay = delay_until(NINE + timedelta(milliseconds=wait_ms), now=NINE)
    assert delay == timedelta(seconds=delay_seconds)


@given(st.integers(-10_000, 2_000_000))
def test_a_delay_never_makes_a_message_visible_too_early_but_for_the_cap(wait_ms: int) -> None:
    wait = timedelta(milliseconds=wait_ms)
    delay = delay_until(NINE + wait, now=NINE)
    assert delay >= wait or delay == PARK_MAX
    assert delay < max(wait, timedelta(0)) + timedelta(seconds=1)


def test_a_message_is_enqueued_when_it_first_is_visible_while_due() -> None:
    message = a_message(available_at=NINE)
    assert message.enqueued(NINE - timedelta(minutes=1)).enqueued_at is None
    assert message.enqueued(NINE).enqueued_at == NINE
    assert message.enqueued(NINE + timedelta(seconds=3)).enqueued_at == NINE + timedelta(seconds=3)


def test_a_queue_whose_clock_is_a_little_behind_enqueues_at_the_time_itself() -> None:
    message = a_message(available_at=NINE)
    assert message.enqueued(NINE - CLOCK_TOLERANCE).enqueued_at == NINE
    assert message.enqueued(NINE - CLOCK_TOLERANCE - MILLISECOND).enqueued_at is None


def test_parking_keeps_when_a_message_was_first_enqueued() -> None:
    enqueued = a_message(available_at=NINE).enqueued(NINE)
    assert enqueued.enqueued(NINE + timedelta(hours=1)).enqueued_at == NINE


def test_the_version_that_authorised_a_message_is_judged_instead_of_its_own() -> None:
    assert a_message(an_occurrence(version=2)).judged_version == 2
    assert a_message(an_occurrence(version=2), authorised_version=5).judged_version == 5


def test_a_message_takes_its_occurrence_to_the_lane_of_the_moment() -> None:
    planned = a_planned(authorised_version=3)
    message = message_of(planned, now=NINE)
    assert (message.occurrence, message.available_at) == (planned.occurrence, NINE)
    assert (message.lane, message.authorised_version) == (Lane.STRICT, 3)
    assert message_of(planned, now=NINE + timedelta(hours=1)).lane is Lane.RECOVERY
