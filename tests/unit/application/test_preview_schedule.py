"""A preview of a schedule: the fires of its standing version, or of the one a resume would make."""

from datetime import datetime, timedelta

import pytest

from puntual.application.preview_schedule import PreviewedSchedule
from puntual.domain.errors import Rejected
from puntual.domain.expression import Rule
from puntual.domain.instant import LAST_INSTANT, MILLISECOND
from puntual.domain.occurrence import Occurrence, available_at_of
from puntual.domain.policies import Policies
from puntual.domain.schedule import ScheduleKey, ScheduleState, UnknownSchedule
from puntual.domain.tenant import ScheduleId
from tests.builders import NINE, TENANT
from tests.control_plane_world import AUTHOR, KEY, World

WINDOW = timedelta(minutes=10)
JITTERED = Policies(window=WINDOW)


@pytest.fixture
def world() -> World:
    return World()


def previewed(world: World, *, after: datetime | None = None, count: int = 5) -> PreviewedSchedule:
    return world.plane.preview_schedule(KEY, after=after, count=count)


def instants(shown: PreviewedSchedule) -> tuple[datetime, ...]:
    return tuple(fire.instant for fire in shown.previewed.preview.fires)


def jittered(rule: Rule, fire: datetime, version: int) -> datetime:
    occurrence = Occurrence(
        tenant=KEY.tenant, schedule=KEY.schedule, version=version, scheduled_for=fire
    )
    return available_at_of(occurrence, rule=rule, window=WINDOW)


def test_an_active_schedule_shows_its_next_fires(world: World) -> None:
    made = world.created("0 9 * * 1-5", time_zone="Europe/Berlin")
    shown = previewed(world)
    assert instants(shown) == made.next_fires
    assert shown.head == made.head
    assert shown.previewed.rule == made.version.rule


def test_a_fire_may_run_once_its_jitter_is_over(world: World) -> None:
    rule = world.created("0 9 * * *", policies=JITTERED).version.rule
    fires = previewed(world, count=20).previewed.preview.fires
    assert [fire.available_at for fire in fires] == [
        jittered(rule, fire.instant, 1) for fire in fires
    ]
    assert len({fire.available_at - fire.instant for fire in fires}) > 5


def test_no_fire_is_shown_that_the_version_does_not_own(world: World) -> None:
    world.created("rate(5 minutes)", start_at=NINE - timedelta(hours=1))
    assert instants(previewed(world, after=NINE - timedelta(hours=9), count=1)) == (NINE,)
    later = NINE + timedelta(hours=3)
    assert instants(previewed(world, after=later, count=1)) == (later + timedelta(minutes=5),)


def test_a_paused_schedule_shows_what_a_resume_now_would_bring(world: World) -> None:
    world.created("0 9 * * *", policies=JITTERED)
    world.plane.pause_schedule(KEY, author=AUTHOR, seen=None)
    world.clock.advance_to(NINE + timedelta(hours=3))
    shown = previewed(world, after=NINE - timedelta(days=9))
    assert shown.head.state is ScheduleState.PAUSED
    resumed = world.plane.resume_schedule(KEY, author=AUTHOR, seen=None)
    assert instants(shown) == resumed.next_fires
    for fire in shown.previewed.preview.fires:
        assert fire.available_at == resumed.version.fires.available_at(fire.instant)


def test_a_paused_schedule_whose_last_fire_is_over_shows_none(world: World) -> None:
    world.created("0 10 * * *", end_at=NINE + timedelta(hours=2))
    world.plane.pause_schedule(KEY, author=AUTHOR, seen=None)
    world.clock.advance_to(NINE + timedelta(days=1))
    shown = previewed(world)
    assert (shown.head.state, instants(shown)) == (ScheduleState.PAUSED, ())


def test_a_canceled_schedule_has_no_fires_and_no_notes(world: World) -> None:
    world.created("30 2 * * *", time_zone="Europe/Berlin")
    assert previewed(world).previewed.preview.clock_changes != ()
    world.plane.cancel_schedule(KEY, author=AUTHOR, seen=None)
    shown = previewed(world).previewed
    assert shown.preview.fires == ()
    assert shown.preview.clock_changes == ()
    assert shown.warnings == ()
    assert shown.preview.notes_through <= world.clock.now()


def test_a_fire_exactly_now_is_still_to_come(world: World) -> None:
    made = world.created("0 9 * * *")
    assert made.version.first_fire == NINE == world.clock.now()
    assert instants(previewed(world, count=1)) == (NINE,)


def test_an_unknown_schedule_is_refused(world: World) -> None:
    with pytest.raises(UnknownSchedule):
        world.plane.preview_schedule(
            ScheduleKey(tenant=TENANT, schedule=ScheduleId("none")), after=None, count=1
        )


def test_an_instant_outside_of_the_calendar_is_refused(world: World) -> None:
    world.created()
    with pytest.raises(Rejected) as caught:
        previewed(world, after=LAST_INSTANT + MILLISECOND)
    assert caught.value.field == "after"
    assert instants(previewed(world, after=LAST_INSTANT)) == ()
