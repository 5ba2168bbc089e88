"""Turns of a planner's walk, seats of a lane, crowds in a batch."""

import pytest

from puntual.domain.agenda import Cursor
from puntual.domain.fairness import CROWD, SHARED_FROM, Turn, crowds_in, seats_of
from puntual.domain.lane import Lane
from puntual.domain.tenant import TenantId
from tests.builders import a_cursor, a_message, a_version, an_occurrence


def cursors_of(*counts: tuple[str, int]) -> list[Cursor]:
    return [
        a_cursor(version=a_version(tenant=tenant, schedule=f"s{number}"))
        for tenant, count in counts
        for number in range(count)
    ]


def a_turn(*, round_: int = 0, weights: dict[str, int] | None = None) -> Turn:
    return Turn(round=round_, quantum=10, weight_of=lambda tenant: (weights or {}).get(tenant, 1))


def counts_of(cursors: list[Cursor]) -> dict[str, int]:
    tenants = [cursor.tenant for cursor in cursors]
    return {tenant: tenants.count(tenant) for tenant in tenants}


@pytest.mark.parametrize(
    ("round_", "weight", "allowed"),
    [(0, 1, 10), (0, 3, 30), (1, 1, 20), (1, 3, 60), (4, 1, 160), (2, 100, 4_000)],
)
def test_a_turn_allows_a_quantum_by_weight_and_twice_as_much_each_round(
    round_: int, weight: int, allowed: int
) -> None:
    turn = a_turn(round_=round_, weights={"noisy": weight})
    chosen, put_off = turn.split(cursors_of(("noisy", allowed + 5)))
    assert (len(chosen), len(put_off)) == (allowed, 5)


def test_what_is_beyond_a_turn_is_put_off_and_all_others_are_chosen() -> None:
    chosen, put_off = a_turn().split(cursors_of(("a", 3), ("noisy", 25), ("z", 10)))
    assert counts_of(chosen) == {"a": 3, "noisy": 10, "z": 10}
    assert counts_of(put_off) == {"noisy": 15}


def test_the_order_within_a_tenant_stays() -> None:
    cursors = cursors_of(("noisy", 25))
    chosen, put_off = a_turn().split(cursors)
    assert chosen + put_off == cursors


def test_a_turn_goes_on_over_all_reads_of_a_bucket() -> None:
    turn = a_turn()
    given = [len(turn.split(cursors_of(("noisy", 4)))[0]) for _ in range(4)]
    assert given == [4, 4, 2, 0]


def test_nobody_asks_for_the_weight_of_a_tenant_within_its_quantum() -> None:
    asked: list[TenantId] = []

    def weight_of(tenant: TenantId) -> int:
        asked.append(tenant)
        return 1

    turn = Turn(round=0, quantum=10, weight_of=weight_of)
    turn.split(cursors_of(("a", 10), ("noisy", 30)))
    assert asked == ["noisy"]


@pytest.mark.parametrize(
    ("executors", "weight", "seats"),
    [
        (1000, 1, 750),
        (1000, 2, 857),
        (1000, 10, 967),
        (1000, 100, 996),
        (20, 1, 15),
        (SHARED_FROM, 1, 6),
        (SHARED_FROM, 100, 7),
        (SHARED_FROM - 1, 1, SHARED_FROM - 1),
        (2, 1, 2),
    ],
)
def test_seats_are_fewer_than_executors_where_these_are_shared(
    executors: int, weight: int, seats: int
) -> None:
    assert seats_of(executors, weight) == seats


def test_a_crowd_is_of_one_tenant_in_one_lane() -> None:
    crowd = [a_message(an_occurrence(schedule=f"s{each}")) for each in range(CROWD)]
    other = [a_message(an_occurrence(tenant="other"))] * (CROWD - 1)
    assert crowds_in([*other, *crowd]) == (crowd[0].crowd,)
    elsewhere = a_message(an_occurrence(), lane=Lane.RECOVERY)
    assert crowds_in([*crowd[1:], elsewhere]) == ()
