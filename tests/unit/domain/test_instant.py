from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from puntual.domain.errors import Rejected
from puntual.domain.instant import (
    FIRST_INSTANT,
    LAST_INSTANT,
    MILLISECOND,
    TEXT_LENGTH,
    in_calendar,
    instant_of,
    minute_of,
    rounded_to_millisecond,
    text_of,
    truncated_to_millisecond,
)
from tests.builders import NINE

instants = st.datetimes(timezones=st.just(UTC))


def test_the_text_is_in_utc_and_in_milliseconds() -> None:
    madrid = timezone(timedelta(hours=1))
    assert text_of(NINE.astimezone(madrid)) == "2026-11-30T09:00:00.000Z"
    assert text_of(NINE + timedelta(microseconds=7999)) == "2026-11-30T09:00:00.007Z"


@given(instants)
@example(datetime.min.replace(tzinfo=UTC))
@example(datetime.max.replace(tzinfo=UTC))
def test_the_text_leads_back_to_the_millisecond(instant: datetime) -> None:
    assert instant_of(text_of(instant)) == truncated_to_millisecond(instant)
    assert len(text_of(instant)) == TEXT_LENGTH


@pytest.mark.parametrize(("microseconds", "milliseconds"), [(0, 0), (1, 1), (1000, 1), (1001, 2)])
def test_what_is_rounded_up_is_never_due_before_its_time(
    microseconds: int, milliseconds: int
) -> None:
    instant = NINE + timedelta(microseconds=microseconds)
    assert rounded_to_millisecond(instant) == NINE + milliseconds * MILLISECOND


@given(instants, instants)
def test_texts_sort_as_their_instants_do(one: datetime, other: datetime) -> None:
    one, other = truncated_to_millisecond(one), truncated_to_millisecond(other)
    assert (text_of(one) < text_of(other)) == (one < other)


@pytest.mark.parametrize("instant", [FIRST_INSTANT, NINE, LAST_INSTANT])
def test_an_instant_of_the_calendar_is_taken(instant: datetime) -> None:
    assert in_calendar("from", instant) is instant


@pytest.mark.parametrize(
    "instant",
    [
        datetime.min.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        FIRST_INSTANT - MILLISECOND,
        LAST_INSTANT + MILLISECOND,
        datetime.max.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
    ],
)
def test_an_instant_that_the_calendar_does_not_reach_is_refused(instant: datetime) -> None:
    with pytest.raises(Rejected, match=r"from: .*1900.*2400") as caught:
        in_calendar("from", instant)
    assert caught.value.field == "from"


@pytest.mark.parametrize(
    "text", ["2026-11-30T09:00:00.000+01:00", "2026-11-30T09:00:00", "yesterday", ""]
)
def test_what_is_not_a_utc_instant_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        instant_of(text)


def test_an_instant_lies_in_the_bucket_of_its_minute() -> None:
    assert minute_of(NINE + timedelta(seconds=59, microseconds=999_999)) == NINE
    assert minute_of(NINE + timedelta(minutes=1)) == NINE + timedelta(minutes=1)
