"""Shares of limits and open breakers: rows that change only by comparison."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from puntual.domain.breaker import Breaker, Breakers
from puntual.domain.errors import Unavailable
from puntual.domain.share import RUNNING, Share, ShareKey, Shares
from puntual.domain.tenant import TenantId
from tests.builders import NINE, TENANT, a_tenant
from tests.contract.conftest import Aws, World
from tests.contract.sdk import refusing, repeating

KEY = ShareKey(tenant=TENANT, name=RUNNING)
ONE = Shares(
    key=KEY,
    holders={"a": Share(3, NINE), "b": Share(1, NINE + timedelta(milliseconds=1))},
    held=2,
    write_id="one",
)
TWO = Shares(key=KEY, holders={}, held=3, write_id="two")
OPEN = Breakers(
    tenant=TENANT,
    by_target={
        "https://acme.example": Breaker(until=NINE, opened=2, probe_until=NINE),
        "arn:aws:sqs:us-east-1:123456789012:q": Breaker(until=NINE),
    },
    write_id="one",
)
CLOSED = Breakers(tenant=TENANT, by_target={}, write_id="two")


@dataclass(frozen=True, slots=True)
class Kind:
    """A port that reads and swaps, its key, and two rows that may stand there."""

    port: Callable[[World], Any]
    key: object
    first: Any
    second: Any


KINDS = [
    pytest.param(Kind(lambda world: world.shares, KEY, ONE, TWO), id="shares"),
    pytest.param(Kind(lambda world: world.breakers, TENANT, OPEN, CLOSED), id="breakers"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_read_as_they_were_put(world: World, kind: Kind) -> None:
    port = kind.port(world)
    nothing = port.read(kind.key)
    assert nothing.write_id == ""
    assert port.swap(kind.first, seen=nothing)
    assert port.read(kind.key) == kind.first
    assert port.swap(kind.second, seen=kind.first)
    assert port.read(kind.key) == kind.second


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seen", ["", "two", "three"])
def test_who_saw_another_row_changes_nothing(world: World, kind: Kind, seen: str) -> None:
    port = kind.port(world)
    assert port.swap(kind.first, seen=port.read(kind.key))
    lost = replace(kind.second, write_id="lost")
    assert not port.swap(lost, seen=replace(kind.first, write_id=seen))
    assert port.read(kind.key) == kind.first


@pytest.mark.parametrize("kind", KINDS)
def test_p9_a_write_that_stands_there_already_counts_as_made(world: World, kind: Kind) -> None:
    port = kind.port(world)
    nothing = port.read(kind.key)
    assert port.swap(kind.first, seen=nothing)
    assert port.swap(kind.first, seen=nothing)
    assert port.swap(kind.second, seen=kind.first)
    assert port.swap(kind.second, seen=kind.first)


@pytest.mark.parametrize("kind", KINDS)
def test_p9_a_write_that_the_sdk_repeats_is_our_own(aws: Aws, kind: Kind) -> None:
    port = kind.port(aws.world)
    with repeating(aws.dynamodb, "UpdateItem"):
        assert port.swap(kind.first, seen=port.read(kind.key))
        assert port.swap(kind.second, seen=kind.first)


@pytest.mark.parametrize("kind", KINDS)
def test_a_throttle_is_unavailable(aws: Aws, kind: Kind) -> None:
    port = kind.port(aws.world)
    with refusing(aws.dynamodb, "GetItem", "Oops", status=503), pytest.raises(Unavailable):
        port.read(kind.key)
    with refusing(aws.dynamodb, "UpdateItem", "Oops", status=503), pytest.raises(Unavailable):
        port.swap(kind.second, seen=kind.first)


def test_rows_are_each_tenants_own_and_beside_its_registration(world: World) -> None:
    world.tenants.register(a_tenant())
    assert world.shares.swap(ONE, seen=world.shares.read(KEY))
    assert world.breakers.swap(OPEN, seen=world.breakers.read(TENANT))
    other = TenantId("other")
    assert world.shares.read(replace(KEY, tenant=other)).holders == {}
    assert world.shares.read(replace(KEY, name="target#https://acme.example")).holders == {}
    assert world.breakers.read(other).by_target == {}
    assert world.tenants.get(TENANT) == a_tenant()
