from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from puntual.application.ports import Sending
from puntual.application.relay_page import RelayPage, RelayReport
from puntual.domain.errors import Unavailable
from puntual.domain.lane import Lane
from puntual.domain.page import Page, Planned
from tests.builders import NINE, a_page, a_planned, an_occurrence
from tests.fakes.hostile import Rates
from tests.unit.application.world import World, dies, io_points


def at(seconds: float, *, schedule: str = "s", flexible: bool = False) -> Planned:
    """Give an occurrence that is available so many seconds after nine."""
    planned = a_planned(an_occurrence(schedule=schedule), flexible=flexible)
    return replace(planned, available_at=NINE + timedelta(seconds=seconds))


PAGE = a_page(
    at(-61, schedule="late"),
    at(0, schedule="due"),
    at(0.001, schedule="soon"),
    at(600, schedule="ahead"),
    at(600, schedule="relaxed", flexible=True),
    at(4000, schedule="far", flexible=True),
)


def a_world(page: Page = PAGE) -> World:
    world = World()
    world.outbox.put(page)
    return world


def relay(world: World) -> RelayReport:
    return world.relay_page(PAGE)


class RefusingLanes:
    """Takes all messages but those of one lane."""

    def __init__(self, refused: Lane) -> None:
        self.refused = refused

    def send(self, lane: Lane, sendings: Sequence[Sending]) -> tuple[Sending, ...]:
        return tuple(sendings) if lane is self.refused else ()


def test_each_occurrence_goes_to_its_lane_with_the_delay_that_is_left() -> None:
    world = a_world()
    assert relay(world) == RelayReport(sent=6, refused=0)
    sent = {
        message.occurrence.schedule: (lane, delay.total_seconds())
        for lane, message, delay in world.sent()
    }
    assert sent == {
        "late": (Lane.RECOVERY, 0),
        "due": (Lane.STRICT, 0),
        "soon": (Lane.STRICT, 1),
        "ahead": (Lane.STRICT, 600),
        "relaxed": (Lane.FLEXIBLE, 600),
        "far": (Lane.FLEXIBLE, 900),
    }


def test_the_queue_comes_first_and_the_page_is_deleted_after() -> None:
    world = a_world()
    relay(world)
    assert world.calls == ["lanes.send", "lanes.send", "lanes.send", "outbox.delete"]
    assert world.outbox.pages == {}


def test_a_message_knows_its_lane_so_that_parking_keeps_it_there() -> None:
    world = a_world()
    relay(world)
    assert all(message.lane is lane for lane, message, _ in world.sent())


def test_p7_a_page_with_anything_refused_stays() -> None:
    world = a_world()
    lanes = RefusingLanes(Lane.FLEXIBLE)
    report = RelayPage(outbox=world.outbox, lanes=lanes, clock=world.clock)(PAGE)
    assert report == RelayReport(sent=4, refused=2)
    assert list(world.outbox.pages.values()) == [PAGE]


def test_p7_a_page_whose_queue_did_not_answer_stays() -> None:
    world = a_world()
    world.rates = Rates(timed_out=1.0)
    with pytest.raises(Unavailable):
        relay(world)
    assert list(world.outbox.pages.values()) == [PAGE]


@pytest.mark.parametrize("crash", io_points(a_world(), relay))
def test_after_a_crash_at_any_io_relaying_again_loses_nothing(crash: int) -> None:
    world = a_world()
    dies(world, relay, at=crash)
    for page in list(world.outbox.pages.values()):
        world.relay_page(page)
    assert world.planned_ids() == {planned.occurrence.id for planned in PAGE.planned}
    assert world.outbox.pages == {}
