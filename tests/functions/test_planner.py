from dataclasses import replace
from datetime import UTC, datetime, timedelta

from functions.planner.handler import RESERVE, handler
from puntual.domain.instant import minute_of
from tests.builders import a_cursor, a_rule, a_shard, a_version
from tests.functions.deployed import SHARD, Deployed, LambdaContext, deployed, recorded

INVOCATION = recorded("planner_invocation")
MINUTE = timedelta(minutes=1)


def a_schedule_due_within_the_horizon(world: Deployed) -> datetime:
    """Give the fire of a daily schedule, two to three minutes from now."""
    now = datetime.now(UTC)
    fire = minute_of(now) + 3 * MINUTE
    version = a_version(
        rule=replace(a_rule(f"{fire.minute} {fire.hour} * * *"), anchor=fire - timedelta(days=1)),
        effective_from=fire - timedelta(hours=1),
    )
    world.creates(version, a_cursor(fire, version=version))
    world.shards.ensure(replace(a_shard(SHARD, now=now), drained_through=now - 10 * MINUTE))
    return fire


def test_a_pass_turns_what_is_due_into_a_page_and_moves_the_cursor_on() -> None:
    with deployed() as world:
        fire = a_schedule_due_within_the_horizon(world)
        handler(INVOCATION, LambdaContext())
        [page] = world.outbox.left(SHARD, written_before=fire, limit=10)
        assert [planned.occurrence.scheduled_for for planned in page.planned] == [fire]
        assert world.agenda.due(SHARD, fire, limit=10) == ()
        [cursor] = world.agenda.due(SHARD, fire + timedelta(days=1), limit=10)
        assert cursor.scheduled_for == fire + timedelta(days=1)


def test_a_pass_announces_closes_and_gives_its_lease_back() -> None:
    with deployed() as world:
        fire = a_schedule_due_within_the_horizon(world)
        before = world.shards.get(SHARD)
        handler(INVOCATION, LambdaContext())
        after = world.shards.get(SHARD)
    assert before is not None
    assert after is not None
    assert after.planned_through > fire
    assert after.drained_through > before.drained_through
    assert after.lease_until is None


def test_a_function_with_no_time_left_plans_nothing_and_loses_nothing() -> None:
    with deployed() as world:
        fire = a_schedule_due_within_the_horizon(world)
        too_short = int(RESERVE.total_seconds() * 1000)
        handler(INVOCATION, LambdaContext(remaining_milliseconds=too_short))
        assert len(world.agenda.due(SHARD, fire, limit=10)) == 1
        handler(INVOCATION, LambdaContext())
        assert world.agenda.due(SHARD, fire, limit=10) == ()


def test_a_pass_over_a_shard_that_nobody_made_does_nothing() -> None:
    with deployed() as world:
        handler(INVOCATION, LambdaContext())
        assert world.shards.get(SHARD) is None
