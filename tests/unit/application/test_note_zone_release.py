from datetime import timedelta

import pytest

from puntual.domain.zone_releases import ReleasesInUse, with_deployed
from tests.builders import NINE
from tests.unit.application.world import World, dies, io_points
from tests.zone_data import DEPLOYED, FORMER, pinned_rules

NOTED = ReleasesInUse(current=DEPLOYED, since=NINE)


def after_an_upgrade() -> World:
    world = World()
    world.zone_releases.row = ReleasesInUse(current=FORMER, since=NINE - timedelta(days=90))
    return world


def note(world: World) -> ReleasesInUse:
    return world.note_zone_release()


def test_the_first_tick_of_all_notes_the_release_and_keeps_its_rules() -> None:
    world = World()
    assert note(world) == NOTED
    assert world.zone_releases.row == NOTED
    assert world.zone_releases.kept == {DEPLOYED: pinned_rules()}


def test_a_tick_like_the_last_one_reads_one_row() -> None:
    world = World()
    note(world)
    world.io_points.clear()
    world.clock.advance(timedelta(minutes=1))
    assert note(world) == NOTED
    assert world.calls == ["zone_releases.in_use"]


def test_an_upgrade_is_behind_until_schedules_are_planned_anew() -> None:
    world = after_an_upgrade()
    noted = note(world)
    assert noted == ReleasesInUse(current=DEPLOYED, since=NINE, former=frozenset({FORMER}))
    assert noted.is_behind(DEPLOYED)


@pytest.mark.parametrize("at", io_points(after_an_upgrade(), note))
def test_a_release_that_is_named_has_its_rules_kept_wherever_its_tick_dies(at: int) -> None:
    world = after_an_upgrade()
    dies(world, note, at=at)
    row = world.zone_releases.row
    assert row is not None
    assert row.current == FORMER or DEPLOYED in world.zone_releases.kept
    assert note(world).former == {FORMER}


def test_who_comes_second_believes_the_first() -> None:
    world = after_an_upgrade()
    before = with_deployed(world.zone_releases.row, DEPLOYED, now=NINE - timedelta(seconds=1))

    def come_first(name: str) -> None:
        if name == "zone_releases.swap":
            world.zone_releases.row = before

    world.at_io = come_first
    assert note(world) == before
