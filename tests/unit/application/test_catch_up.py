"""Catch-up on fakes: slices of recoveries, backlogs at a first claim, and what dies on the way."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from puntual.domain.agenda import Cursor, Recovery
from puntual.domain.budget import CATCH_UPS, BudgetKey
from puntual.domain.catch_up import BEYOND_LIMIT
from puntual.domain.instant import MINUTE
from puntual.domain.lane import Lane
from puntual.domain.message import Message
from puntual.domain.policies import Misfire, MisfirePolicy, Policies
from puntual.domain.run import RunState
from puntual.domain.schedule import ScheduleVersion
from puntual.domain.tenant import Quotas, Tenant
from tests.builders import (
    NINE,
    TENANT,
    a_cursor,
    a_message,
    a_rule,
    a_run,
    a_span,
    a_version,
    an_occurrence,
)
from tests.unit.application.world import World, dies, io_points

FIVE = 5 * MINUTE
NOW = NINE + timedelta(hours=1, seconds=30)


@pytest.fixture
def world() -> World:
    world = World()
    world.tenants.register(Tenant(tenant=TENANT, quotas=Quotas(catch_ups_per_minute=4)))
    world.clock.advance_to(NOW)
    return world


def a_catching_up_version(*, limit: int = 100) -> ScheduleVersion:
    misfire = MisfirePolicy(policy=Misfire.CATCH_UP, limit=limit)
    return a_version(
        rule=a_rule("*/5 * * * *"),
        policies=Policies(misfire=misfire),
        effective_from=NINE - timedelta(days=1),
    )


def a_recovery(version: ScheduleVersion) -> Cursor:
    recovery = Recovery(last=NINE + 11 * FIVE, left=100)
    return replace(
        a_cursor(NINE, version=version),
        available_at=NOW.replace(second=0),
        recovery=recovery,
    )


def recover(world: World) -> None:
    """Plan slices a minute apart until nothing is left, as one pass a minute does."""
    for _ in range(10):
        bucket = world.clock.now().replace(second=0)
        if due := world.agenda.due(0, bucket, limit=100):
            world.plan_recoveries.plan(0, due)
        world.clock.advance(MINUTE)


def test_e9_slices_take_the_tenant_s_tokens_and_the_next_one_is_due_in_the_next_minute(
    world: World,
) -> None:
    version = a_catching_up_version()
    world.holds(version)
    world.agenda.recover(0, a_recovery(version))
    work = world.plan_recoveries.plan(0, world.agenda.due(0, NOW.replace(second=0), limit=100))
    assert len(work.planned) == 4, "a minute's worth"
    [(_, cursor)] = world.agenda.cursors()
    assert cursor.bucket == NOW.replace(second=0) + MINUTE
    assert cursor.scheduled_for == NINE + 4 * FIVE
    recover(world)
    assert world.planned_fires() == [NINE + number * FIVE for number in range(12)]
    assert world.agenda.cursors() == ()


def test_recoveries_that_find_no_token_wait_for_the_next_minute(world: World) -> None:
    version = a_catching_up_version()
    world.holds(version)
    world.agenda.recover(0, a_recovery(version))
    world.catch_up.draw.reserve(BudgetKey(tenant=TENANT, name=CATCH_UPS), 4, 40)
    work = world.plan_recoveries.plan(0, world.agenda.due(0, NOW.replace(second=0), limit=100))
    assert work.planned == []
    [(_, cursor)] = world.agenda.cursors()
    assert (cursor.scheduled_for, cursor.bucket) == (NINE, NOW.replace(second=0) + MINUTE)


def test_wherever_a_planner_dies_in_a_slice_every_fire_is_planned() -> None:
    def plan(world: World) -> None:
        due = world.agenda.due(0, NOW.replace(second=0), limit=100)
        world.plan_recoveries.plan(0, due)

    def made() -> World:
        world = World()
        world.tenants.register(Tenant(tenant=TENANT, quotas=Quotas(catch_ups_per_minute=4)))
        world.clock.advance_to(NOW)
        version = a_catching_up_version()
        world.holds(version)
        world.agenda.recover(0, a_recovery(version))
        return world

    for place in io_points(made(), plan):
        interrupted = made()
        dies(interrupted, plan, at=place)
        recover(interrupted)
        assert set(interrupted.planned_fires()) == {NINE + n * FIVE for n in range(12)}, place
        assert interrupted.agenda.cursors() == (), place


def test_one_that_cannot_be_planned_is_set_aside_and_the_others_go_on(world: World) -> None:
    version, lost = a_catching_up_version(), a_version(schedule="lost")
    world.holds(version)
    orphan = replace(a_recovery(version), schedule=lost.schedule)
    for cursor in (a_recovery(version), orphan):
        world.agenda.recover(0, cursor)
    work = world.plan_recoveries.plan(0, world.agenda.due(0, NOW.replace(second=0), limit=100))
    assert [cursor for cursor, _ in work.quarantined] == [orphan]
    assert work.planned


def test_a_pass_plans_what_is_due_before_it_makes_up_for_anything(world: World) -> None:
    version, fresh = a_catching_up_version(), a_version(schedule="fresh")
    world.holds(version)
    world.holds(fresh)
    world.announced.ensure_shard(version.key)
    world.agenda.recover(0, a_recovery(version))
    world.is_due(fresh, NOW.replace(second=0) + 9 * MINUTE)
    world.plan_shard(0, deadline=NOW + timedelta(hours=1))
    pages = [name for name in world.calls if name in {"outbox.put", "budgets.read"}]
    assert pages[-2:] == ["budgets.read", "outbox.put"]
    assert pages.count("budgets.read") == 1


def test_p4_a_bucket_with_a_recovery_is_not_closed_nor_one_of_the_future_planned(
    world: World,
) -> None:
    version = a_catching_up_version()
    world.holds(version)
    world.announced.ensure_shard(version.key)
    old, ahead = NOW.replace(second=0) - 10 * MINUTE, NOW.replace(second=0) + 3 * MINUTE
    world.agenda.recover(0, replace(a_recovery(version), available_at=old))
    world.agenda.recover(0, replace(a_recovery(version), available_at=ahead))
    world.plan_shard(0, deadline=NOW + timedelta(hours=1))
    row = world.shards.get(0)
    assert row is not None
    assert row.drained_through <= old
    assert ahead in [cursor.bucket for _, cursor in world.agenda.cursors()]
    world.clock.advance(MINUTE)
    world.plan_shard(0, deadline=NOW + timedelta(hours=1))
    row = world.shards.get(0)
    assert row is not None
    assert row.drained_through > old


# A backlog: what lies late in a lane, judged at its first claim.


def late_message(fire: datetime, *, lane: Lane = Lane.STRICT, **fields: object) -> Message:
    message = a_message(an_occurrence(scheduled_for=fire), lane=lane)
    return replace(message, **fields)  # type: ignore[arg-type]


def ran(world: World, fire: datetime, *, caught_up: bool = False) -> None:
    run = a_run(an_occurrence(scheduled_for=fire), state=RunState.SUCCEEDED)
    assert world.ledger.swap(replace(run, caught_up=caught_up), seen=None)


def sent(world: World) -> Message:
    [(lane, message, _)] = world.sent()
    assert lane is message.lane
    return message


def test_the_oldest_of_a_backlog_is_moved_to_the_recovery_lane_for_a_token(world: World) -> None:
    world.holds(a_catching_up_version())
    ran(world, NINE - FIVE)
    settled = world.execute(late_message(NINE))
    message = sent(world)
    assert (settled.why, message.lane, message.caught_up) == ("catches up", Lane.RECOVERY, True)
    assert message.held_until == NOW
    world.clock.advance(MINUTE)
    world.execute(message)
    row = world.run_of(message)
    assert (row.state, row.caught_up) == (RunState.SUCCEEDED, True)


def test_in_the_recovery_lane_it_runs_at_once_where_a_token_is_free(world: World) -> None:
    world.holds(a_catching_up_version())
    ran(world, NINE - FIVE)
    message = late_message(NINE, lane=Lane.RECOVERY)
    world.execute(message)
    assert world.run_of(message).state is RunState.SUCCEEDED
    assert world.sent() == []


def test_where_no_token_is_free_it_is_held_until_there_is_one(world: World) -> None:
    world.holds(a_catching_up_version())
    ran(world, NINE - FIVE)
    world.catch_up.draw.reserve(BudgetKey(tenant=TENANT, name=CATCH_UPS), 4, 8)
    world.execute(late_message(NINE, lane=Lane.RECOVERY))
    message = sent(world)
    assert message.held_until == NOW + 2 * MINUTE
    world.execute(message)
    assert world.ledger.read(message.occurrence.key) is None, "it is too early yet"


def test_a_younger_one_waits_for_its_elders(world: World) -> None:
    world.holds(a_catching_up_version())
    ran(world, NINE - FIVE)
    settled = world.execute(late_message(NINE + 2 * FIVE))
    message = sent(world)
    assert (settled.why, message.lane, message.caught_up) == ("elders first", Lane.RECOVERY, False)
    assert message.backlog_since == NOW
    for elder in (NINE, NINE + FIVE):
        ran(world, elder, caught_up=True)
    world.execute(message)
    assert world.run_of(message).state is RunState.SUCCEEDED


def test_elders_that_never_come_are_not_waited_for_for_ever(world: World) -> None:
    world.holds(a_catching_up_version())
    ran(world, NINE - FIVE)
    message = late_message(
        NINE + 2 * FIVE, lane=Lane.RECOVERY, backlog_since=NOW - timedelta(minutes=11)
    )
    world.execute(message)
    assert world.run_of(message).state is RunState.SUCCEEDED


@pytest.mark.parametrize(("number", "runs"), [(0, True), (1, True), (2, False), (11, False)])
def test_e5_the_oldest_of_a_backlog_run_whatever_order_they_come_in(
    world: World, number: int, *, runs: bool
) -> None:
    world.holds(a_catching_up_version(limit=2))
    ran(world, NINE - FIVE)
    message = late_message(NINE + number * FIVE)
    world.execute(message)
    row = world.ledger.read(message.occurrence.key)
    if runs:
        assert row is None
        assert sent(world).lane is Lane.RECOVERY
    else:
        assert row is not None
        assert (row.state, row.reason) == (RunState.MISSED, BEYOND_LIMIT)


def test_what_was_missed_or_skipped_on_the_way_takes_none_of_the_limit(world: World) -> None:
    world.holds(a_catching_up_version(limit=2))
    ran(world, NINE - FIVE)
    missed = replace(
        a_run(an_occurrence(scheduled_for=NINE), state=RunState.MISSED, attempt=0),
        reason="max_lateness",
    )
    assert world.ledger.swap(missed, seen=None)
    ran(world, NINE + FIVE, caught_up=True)
    message = late_message(NINE + 2 * FIVE, lane=Lane.RECOVERY)
    world.execute(message)
    assert world.run_of(message).state is RunState.SUCCEEDED


@pytest.mark.parametrize("kind", ["row", "span"])
def test_behind_one_that_was_beyond_the_limit_all_are(world: World, kind: str) -> None:
    world.holds(a_catching_up_version())
    if kind == "span":
        world.ledger.put_spans([a_span(NINE, NINE + FIVE, reason=BEYOND_LIMIT)])
    else:
        occurrence = an_occurrence(scheduled_for=NINE + FIVE)
        beyond = a_run(occurrence, state=RunState.MISSED, attempt=0, reason=BEYOND_LIMIT)
        assert world.ledger.swap(beyond, seen=None)
    message = late_message(NINE + 2 * FIVE)
    world.execute(message)
    assert world.run_of(message).reason == BEYOND_LIMIT


def test_what_a_slice_planned_runs_without_another_look_until_it_is_late_again(
    world: World,
) -> None:
    world.holds(a_catching_up_version(limit=1))
    granted = late_message(NINE + 9 * FIVE, lane=Lane.RECOVERY, held_until=NOW, caught_up=True)
    world.execute(granted)
    assert world.run_of(granted).state is RunState.SUCCEEDED
    assert "ledger.between" not in world.calls
    late_again = late_message(
        NINE + 5 * FIVE, lane=Lane.RECOVERY, held_until=NOW - 2 * MINUTE, caught_up=True
    )
    world.execute(late_again)
    assert world.run_of(late_again).reason == BEYOND_LIMIT


def test_e4_a_dead_letter_of_a_backlog_is_buried_and_not_made_to_wait(world: World) -> None:
    world.holds(a_catching_up_version())
    message = late_message(NINE + 5 * FIVE)
    world.bury(message)
    assert world.run_of(message).state is RunState.DEAD
    assert world.sent() == []


def test_on_time_nothing_of_this_is_asked_for(world: World) -> None:
    world.holds(a_catching_up_version())
    message = late_message(NINE + timedelta(hours=1))
    world.execute(message)
    assert world.run_of(message).state is RunState.SUCCEEDED
    assert not {"ledger.between", "budgets.read"} & set(world.calls)
