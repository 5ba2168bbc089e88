"""Who may hold an executor: each test has as many of them as it names, with a clock in common."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random

import pytest

from puntual.application.share_executors import (
    LOOKED_UP_FOR,
    QUICK_FOR,
    REFUSED_FOR_MAX,
    REFUSED_FOR_MIN,
    SEAT_LEASE,
    SEAT_RENEWED_AFTER,
    SEATS_TRIED_MAX,
    ShareExecutors,
)
from puntual.domain.errors import Unavailable
from puntual.domain.fairness import CROWD, QUICK, SHARED_FROM, Seat, seats_of
from puntual.domain.lane import Lane
from puntual.domain.message import Crowd, Message
from tests.builders import NINE, TENANT, a_message, an_occurrence
from tests.fakes.in_memory_seats import InMemorySeats
from tests.fakes.manual_clock import ManualClock
from tests.fakes.seeded_chance import SeededChance

NOISY = Crowd(tenant=TENANT, lane=Lane.STRICT)
SLOW, FAST = timedelta(seconds=10), QUICK / 2
MILLISECOND = timedelta(milliseconds=1)


@dataclass(slots=True)
class AbsentSeats(InMemorySeats):
    """A table that does not answer."""

    def __post_init__(self) -> None:
        InMemorySeats.__init__(self)

    def take(self, seat: Seat, *, owner: str, now: datetime, until: datetime) -> bool:
        raise Unavailable(f"take {seat} for {owner} at {now} until {until}")

    def quick_until(self, crowd: Crowd) -> datetime | None:
        raise Unavailable(f"read {crowd}")


@dataclass(slots=True, kw_only=True)
class LaneOfExecutors:
    count: int = 40
    weight: int = 1
    seats: InMemorySeats = field(default_factory=InMemorySeats)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NINE))
    shares: list[ShareExecutors] = field(init=False)

    def __post_init__(self) -> None:
        chance = SeededChance(Random(1))
        self.shares = [
            ShareExecutors(
                seats=self.seats,
                weight_of=lambda _: self.weight,
                clock=self.clock,
                chance=chance,
                owner=f"executor-{number}",
                executors=dict.fromkeys(Lane, self.count),
            )
            for number in range(self.count)
        ]

    def admitted(self, batch: Sequence[Message]) -> int:
        """Let every executor have such a batch; gives how many may hold it."""
        return sum(not share.admit(batch) for share in self.shares)

    def fill(self) -> ShareExecutors:
        """Let crowds come until each seat is taken; gives an executor without one."""
        owners = {owner for owner, _ in self.taken().values()}
        for number in range(seats_of(self.count, self.weight)):
            seat = Seat(crowd=NOISY, number=number)
            until = self.clock.now() + timedelta(minutes=1)
            self.seats.rows[seat] = (f"other-{number}", until)
        return next(share for share in self.shares if share.owner not in owners)

    def taken(self) -> dict[Seat, tuple[str, datetime]]:
        return self.seats.rows


def a_crowd(count: int = 10, *, tenant: str = TENANT) -> list[Message]:
    return [
        a_message(an_occurrence(tenant=tenant, schedule=f"s{number}")) for number in range(count)
    ]


def test_a_crowd_never_holds_all_executors_of_a_lane() -> None:
    lane = LaneOfExecutors(count=40)
    seats = seats_of(40, 1)
    assert seats / 2 < lane.admitted(a_crowd()) <= seats
    for _ in range(20):
        lane.clock.advance(REFUSED_FOR_MIN)
        held = lane.admitted(a_crowd())
    assert held <= seats
    assert len(lane.taken()) >= seats - 2, "and comes to hold nearly all that it may"


def test_the_heavier_may_hold_more() -> None:
    lane, heavy = LaneOfExecutors(count=40), LaneOfExecutors(count=40, weight=10)
    for each in (lane, heavy):
        for _ in range(40):
            each.clock.advance(REFUSED_FOR_MIN)
            each.admitted(a_crowd())
    assert len(lane.taken()) <= 30 < len(heavy.taken()) <= 38


def test_who_comes_alone_needs_no_seat_and_nothing_is_read_or_written() -> None:
    lane = LaneOfExecutors(seats=AbsentSeats())
    batch = a_crowd(CROWD - 1) + a_crowd(CROWD - 1, tenant="other")
    assert lane.admitted(batch) == lane.count
    assert lane.seats.writes == 0


def test_a_lane_of_few_executors_is_not_shared() -> None:
    lane = LaneOfExecutors(count=SHARED_FROM - 1)
    assert lane.admitted(a_crowd()) == lane.count
    assert lane.seats.writes == 0


def test_what_has_no_seat_is_parked_and_the_others_of_its_batch_are_not() -> None:
    lane = LaneOfExecutors()
    share = lane.fill()
    others = [a_message(an_occurrence(tenant=f"t{number}")) for number in range(3)]
    waits = share.admit([*others, *a_crowd(4)])
    assert waits.keys() == {3, 4, 5, 6}
    for until in waits.values():
        assert REFUSED_FOR_MIN <= until - NINE < 2 * REFUSED_FOR_MIN


def test_after_a_refusal_even_a_single_one_of_that_tenant_waits() -> None:
    lane = LaneOfExecutors()
    share = lane.fill()
    share.admit(a_crowd())
    assert share.admit(a_crowd(1)).keys() == {0}
    lane.clock.advance(REFUSED_FOR_MIN)
    assert share.admit(a_crowd(1)) == {}


def test_each_refusal_in_a_row_lasts_twice_as_long_and_asks_for_few_seats_once() -> None:
    lane = LaneOfExecutors()
    share, expected = lane.fill(), REFUSED_FOR_MIN
    for _ in range(8):
        lane.fill()
        writes = lane.seats.writes
        share.admit(a_crowd())
        share.admit(a_crowd())
        assert lane.seats.writes == writes + SEATS_TRIED_MAX
        lane.clock.advance(expected - MILLISECOND)
        assert share.admit(a_crowd())
        assert lane.seats.writes == writes + SEATS_TRIED_MAX, "it does not ask yet"
        lane.clock.advance(MILLISECOND)
        expected = min(2 * expected, REFUSED_FOR_MAX)
    assert expected == REFUSED_FOR_MAX


def test_a_seat_is_written_once_for_many_batches() -> None:
    lane = LaneOfExecutors()
    share = lane.shares[0]
    for _ in range(10):
        assert share.admit(a_crowd()) == {}
        share.settled({NOISY: SLOW})
        lane.clock.advance(timedelta(seconds=1))
    assert lane.seats.writes == 1


def test_a_seat_is_kept_while_its_batch_lasts() -> None:
    lane = LaneOfExecutors()
    share = lane.shares[0]
    share.admit(a_crowd())
    for _ in range(5):
        lane.clock.advance(SEAT_RENEWED_AFTER)
        share.renew()
    [(owner, until)] = lane.taken().values()
    assert (owner, until) == (share.owner, lane.clock.now() + SEAT_LEASE)


def test_an_executor_that_is_killed_gives_its_seat_back() -> None:
    lane = LaneOfExecutors(count=SHARED_FROM)
    for share in lane.shares:
        share.admit(a_crowd())
    before = len(lane.taken())
    lane.clock.advance(SEAT_LEASE)
    survivor = ShareExecutors(
        seats=lane.seats,
        weight_of=lambda _: 1,
        clock=lane.clock,
        chance=SeededChance(Random(2)),
        owner="survivor",
        executors=dict.fromkeys(Lane, lane.count),
    )
    assert survivor.admit(a_crowd()) == {}
    assert before >= len(lane.taken())


def test_a_seat_that_another_took_meanwhile_is_not_taken_for_ones_own() -> None:
    lane = LaneOfExecutors()
    share = lane.shares[0]
    share.admit(a_crowd())
    lane.clock.advance(SEAT_LEASE)
    lane.fill()
    assert share.admit(a_crowd())
    share.renew()
    assert share.owner not in {owner for owner, _ in lane.taken().values()}


def test_a_crowd_that_was_quick_needs_no_seat_of_any_executor() -> None:
    lane = LaneOfExecutors()
    first = lane.shares[0]
    first.admit(a_crowd())
    first.settled({NOISY: FAST})
    assert lane.taken() == {}, "it gave its seat back"
    writes = lane.seats.writes
    assert lane.admitted(a_crowd()) == lane.count
    assert lane.seats.writes == writes
    lane.clock.advance(QUICK_FOR)
    assert lane.admitted(a_crowd()) < lane.count


def test_a_crowd_that_has_become_slow_needs_seats_again() -> None:
    lane = LaneOfExecutors()
    first, second = lane.shares[:2]
    first.admit(a_crowd())
    first.settled({NOISY: FAST})
    assert second.admit(a_crowd()) == {}
    second.settled({NOISY: SLOW})
    lane.clock.advance(LOOKED_UP_FOR)
    assert lane.admitted(a_crowd()) <= seats_of(lane.count, 1)


def test_a_tenant_with_slow_targets_among_quick_ones_counts_as_slow() -> None:
    lane = LaneOfExecutors()
    share = lane.shares[0]
    for took in (SLOW, FAST, FAST):
        share.admit(a_crowd())
        share.settled({NOISY: took})
    assert len(lane.taken()) == 1
    assert lane.seats.quick == {}


def test_what_was_parked_says_nothing_of_how_quick_it_is() -> None:
    lane = LaneOfExecutors()
    share = lane.fill()
    share.admit(a_crowd())
    share.settled({})
    share.settled({NOISY: FAST})
    assert lane.seats.quick == {}


def test_each_lane_has_seats_of_its_own() -> None:
    lane = LaneOfExecutors()
    share = lane.fill()
    recovered = [
        a_message(an_occurrence(schedule=f"s{number}"), lane=Lane.RECOVERY) for number in range(5)
    ]
    assert share.admit(recovered) == {}
    assert share.admit(a_crowd())


def test_a_table_that_does_not_answer_stops_nobody() -> None:
    lane = LaneOfExecutors(seats=AbsentSeats())
    assert lane.admitted(a_crowd()) == lane.count


def test_a_seat_that_could_not_be_renewed_is_told_of() -> None:
    lane = LaneOfExecutors()
    share = lane.shares[0]
    share.admit(a_crowd())
    with pytest.raises(Unavailable):
        replace(share, seats=AbsentSeats()).renew()
