"""Clock, ids and chance."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from puntual.adapters.system_chance import SystemChance
from puntual.adapters.system_clock import SystemClock
from puntual.adapters.system_ids import SystemIds
from puntual.application.ports import Chance, Clock, IdSource
from tests.builders import NINE
from tests.fakes.counting_ids import CountingIds
from tests.fakes.manual_clock import ManualClock, SkewedClock
from tests.fakes.seeded_chance import FixedChance, SeededChance


@pytest.mark.parametrize(
    "clock",
    [
        SystemClock(),
        ManualClock(NINE + timedelta(microseconds=7)),
        SkewedClock(true=ManualClock(NINE), offset=timedelta(microseconds=-1)),
    ],
)
def test_an_instant_is_utc_in_whole_milliseconds(clock: Clock) -> None:
    now = clock.now()
    assert now.utcoffset() == timedelta(0)
    assert now.microsecond % 1000 == 0


def test_the_system_clock_tells_the_time() -> None:
    assert abs(SystemClock().now() - datetime.now(UTC)) < timedelta(seconds=5)


def test_a_manual_clock_moves_only_when_told_and_never_back() -> None:
    clock = ManualClock(NINE)
    assert clock.now() == clock.now() == NINE
    clock.advance(timedelta(seconds=2))
    clock.advance_to(NINE)
    assert clock.now() == NINE + timedelta(seconds=2)


@pytest.mark.parametrize("ids", [SystemIds(), CountingIds()])
def test_ids_are_new_and_32_hexadecimal_digits(ids: IdSource) -> None:
    given = [ids.new_id() for _ in range(100)]
    assert len(set(given)) == 100
    assert all(len(one) == 32 and int(one, 16) >= 0 for one in given)


@pytest.mark.parametrize(
    "chance", [SystemChance(), SeededChance(random.Random(7)), FixedChance(0.0)]
)
def test_a_fraction_lies_in_0_to_1(chance: Chance) -> None:
    assert all(0 <= chance.fraction() < 1 for _ in range(100))


def test_the_system_chance_differs_each_time() -> None:
    assert len({SystemChance().fraction() for _ in range(100)}) > 90
