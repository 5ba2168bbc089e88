"""Breakers: when they open, for how long, and who may try."""

from datetime import datetime, timedelta

import pytest

from puntual.domain.breaker import (
    COOL_DOWN_FIRST,
    COOL_DOWN_MAX,
    FORGOTTEN_AFTER,
    OPEN_MAX,
    Breaker,
    Breakers,
    blames_target,
    closed,
    cool_down,
    opened,
    probed,
    unprobed,
)
from puntual.domain.target import Accepted, Delivered, DeliveryResult, Failed
from tests.builders import NINE, TENANT

TARGET = "https://acme.example"
NONE = Breakers(tenant=TENANT, by_target={}, write_id="one")
ENDS = NINE + COOL_DOWN_FIRST
OPEN = opened(NONE, TARGET, NINE)
LEASE = timedelta(seconds=25)


def test_nothing_goes_out_while_it_cools_down() -> None:
    assert NONE.blocked_until(TARGET, NINE) is None
    assert OPEN.blocked_until(TARGET, NINE) == ENDS
    assert OPEN.blocked_until("https://other.example", NINE) is None
    assert OPEN.blocked_until(TARGET, ENDS) is None


@pytest.mark.parametrize(
    ("times", "seconds"), [(1, 10), (2, 20), (3, 40), (5, 160), (6, 300), (60, 300)]
)
def test_the_cool_down_doubles_up_to_a_bound(times: int, seconds: int) -> None:
    assert cool_down(times) == timedelta(seconds=seconds) <= COOL_DOWN_MAX


def test_one_probe_goes_out_after_the_cool_down() -> None:
    assert probed(OPEN, TARGET, now=ENDS - timedelta(milliseconds=1), until=ENDS + LEASE) is None
    probing = probed(OPEN, TARGET, now=ENDS, until=ENDS + LEASE)
    assert probing is not None
    assert probing.write_id == ""
    assert probing.blocked_until(TARGET, ENDS) == ENDS + LEASE
    assert probed(probing, TARGET, now=ENDS, until=ENDS + LEASE) is None
    again = probed(probing, TARGET, now=ENDS + LEASE, until=ENDS + 2 * LEASE)
    assert again is not None, "the one who probed is dead"
    assert probed(NONE, TARGET, now=NINE, until=ENDS) is None


def test_a_probe_that_fails_opens_it_for_twice_as_long() -> None:
    probing = probed(OPEN, TARGET, now=ENDS, until=ENDS + LEASE)
    assert probing is not None
    again = opened(probing, TARGET, ENDS)
    assert again.by_target == {TARGET: Breaker(until=ENDS + timedelta(seconds=20), opened=2)}


def test_others_who_find_it_failing_do_not_prolong_its_cool_down() -> None:
    assert opened(OPEN, TARGET, ENDS - timedelta(milliseconds=1)) is OPEN


def test_a_success_closes_it() -> None:
    assert closed(OPEN, TARGET, ENDS).by_target == {}
    assert closed(NONE, TARGET, ENDS) is NONE


def test_breakers_that_nobody_comes_to_are_forgotten() -> None:
    later = ENDS + FORGOTTEN_AFTER
    assert set(opened(OPEN, "https://other.example", later).by_target) == {"https://other.example"}


def test_no_more_than_a_bound_are_open_at_once() -> None:
    def full(now: datetime) -> Breakers:
        by_target = {f"https://{n}.example": Breaker(until=now) for n in range(OPEN_MAX)}
        return Breakers(tenant=TENANT, by_target=by_target)

    breakers = full(ENDS)
    assert opened(breakers, TARGET, NINE) is breakers
    assert opened(breakers, "https://7.example", ENDS).by_target["https://7.example"].opened == 2


@pytest.mark.parametrize(
    ("result", "blames"),
    [
        (Delivered(detail="HTTP 200"), False),
        (Failed(detail="HTTP 400", retryable=False), False),
        (Failed(detail="HTTP 503", retryable=True), True),
        (Failed(detail="the signing keys", retryable=True, by_target=False), False),
    ],
)
def test_only_failures_of_the_target_that_may_pass_count(
    result: DeliveryResult, *, blames: bool
) -> None:
    assert blames_target(result) is blames


def test_a_probe_that_asked_nobody_is_given_back_by_who_took_it_alone() -> None:
    probing = probed(OPEN, TARGET, now=ENDS, until=ENDS + LEASE)
    assert probing is not None
    free = unprobed(probing, TARGET, until=ENDS + LEASE)
    assert free.by_target == OPEN.by_target
    assert unprobed(probing, TARGET, until=ENDS + 2 * LEASE) is probing
    assert unprobed(NONE, TARGET, until=ENDS) is NONE


@pytest.mark.parametrize(
    ("result", "blamed"),
    [
        (Accepted(detail="HTTP 202"), False),
        (Delivered(detail="Step Functions: already started"), False),
        (Failed(detail="SQS AccessDenied", retryable=False), False),
        (Failed(detail="STS Throttling", retryable=True, by_target=False), False),
        (Failed(detail="Lambda TooManyRequestsException", retryable=True), True),
    ],
)
def test_what_blames_a_target_is_that_it_answered_so(
    result: DeliveryResult, *, blamed: bool
) -> None:
    assert blames_target(result) is blamed
