"""`max_runs`: an end that is counted out when it is set."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from puntual.domain.errors import Rejected
from puntual.domain.policies import Policies, RunsBound
from puntual.domain.schedule import ScheduleState, ScheduleVersion
from tests.builders import NINE
from tests.control_plane_world import AUTHOR, KEY, World, a_definition

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


@pytest.fixture
def world() -> World:
    return World()


def version(world: World) -> ScheduleVersion:
    return world.schedules.version_rows[KEY, world.schedules.head_rows[KEY].version]


def edit(world: World, expression: str = "rate(5 minutes)", **fields: object) -> ScheduleVersion:
    seen = world.schedules.head_rows[KEY].version
    definition = a_definition(expression, **fields)
    world.plane.change_schedule(KEY, seen=seen, revise=lambda _: definition, author=AUTHOR)
    return version(world)


@pytest.mark.parametrize(
    ("expression", "bounds", "end"),
    [
        ("rate(5 minutes)", {}, NINE + 15 * MINUTE),
        ("0 12 * * *", {}, NINE.replace(hour=12) + timedelta(days=2)),
        # One exactly at the start is its own.
        ("0 * * * *", {}, NINE + 2 * HOUR),
        ("rate(5 minutes)", {"start_at": NINE + HOUR}, NINE + HOUR + 15 * MINUTE),
        ("rate(5 minutes)", {"end_at": NINE + 8 * MINUTE}, NINE + 8 * MINUTE),
        ("rate(5 minutes)", {"end_at": NINE + HOUR}, NINE + 15 * MINUTE),
    ],
)
def test_a_rule_ends_with_the_fire_of_its_number_or_at_its_own_end(
    world: World, expression: str, bounds: dict[str, datetime], end: datetime
) -> None:
    fields: dict[str, Any] = dict(bounds)
    world.created(expression, max_runs=3, **fields)
    assert version(world).rule.end_at == end
    assert version(world).asked_end_at == bounds.get("end_at")
    after: datetime | None = NINE - MINUTE
    fires = []
    while after is not None:
        after = version(world).rule.next_fire(after)
        fires.append(after)
    assert len(fires) - 1 <= 3


def test_the_last_one_keeps_its_window(world: World) -> None:
    policies = Policies(window=4 * MINUTE)
    made = world.created("rate(5 minutes)", max_runs=2, policies=policies).version
    last = made.rule.end_at
    assert last is not None
    assert made.policies.window == 4 * MINUTE
    assert last <= made.fires.available_at(last) < last + 4 * MINUTE


def test_an_edit_of_something_else_leaves_the_end_where_it_was(world: World) -> None:
    world.created("rate(5 minutes)", max_runs=3)
    world.clock.advance(7 * MINUTE)
    edited = edit(world, max_runs=3, payload={"other": 1})
    assert edited.rule.end_at == NINE + 15 * MINUTE


@pytest.mark.parametrize(
    ("expression", "runs", "end"),
    [
        # A pace that stays keeps its anchor, and is counted as it will fire.
        ("rate(5 minutes)", 2, NINE + 15 * MINUTE),
        ("rate(10 minutes)", 3, NINE + 37 * MINUTE),
    ],
)
def test_an_edit_of_the_rule_or_the_number_counts_anew_from_itself(
    world: World, expression: str, runs: int, end: datetime
) -> None:
    world.created("rate(5 minutes)", max_runs=3)
    world.clock.advance(7 * MINUTE)
    assert edit(world, expression, max_runs=runs).rule.end_at == end


def test_without_the_number_the_rule_goes_on(world: World) -> None:
    world.created("rate(5 minutes)", max_runs=3, end_at=NINE + HOUR)
    assert edit(world, end_at=NINE + HOUR).rule.end_at == NINE + HOUR
    assert version(world).policies.runs is None


def test_a_resume_does_not_count_the_fires_of_the_pause_anew(world: World) -> None:
    world.created("rate(5 minutes)", max_runs=3)
    world.clock.advance(MINUTE)
    world.plane.pause_schedule(KEY, author=AUTHOR)
    world.clock.advance(10 * MINUTE)
    world.plane.resume_schedule(KEY, author=AUTHOR)
    assert version(world).policies.runs == RunsBound(max_runs=3)
    assert version(world).rule.end_at == NINE + 15 * MINUTE
    world.plane.pause_schedule(KEY, author=AUTHOR)
    world.clock.advance(10 * MINUTE)
    resumed = world.plane.resume_schedule(KEY, author=AUTHOR)
    assert resumed.head.state is ScheduleState.COMPLETED


def test_a_single_fire_cannot_be_counted(world: World) -> None:
    with pytest.raises(Rejected) as caught:
        world.created("at(2026-12-01T09:00:00)", max_runs=1)
    assert caught.value.field == "max_runs"
