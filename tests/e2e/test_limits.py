"""Limits of a tenant and of its targets, as its receivers see them."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

import pytest

from scripts.receiver import Arrival, Receiver, receiving
from scripts.waiting import until
from tests.e2e.conftest import Stage, at_in

FIRES = 6
FIVE_SECONDS = {"fires_per_minute_max": 12}
EARLY = timedelta(seconds=1.5)
"""Delays are whole seconds: one fire may be late where the next one is not."""

SLOW_SECONDS = 2
DEAD_FIRES = 8
ATTEMPTS = 10


def arrivals(receiver: Receiver, tenant: str) -> list[Arrival]:
    found = [arrival for arrival in receiver.book.all() if arrival.tenant == tenant]
    return sorted(found, key=lambda arrival: arrival.arrived_at)


def gaps(found: list[Arrival]) -> list[timedelta]:
    return [after.arrived_at - before.arrived_at for before, after in pairwise(found)]


def test_all_fires_over_the_rate_come_one_after_the_other(stage: Stage) -> None:
    stage.api.register(stage.tenant, quotas=FIVE_SECONDS)
    expression, fire = at_in(5)
    made = [stage.create(expression=expression)["id"] for _ in range(FIRES)]
    found = until(
        lambda: arrivals(stage.receiver, stage.tenant), lambda seen: len(seen) >= FIRES, seconds=60
    )
    assert {arrival.schedule for arrival in found} == set(made)
    assert min(gaps(found)) > timedelta(seconds=5) - EARLY
    rows = [stage.wait_for_state(each, fire, "SUCCEEDED", seconds=10) for each in made]
    held = {row.get("held_by") for row in rows}
    assert held == {None, "held by fires_per_minute_max"}
    assert [len(row["attempts"]) for row in rows] == [1] * FIRES, "waiting is no attempt"


def test_one_at_a_time_is_one_at_a_time(stage: Stage) -> None:
    stage.api.register(stage.tenant, quotas={"running_max": 1})
    expression, _ = at_in(5)
    for _ in range(3):
        stage.create(f"slow/{SLOW_SECONDS}", expression=expression)
    found = until(
        lambda: arrivals(stage.receiver, stage.tenant), lambda seen: len(seen) >= 3, seconds=60
    )
    assert len(found) == 3
    assert min(gaps(found)) >= timedelta(seconds=SLOW_SECONDS)


@pytest.fixture
def dead() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


def test_a_target_that_only_fails_is_left_alone_while_another_goes_on(
    stage: Stage, dead: Receiver
) -> None:
    expression, _ = at_in(5)
    target = {"type": "webhook", "url": f"{dead.url}/down"}
    retry = {"max_attempts": ATTEMPTS, "base_seconds": 1, "cap_seconds": 1}
    for _ in range(DEAD_FIRES):
        stage.create(expression=expression, target=target, retry=retry)
    first = until(dead.book.all, lambda seen: len(seen) >= DEAD_FIRES, seconds=30)
    assert len(first) >= DEAD_FIRES
    expression, fire = at_in(6)
    lives = stage.create(expression=expression)["id"]
    stage.wait_for_state(lives, fire, "SUCCEEDED", seconds=20)
    tried = len(dead.book.all())
    assert tried < DEAD_FIRES * ATTEMPTS // 2, "each would have had all its attempts by now"
