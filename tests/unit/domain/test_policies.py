from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puntual.domain.policies import RetryPolicy

ALMOST_ONE = 1 - 2**-53
chances = st.floats(min_value=0, max_value=ALMOST_ONE)
waits = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=30))


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 10), (2, 20), (3, 40), (8, 1280), (9, 1800), (20, 1800)]
)
def test_the_ceiling_doubles_with_each_failure_up_to_the_cap(failures: int, seconds: int) -> None:
    wait = RetryPolicy().backoff(failures=failures, chance=ALMOST_ONE, retry_after=None)
    assert wait == pytest.approx(timedelta(seconds=seconds), abs=timedelta(milliseconds=1))


def test_the_jitter_is_full() -> None:
    assert RetryPolicy().backoff(failures=3, chance=0, retry_after=None) == timedelta(0)
    half = RetryPolicy().backoff(failures=3, chance=0.5, retry_after=None)
    assert half == timedelta(seconds=20)


def test_a_receiver_that_asks_for_more_time_gets_it() -> None:
    wait = RetryPolicy().backoff(failures=1, chance=0.5, retry_after=timedelta(seconds=90))
    assert wait == timedelta(seconds=90)


def test_a_receiver_cannot_shorten_the_wait_nor_stretch_it_beyond_the_cap() -> None:
    policy = RetryPolicy(base=timedelta(seconds=10), cap=timedelta(seconds=60))
    short = policy.backoff(failures=1, chance=0.5, retry_after=timedelta(seconds=1))
    long = policy.backoff(failures=1, chance=0.5, retry_after=timedelta(days=9))
    assert (short, long) == (timedelta(seconds=5), timedelta(seconds=60))


@given(
    failures=st.integers(1, 10_000),
    chance=chances,
    retry_after=st.none() | waits,
    base=st.timedeltas(min_value=timedelta(seconds=1), max_value=timedelta(hours=1)),
    cap=st.timedeltas(min_value=timedelta(seconds=1), max_value=timedelta(days=1)),
)
def test_no_wait_is_negative_or_beyond_the_cap(
    failures: int, chance: float, retry_after: timedelta | None, base: timedelta, cap: timedelta
) -> None:
    policy = RetryPolicy(base=base, cap=cap)
    wait = policy.backoff(failures=failures, chance=chance, retry_after=retry_after)
    assert timedelta(0) <= wait <= cap


@given(failures=st.integers(1, 30), chance=chances)
def test_waiting_never_gets_shorter_with_more_failures(failures: int, chance: float) -> None:
    one = RetryPolicy().backoff(failures=failures, chance=chance, retry_after=None)
    more = RetryPolicy().backoff(failures=failures + 1, chance=chance, retry_after=None)
    assert one <= more
