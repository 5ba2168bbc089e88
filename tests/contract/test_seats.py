"""The seats: leases of one owner each, and what is known of a crowd's pace."""

from datetime import timedelta

import pytest

from puntual.application.ports import Seats
from puntual.domain.errors import Unavailable
from puntual.domain.fairness import Seat
from puntual.domain.lane import Lane
from puntual.domain.message import Crowd
from puntual.domain.tenant import TenantId
from tests.builders import NINE, TENANT, a_tenant
from tests.contract.conftest import Aws, World
from tests.contract.sdk import refusing, repeating

CROWD = Crowd(tenant=TENANT, lane=Lane.STRICT)
SEAT = Seat(crowd=CROWD, number=7)
LATER = NINE + timedelta(seconds=30)


@pytest.fixture
def seats(world: World) -> Seats:
    return world.seats


def taken(seats: Seats, owner: str, *, seat: Seat = SEAT, at: timedelta = timedelta(0)) -> bool:
    return seats.take(seat, owner=owner, now=NINE + at, until=LATER + at)


def test_a_seat_has_one_owner_while_its_lease_lasts(seats: Seats) -> None:
    assert taken(seats, "one")
    assert not taken(seats, "two", at=timedelta(seconds=29))
    assert taken(seats, "two", at=timedelta(seconds=30))
    assert not taken(seats, "one", at=timedelta(seconds=31))


def test_its_owner_takes_it_again(seats: Seats) -> None:
    assert taken(seats, "one")
    assert taken(seats, "one", at=timedelta(seconds=20))
    assert not taken(seats, "two", at=timedelta(seconds=40)), "its lease is longer now"


def test_a_seat_that_was_left_is_free(seats: Seats) -> None:
    assert taken(seats, "one")
    seats.leave(SEAT, owner="one")
    assert taken(seats, "two")


def test_nobody_leaves_the_seat_of_another(seats: Seats) -> None:
    assert taken(seats, "one")
    seats.leave(SEAT, owner="two")
    assert not taken(seats, "two")
    seats.leave(Seat(crowd=CROWD, number=8), owner="two")


def test_seats_differ_by_number_lane_and_tenant(world: World) -> None:
    world.tenants.register(a_tenant())
    others = (
        Seat(crowd=CROWD, number=8),
        Seat(crowd=Crowd(tenant=TENANT, lane=Lane.RECOVERY), number=7),
        Seat(crowd=Crowd(tenant=TenantId("other"), lane=Lane.STRICT), number=7),
    )
    assert taken(world.seats, "one")
    for seat in others:
        assert taken(world.seats, "two", seat=seat)
    assert world.tenants.get(TENANT) == a_tenant(), "its registration is another item"


def test_nobody_knows_the_pace_of_a_crowd_that_was_never_noted(seats: Seats) -> None:
    assert seats.quick_until(CROWD) is None
    assert taken(seats, "one")
    assert seats.quick_until(CROWD) is None


def test_the_last_note_of_a_crowds_pace_holds(seats: Seats) -> None:
    seats.note_quick(CROWD, until=LATER)
    assert seats.quick_until(CROWD) == LATER
    seats.note_quick(CROWD, until=NINE)
    assert seats.quick_until(CROWD) == NINE
    assert seats.quick_until(Crowd(tenant=TENANT, lane=Lane.FLEXIBLE)) is None


def test_p9_a_write_that_the_sdk_repeats_is_our_own(aws: Aws) -> None:
    with repeating(aws.dynamodb, "UpdateItem"):
        assert taken(aws.world.seats, "one")
    with repeating(aws.dynamodb, "UpdateItem"):
        aws.world.seats.leave(SEAT, owner="one")
    assert taken(aws.world.seats, "two")


def test_a_throttle_is_unavailable(aws: Aws) -> None:
    with refusing(aws.dynamodb, "UpdateItem", "Oops", status=503):
        with pytest.raises(Unavailable):
            taken(aws.world.seats, "one")
        with pytest.raises(Unavailable):
            aws.world.seats.leave(SEAT, owner="one")
        with pytest.raises(Unavailable):
            aws.world.seats.note_quick(CROWD, until=LATER)
    with refusing(aws.dynamodb, "GetItem", "Oops", status=503), pytest.raises(Unavailable):
        aws.world.seats.quick_until(CROWD)
