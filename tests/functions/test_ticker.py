import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from functions.ticker.handler import ZONE_RULES_BEHIND, handler
from puntual import bootstrap
from puntual.domain.zone_releases import ReleasesInUse
from tests.builders import NINE, a_shard
from tests.contract.sdk import refusing
from tests.functions.deployed import LambdaContext, deployed, recorded
from tests.zone_data import NO_SUMMER_TIME, rules_with_berlin

TICK = recorded("eventbridge_scheduled")
PLANNERS = "/2015-03-31/functions/puntual-prod-planner/invocations"


def test_a_tick_invokes_a_planner_for_every_shard_that_exists() -> None:
    with deployed() as world:
        for shard in (0, 3, 127):
            world.shards.ensure(a_shard(shard))
        handler(TICK, LambdaContext())
    assert sorted(world.invocations, key=str) == [
        (PLANNERS, {"shard": 0}),
        (PLANNERS, {"shard": 127}),
        (PLANNERS, {"shard": 3}),
    ]


def test_a_tick_before_the_first_schedule_invokes_nobody() -> None:
    with deployed() as world:
        handler(TICK, LambdaContext())
    assert world.invocations == []


def test_a_tick_without_its_table_fails() -> None:
    with deployed() as world:
        world.dynamodb.delete_table(TableName="shards")
        with pytest.raises(ClientError):
            handler(TICK, LambdaContext())


def metrics_in(output: str) -> list[dict[str, Any]]:
    """Read what CloudWatch takes for metrics of a log (embedded metric format)."""
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [line for line in lines if "_aws" in line]


def test_the_first_tick_of_all_notes_the_deployed_release(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with deployed() as world:
        handler(TICK, LambdaContext())
        in_use = world.zone_releases.in_use()
        assert in_use is not None
        assert (in_use.current, in_use.former) == (bootstrap.zone_data().release, frozenset())
        assert world.zone_releases.rules(in_use.current) is not None
    [metric] = metrics_in(capsys.readouterr().out)
    assert metric[ZONE_RULES_BEHIND] == [0.0]


def test_a_release_that_schedules_may_not_follow_yet_is_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with deployed() as world:
        world.zone_releases.keep(rules_with_berlin(NO_SUMMER_TIME))
        world.zone_releases.swap(ReleasesInUse(current="2026.5", since=NINE), seen=None)
        handler(TICK, LambdaContext())
        handler(TICK, LambdaContext())
        in_use = world.zone_releases.in_use()
    assert in_use is not None
    assert in_use.former == {"2026.5"}
    assert [metric[ZONE_RULES_BEHIND] for metric in metrics_in(capsys.readouterr().out)] == [
        [1.0], [1.0],
    ]  # fmt: skip


def test_a_tick_that_cannot_note_the_release_measures_nothing_and_does_not_fail(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with deployed() as world:
        world.shards.ensure(a_shard(3))
        with refusing(bootstrap.dynamodb_client(), "GetItem", "Oops", status=503):
            handler(TICK, LambdaContext())
        world.dynamodb.put_item(
            TableName="zone_releases", Item={"item": {"S": "in_use"}, "body": {"S": "junk"}}
        )
        handler(TICK, LambdaContext())
        world.dynamodb.delete_table(TableName="zone_releases")
        handler(TICK, LambdaContext())
    assert world.invocations == [(PLANNERS, {"shard": 3})] * 3
    assert metrics_in(capsys.readouterr().out) == []
