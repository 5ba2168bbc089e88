"""The shards: times only rise, and the lease is one owner's at a time."""

from dataclasses import replace
from datetime import timedelta

import pytest

from puntual.application.ports import Shards
from puntual.domain.errors import Unavailable
from puntual.domain.shard import Shard
from tests.builders import NINE, a_shard
from tests.contract.conftest import Aws, World
from tests.contract.sdk import refusing, repeating

MINUTE = timedelta(minutes=1)


@pytest.fixture
def shards(world: World) -> Shards:
    return world.shards


def row(shards: Shards) -> Shard:
    shard = shards.get(0)
    assert shard is not None
    return shard


def test_a_shard_that_nobody_made_is_absent(shards: Shards) -> None:
    assert shards.get(0) is None
    assert shards.all() == ()


def test_a_shard_is_read_as_it_was_made(shards: Shards) -> None:
    leased = replace(a_shard(), lease_owner="me", lease_until=NINE + MINUTE)
    shards.ensure(leased)
    assert row(shards) == leased


def test_making_a_shard_again_changes_nothing(shards: Shards) -> None:
    shards.ensure(a_shard())
    shards.ensure(a_shard(now=NINE + MINUTE))
    assert row(shards) == a_shard()


def test_all_shards_are_given_in_order(shards: Shards) -> None:
    for number in (10, 2, 0):
        shards.ensure(a_shard(number))
    assert shards.all() == (0, 2, 10)


def test_a_free_lease_is_taken_and_renewed(shards: Shards) -> None:
    shards.ensure(a_shard())
    assert shards.lease(0, owner="me", now=NINE, until=NINE + MINUTE)
    assert shards.lease(0, owner="me", now=NINE, until=NINE + 2 * MINUTE)
    assert (row(shards).lease_owner, row(shards).lease_until) == ("me", NINE + 2 * MINUTE)


def test_a_lease_is_another_owners_only_once_it_ran_out(shards: Shards) -> None:
    shards.ensure(a_shard())
    shards.lease(0, owner="me", now=NINE, until=NINE + MINUTE)
    before = NINE + MINUTE - timedelta(milliseconds=1)
    assert not shards.lease(0, owner="other", now=before, until=NINE + 2 * MINUTE)
    assert shards.lease(0, owner="other", now=NINE + MINUTE, until=NINE + 2 * MINUTE)
    assert row(shards).lease_owner == "other"


def test_a_lease_on_a_shard_that_is_absent_is_not_given(shards: Shards) -> None:
    assert not shards.lease(0, owner="me", now=NINE, until=NINE + MINUTE)
    assert shards.get(0) is None


def test_a_lease_is_released_by_its_owner_alone(shards: Shards) -> None:
    shards.ensure(a_shard())
    shards.lease(0, owner="me", now=NINE, until=NINE + MINUTE)
    shards.release(0, owner="other")
    assert row(shards).lease_owner == "me"
    shards.release(0, owner="me")
    shards.release(0, owner="me")
    assert row(shards) == a_shard()
    assert shards.lease(0, owner="other", now=NINE, until=NINE + MINUTE)


def test_what_is_announced_only_rises(shards: Shards) -> None:
    shards.ensure(a_shard())
    shards.announce(0, NINE + 20 * MINUTE)
    shards.announce(0, NINE + 15 * MINUTE)
    assert row(shards) == replace(a_shard(), planned_through=NINE + 20 * MINUTE)


def test_each_time_of_a_close_rises_by_itself(shards: Shards) -> None:
    shards.ensure(a_shard())
    up, down = NINE + MINUTE, NINE - timedelta(hours=2)
    shards.close(0, completed_through=up, drained_through=down)
    assert row(shards) == replace(a_shard(), completed_through=up)
    shards.close(0, completed_through=down, drained_through=NINE)
    assert row(shards) == replace(a_shard(), completed_through=up, drained_through=NINE)


def test_a_shard_that_is_absent_is_not_made_by_its_times(shards: Shards) -> None:
    shards.announce(0, NINE)
    shards.close(0, completed_through=NINE, drained_through=NINE)
    shards.release(0, owner="me")
    assert shards.get(0) is None


def test_writes_that_the_sdk_repeats_take_effect_once(aws: Aws) -> None:
    shards = aws.world.shards
    with repeating(aws.dynamodb, "PutItem"):
        shards.ensure(a_shard())
    with repeating(aws.dynamodb, "UpdateItem"):
        assert shards.lease(0, owner="me", now=NINE, until=NINE + MINUTE)
        shards.announce(0, NINE + timedelta(hours=1))
        shards.release(0, owner="me")
    assert row(shards) == replace(a_shard(), planned_through=NINE + timedelta(hours=1))


def test_a_throttle_is_unavailable(aws: Aws) -> None:
    with refusing(aws.dynamodb, "UpdateItem", "Oops", status=503), pytest.raises(Unavailable):
        aws.world.shards.announce(0, NINE)
