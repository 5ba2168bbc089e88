"""Shares of a limit: who may take how many, and what has run out."""

from datetime import timedelta

import pytest

from puntual.domain.run import LEASE_MARGIN
from puntual.domain.share import RUNNING, Share, ShareKey, Shares, block_of, taken
from tests.builders import NINE, TENANT

KEY = ShareKey(tenant=TENANT, name=RUNNING)
UNTIL = NINE + timedelta(seconds=60)
LAPSED = NINE - LEASE_MARGIN - timedelta(milliseconds=1)


def shares(**holders: Share) -> Shares:
    return Shares(key=KEY, holders=holders, write_id="one")


@pytest.mark.parametrize(
    ("others", "count", "granted"),
    [
        ({}, 1, 1),
        ({}, 9, 5),
        ({"b": Share(3, UNTIL)}, 1, 1),
        ({"b": Share(3, UNTIL)}, 4, 2),
        ({"b": Share(5, UNTIL)}, 1, 0),
        ({"b": Share(9, UNTIL)}, 1, 0),
        ({"b": Share(3, UNTIL), "c": Share(2, LAPSED)}, 4, 2),
        ({"b": Share(5, NINE - LEASE_MARGIN)}, 1, 0),
        ({"a": Share(4, UNTIL)}, 5, 5),
    ],
)
def test_a_holder_gets_what_the_others_leave_of_a_limit_of_five(
    others: dict[str, Share], count: int, granted: int
) -> None:
    after, got = taken(shares(**others), "a", count, limit=5, until=UNTIL, now=NINE)
    assert got == granted
    assert after.holders.get("a") == (Share(granted, UNTIL) if granted else None)
    assert after.in_use(NINE) <= max(5, shares(**others).in_use(NINE))


def test_what_has_run_out_goes_with_the_next_write() -> None:
    before = shares(b=Share(2, LAPSED), c=Share(1, UNTIL))
    after, _ = taken(before, "a", 1, limit=5, until=UNTIL, now=NINE)
    assert set(after.holders) == {"a", "c"}
    assert after.write_id == "", "whoever writes it signs it"


def test_a_holder_gives_its_share_back_by_taking_none() -> None:
    after, _ = taken(shares(a=Share(2, UNTIL)), "a", 0, limit=5, until=UNTIL, now=NINE)
    assert after.holders == {}


@pytest.mark.parametrize(("limit", "block"), [(1, 1), (39, 1), (40, 2), (199, 9), (10_000, 10)])
def test_small_limits_are_taken_one_by_one(limit: int, block: int) -> None:
    assert block_of(limit) == block
