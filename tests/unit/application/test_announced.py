from datetime import datetime, timedelta

import pytest

from puntual.domain.agenda import Cursor
from puntual.domain.schedule import ScheduleVersion
from tests.builders import HORIZON, NINE, SCHEDULE, TENANT, a_cursor, a_rule, a_shard, a_version
from tests.unit.application.world import World, io_points

SOON = NINE + timedelta(minutes=5)
EVERY_FIVE = a_version()


def a_world(*, planned_through: datetime) -> World:
    world = World()
    world.shards.ensure(a_shard(now=planned_through - HORIZON))
    return world


def a_first_cursor(world: World, version: ScheduleVersion, fire: datetime) -> Cursor:
    """Do what the transaction of a create does."""
    world.holds(version)
    return world.is_due(version, fire)


def test_e10_a_shards_row_is_made_announced_before_the_first_cursor_goes_into_it() -> None:
    world = World()
    version = a_version()
    assert world.announced.ensure_shard(version.key) == 0
    row = world.shards.rows[0]
    assert row.planned_through == NINE + HORIZON
    assert row.drained_through == NINE - timedelta(hours=1)


def test_e10_a_shards_row_that_exists_stays_as_it_is() -> None:
    world = a_world(planned_through=NINE + timedelta(hours=1))
    before = dict(world.shards.rows)
    world.announced.ensure_shard(EVERY_FIVE.key)
    assert world.shards.rows == before


def test_a_shard_follows_from_tenant_and_schedule_alone() -> None:
    announced = World().announced
    assert announced.shard(EVERY_FIVE.key) == announced.shard(a_version(version=9).key)
    assert (EVERY_FIVE.tenant, EVERY_FIVE.schedule) == (TENANT, SCHEDULE)


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(minutes=4)])
def test_p1_a_cursor_at_or_before_the_announcement_is_planned_inline(ahead: timedelta) -> None:
    world = a_world(planned_through=SOON + ahead)
    world.announced.plan_inline(a_first_cursor(world, EVERY_FIVE, SOON))
    assert world.planned_fires() == [SOON]
    assert [cursor.scheduled_for for _, cursor in world.agenda.cursors()] == [
        SOON + timedelta(minutes=5)
    ]


def test_p1_a_cursor_beyond_the_announcement_is_left_to_the_planner() -> None:
    world = a_world(planned_through=SOON - timedelta(milliseconds=1))
    cursor = a_first_cursor(world, EVERY_FIVE, SOON)
    world.announced.plan_inline(cursor)
    assert world.planned_fires() == []
    assert [each for _, each in world.agenda.cursors()] == [cursor]
    assert world.calls == ["shards.get"]


def test_p1_planning_inline_goes_on_until_the_next_cursor_lies_beyond() -> None:
    every_minute = a_version(rule=a_rule("rate(1 minute)"))
    world = a_world(planned_through=NINE + HORIZON)
    world.announced.plan_inline(a_first_cursor(world, every_minute, NINE + timedelta(minutes=1)))
    assert world.planned_fires() == [NINE + timedelta(minutes=n) for n in range(1, 11)]
    assert [cursor.scheduled_for for _, cursor in world.agenda.cursors()] == [
        NINE + timedelta(minutes=11)
    ]


def test_p1_an_announcement_that_rises_meanwhile_is_read_again() -> None:
    world = a_world(planned_through=SOON)

    def rise(name: str) -> None:
        if name == "agenda.delete":
            world.shards.announce(0, SOON + timedelta(minutes=5))

    world.at_io = rise
    world.announced.plan_inline(a_first_cursor(world, EVERY_FIVE, SOON))
    assert world.planned_fires() == [SOON, SOON + timedelta(minutes=5)]


def test_a_cursor_that_was_quarantined_ends_the_planning_inline() -> None:
    world = a_world(planned_through=NINE + HORIZON)
    cursor = a_cursor(SOON, version=EVERY_FIVE)
    world.agenda.put(0, [cursor])
    world.announced.plan_inline(cursor)
    assert len(world.agenda.quarantined) == 1


def a_planner_behind() -> World:
    return a_world(planned_through=NINE - timedelta(hours=1))


def the_writer(world: World) -> None:
    cursor = a_first_cursor(world, EVERY_FIVE, SOON)
    world.at_io("writer wrote")
    world.announced.plan_inline(cursor)


def the_planner(world: World) -> None:
    world.plan_shard(0, deadline=NINE + timedelta(days=1))


def beside(world: World, other_at: int) -> World:
    """Let the writer come between any two steps of the planner."""
    points = 0

    def at_io(_: str) -> None:
        nonlocal points
        points += 1
        if points == other_at + 1:
            world.at_io = lambda _: None
            the_writer(world)

    world.at_io = at_io
    the_planner(world)
    return world


@pytest.mark.parametrize("at", io_points(a_planner_behind(), the_planner))
def test_p1_whenever_the_writer_comes_the_cursor_is_planned_within_the_pass(at: int) -> None:
    world = beside(a_planner_behind(), at)
    assert set(world.planned_fires()) >= {SOON}
    assert all(cursor.scheduled_for > SOON for _, cursor in world.agenda.cursors())


def planner_within(world: World, planner_at: int) -> World:
    """Let the whole pass come between any two steps of the writer."""
    points = 0

    def at_io(_: str) -> None:
        nonlocal points
        points += 1
        if points == planner_at + 1:
            world.at_io = lambda _: None
            the_planner(world)

    world.at_io = at_io
    the_writer(world)
    return world


@pytest.mark.parametrize("at", range(3))
def test_p1_whenever_the_planner_comes_the_cursor_is_planned(at: int) -> None:
    world = planner_within(a_planner_behind(), at)
    assert set(world.planned_fires()) >= {SOON}


def test_p1_both_may_plan_the_same_fire_and_it_is_one_page() -> None:
    world = a_world(planned_through=NINE + HORIZON)
    cursor = a_first_cursor(world, EVERY_FIVE, SOON)
    world.plan_cursors.plan(0, [cursor])
    world.agenda.put(0, [cursor])
    world.announced.plan_inline(cursor)
    assert len({page.id for page in world.outbox.pages.values()}) <= 2
    assert len(world.planned_ids()) == 2, "9:05 and, inline, 9:10"
