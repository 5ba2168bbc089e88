from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from functions.replanner.handler import handler
from puntual import bootstrap
from puntual.domain.errors import Rejected
from puntual.domain.instant import truncated_to_millisecond
from puntual.domain.schedule import ScheduleKey, ScheduleVersion
from puntual.domain.tenant import ScheduleId
from puntual.domain.zone_releases import FormerPlannersAtWork, ReleasesInUse
from tests.builders import TENANT, a_rule, a_shard, a_version
from tests.functions.deployed import SHARD, Deployed, LambdaContext, deployed
from tests.zone_data import NO_WINTER_TIME, rules_with_berlin

NOW = truncated_to_millisecond(datetime.now(UTC))
LONG_AGO = NOW - timedelta(days=9)
HOUR = 20 if 9 <= NOW.hour < 12 else 12
"""Of Berlin; an hour at which nothing is due now, nor an hour ago or to come."""

FORMER = "2026.5"
RULES = rules_with_berlin(NO_WINTER_TIME)


def a_daily(name: str, time_zone: str) -> ScheduleVersion:
    rule = a_rule(f"0 {HOUR} * * *", time_zone=time_zone)
    version = a_version(schedule=name, rule=rule, effective_from=LONG_AGO)
    return replace(version, tzdata=FORMER)


def upgraded(world: Deployed, *, since: datetime = LONG_AGO) -> None:
    """Leave a world as a deployment of new zone data does, with two schedules."""
    world.shards.ensure(a_shard(SHARD))
    world.zone_releases.keep(RULES)
    in_use = ReleasesInUse(
        current=bootstrap.zone_data().release, since=since, former=frozenset({FORMER})
    )
    world.zone_releases.swap(in_use, seen=None)
    for name, zone in (("berlin", "Europe/Berlin"), ("tokyo", "Asia/Tokyo")):
        world.creates(a_daily(name, zone))


def version_of(world: Deployed, schedule: str) -> int:
    head = world.schedules.head(ScheduleKey(tenant=TENANT, schedule=ScheduleId(schedule)))
    assert head is not None
    return head.version


def test_what_moves_gets_a_version_and_the_answer_says_how() -> None:
    with deployed() as world:
        upgraded(world)
        answer = handler({}, LambdaContext())
        assert (version_of(world, "berlin"), version_of(world, "tokyo")) == (2, 1)
        in_use = world.zone_releases.in_use()
    assert in_use is not None
    assert in_use.former == frozenset()
    [changed] = answer.pop("replanned")
    assert answer == {
        "from": [FORMER],
        "to": bootstrap.zone_data().release,
        "zones": ["Arctic/Longyearbyen", "Europe/Berlin", "Europe/Copenhagen"],
        "dropped": [],
        "looked_at": 1,
        "already": 0,
        "refused": [],
        "left": 0,
        "next_token": None,
        "caught_up": True,
    }
    assert 0 < changed.pop("vanished") <= 90
    assert 0 < changed.pop("appeared") <= 90
    assert changed.pop("first_vanished") < changed.pop("first_appeared")
    assert changed == {
        "tenant": TENANT,
        "schedule": "berlin",
        "version": 2,
        "expression": f"0 {HOUR} * * *",
        "time_zone": "Europe/Berlin",
        "complete": True,
    }


def test_a_dry_run_changes_nothing() -> None:
    with deployed() as world:
        upgraded(world)
        answer = handler({"dry_run": True}, LambdaContext())
        assert version_of(world, "berlin") == 1
        in_use = world.zone_releases.in_use()
    assert in_use is not None
    assert in_use.former == {FORMER}
    assert len(answer["replanned"]) == 1
    assert not answer["caught_up"]


def test_each_written_version_is_logged_and_none_of_a_dry_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with deployed() as world:
        upgraded(world)
        handler({"dry_run": True}, LambdaContext())
        assert "schedule re-planned" not in caplog.messages
        handler({}, LambdaContext())
    [told] = [vars(line) for line in caplog.records if line.message == "schedule re-planned"]
    assert (told["tenant"], told["schedule"], told["version"]) == (TENANT, "berlin", 2)


@pytest.mark.parametrize(
    ("event", "field"),
    [
        ({"dry_run": "true"}, "dry_run"),
        ({"dry_run": 1}, "dry_run"),
        ({"dry_run": None}, "dry_run"),
        ({"dryRun": True}, "dryRun"),
        ({"next_token": 7}, "next_token"),
    ],
)
def test_an_event_that_is_spelt_otherwise_is_refused_before_anything_is_written(
    event: dict[str, object], field: str
) -> None:
    with deployed() as world:
        upgraded(world)
        with pytest.raises(Rejected, match=f"^{field}"):
            handler(event, LambdaContext())
        assert version_of(world, "berlin") == 1


def test_a_schedule_that_cannot_be_read_is_named_and_the_others_are_re_planned() -> None:
    with deployed() as world:
        upgraded(world)
        world.creates(a_daily("broken", "Europe/Copenhagen"))
        world.dynamodb.update_item(
            TableName="schedules",
            Key={"tenant_schedule": {"S": f"{TENANT}#broken"}},
            UpdateExpression="SET body = :body",
            ExpressionAttributeValues={":body": {"S": '{"time_zone":"Europe/Copenhagen"}'}},
        )
        answer = handler({}, LambdaContext())
        assert version_of(world, "berlin") == 2
    assert answer["refused"] == [
        {"tenant": TENANT, "schedule": "broken", "reason": "its head cannot be read"}
    ]
    assert (answer["left"], answer["caught_up"]) == (1, False)


def test_a_function_with_no_time_left_gives_a_token_to_go_on_with() -> None:
    with deployed() as world:
        upgraded(world)
        world.creates(a_daily("copenhagen", "Europe/Copenhagen"))
        no_time = LambdaContext(remaining_milliseconds=1)
        answers = [handler({}, no_time)]
        while answers[-1]["next_token"] is not None:
            answers.append(handler({"next_token": answers[-1]["next_token"]}, no_time))
        assert [version_of(world, name) for name in ("berlin", "copenhagen")] == [2, 2]
    assert len(answers) >= 2
    assert sum(len(answer["replanned"]) for answer in answers) == 2
    assert [answer["caught_up"] for answer in answers] == [False] * (len(answers) - 1) + [True]


def test_a_release_that_was_deployed_just_now_has_to_wait() -> None:
    with deployed() as world:
        upgraded(world, since=NOW)
        with pytest.raises(FormerPlannersAtWork):
            handler({}, LambdaContext())
        assert version_of(world, "berlin") == 1
