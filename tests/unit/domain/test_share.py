"""Shares of a limit: who may take how many, and what has run out."""

from datetime import timedelta

import pytest

from puntual.domain.run import LEASE_MARGIN
from puntual.domain.share import (
    RUNNING,
    RUNS_KEPT_MAX,
    Share,
    ShareKey,
    Shares,
    block_of,
    kept,
    left,
    run_holder,
    taken,
)
from tests.builders import NINE, TENANT, a_run

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


# Runs that no executor stands behind


def test_a_run_under_way_has_its_share_room_or_none_and_its_end_only_rises() -> None:
    full = shares(b=Share(5, UNTIL), c=Share(1, LAPSED))
    after = kept(full, "run a 1", until=UNTIL, now=NINE)
    assert after.holders == {"b": Share(5, UNTIL), "run a 1": Share(1, UNTIL)}
    assert kept(after, "run a 1", until=NINE, now=NINE) is after
    later = UNTIL + timedelta(seconds=60)
    assert kept(after, "run a 1", until=later, now=NINE).holders["run a 1"] == Share(1, later)


def test_a_late_heartbeat_takes_its_share_anew() -> None:
    before = shares(**{"run a 1": Share(1, LAPSED)})
    assert kept(before, "run a 1", until=UNTIL, now=NINE).in_use(NINE) == 1


def test_a_row_has_a_place_for_so_many_runs_and_no_more() -> None:
    runs = {f"run {number} 1": Share(1, UNTIL) for number in range(RUNS_KEPT_MAX)}
    full = shares(**runs)
    assert kept(full, "run more 1", until=UNTIL, now=NINE) is full
    later = UNTIL + timedelta(seconds=60)
    assert kept(full, "run 0 1", until=later, now=NINE).holders["run 0 1"] == Share(1, later)


def test_each_attempt_has_a_share_of_its_own() -> None:
    first, second = (run_holder(a_run(attempt=attempt)) for attempt in (1, 2))
    assert first != second
    both = shares(**{first: Share(1, UNTIL), second: Share(1, UNTIL)})
    assert set(left(both, first, now=NINE).holders) == {second}
    assert left(both, "run x 1", now=NINE) is both
