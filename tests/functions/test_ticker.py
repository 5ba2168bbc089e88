import pytest
from botocore.exceptions import ClientError

from functions.ticker.handler import handler
from tests.builders import a_shard
from tests.functions.deployed import LambdaContext, deployed, recorded

TICK = recorded("eventbridge_scheduled")


def test_a_tick_invokes_a_planner_for_every_shard_that_exists() -> None:
    with deployed() as world:
        for shard in (0, 3, 127):
            world.shards.ensure(a_shard(shard))
        handler(TICK, LambdaContext())
    path = "/2015-03-31/functions/puntual-prod-planner/invocations"
    assert sorted(world.invocations, key=str) == [
        (path, {"shard": 0}),
        (path, {"shard": 127}),
        (path, {"shard": 3}),
    ]


def test_a_tick_before_the_first_schedule_invokes_nobody() -> None:
    with deployed() as world:
        handler(TICK, LambdaContext())
    assert world.invocations == []


def test_a_tick_without_its_table_fails_so_that_its_alarm_rings() -> None:
    with deployed() as world:
        world.dynamodb.delete_table(TableName="shards")
        with pytest.raises(ClientError):
            handler(TICK, LambdaContext())
