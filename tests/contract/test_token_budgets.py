"""The tenants' budgets: rows that change only by comparison, exact to the microsecond."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from puntual.application.ports import Budgets
from puntual.domain.budget import FIRES, RETRIES, Budget, BudgetKey
from puntual.domain.errors import Unavailable
from puntual.domain.tenant import TenantId
from tests.builders import NINE, TENANT, a_tenant
from tests.contract.conftest import Aws, World
from tests.contract.sdk import refusing, repeating
from tests.fakes.hostile import HostileBudgets, Hostility, Rates
from tests.fakes.in_memory_budgets import InMemoryBudgets

KEY = BudgetKey(tenant=TENANT, name=FIRES)
FIRST = Budget(key=KEY, taken_through=NINE + timedelta(microseconds=1), held=3, write_id="one")
SECOND = Budget(
    key=KEY, taken_through=NINE + timedelta(minutes=1), per_minute=6, held=4, write_id="two"
)


@pytest.fixture
def budgets(world: World) -> Budgets:
    return world.budgets


def test_a_budget_that_nobody_drew_from_is_whole(budgets: Budgets) -> None:
    budget = budgets.read(KEY)
    assert (budget.key, budget.write_id, budget.held) == (KEY, "", 0)
    assert budget.taken_through < NINE - timedelta(days=366)


def test_a_budget_is_read_as_it_was_put(budgets: Budgets) -> None:
    assert budgets.swap(FIRST, seen=budgets.read(KEY))
    assert budgets.read(KEY) == FIRST
    assert budgets.swap(SECOND, seen=FIRST)
    assert budgets.read(KEY) == SECOND


@pytest.mark.parametrize("seen", ["", "two", "three"])
def test_who_saw_another_budget_changes_nothing(budgets: Budgets, seen: str) -> None:
    assert budgets.swap(FIRST, seen=budgets.read(KEY))
    lost = replace(SECOND, write_id="lost")
    assert not budgets.swap(lost, seen=replace(FIRST, write_id=seen))
    assert budgets.read(KEY) == FIRST


def test_p9_a_write_that_stands_there_already_counts_as_made(budgets: Budgets) -> None:
    seen = budgets.read(KEY)
    assert budgets.swap(FIRST, seen=seen)
    assert budgets.swap(FIRST, seen=seen)
    assert budgets.swap(SECOND, seen=FIRST)
    assert budgets.swap(SECOND, seen=FIRST)


def test_p9_a_write_that_the_sdk_repeats_is_our_own(aws: Aws) -> None:
    seen = aws.world.budgets.read(KEY)
    with repeating(aws.dynamodb, "UpdateItem"):
        assert aws.world.budgets.swap(FIRST, seen=seen)
    with repeating(aws.dynamodb, "UpdateItem"):
        assert aws.world.budgets.swap(SECOND, seen=FIRST)


def test_a_row_that_does_not_note_its_rate_is_read(aws: Aws) -> None:
    assert aws.world.budgets.swap(SECOND, seen=aws.world.budgets.read(KEY))
    aws.dynamodb.update_item(
        TableName="tenants",
        Key={"tenant": {"S": TENANT}, "item": {"S": f"budget#{FIRES}"}},
        UpdateExpression="REMOVE per_minute",
    )
    assert aws.world.budgets.read(KEY) == replace(SECOND, per_minute=0)


def test_p9_tokens_are_taken_once_though_the_write_is_repeated() -> None:
    hostility = Hostility(source=random.Random(7), rates=Rates(repeated=1))
    budgets = HostileBudgets(InMemoryBudgets(), hostility)
    assert budgets.swap(FIRST, seen=budgets.read(KEY))
    assert budgets.read(KEY) == FIRST


def test_each_name_and_each_tenant_has_a_budget_of_its_own(world: World) -> None:
    world.tenants.register(a_tenant())
    assert world.budgets.swap(FIRST, seen=world.budgets.read(KEY))
    assert world.budgets.read(replace(KEY, name=RETRIES)).write_id == ""
    assert world.budgets.read(replace(KEY, tenant=TenantId("other"))).write_id == ""
    assert world.tenants.get(TENANT) == a_tenant(), "its registration is another item"


def test_a_throttle_is_unavailable(aws: Aws) -> None:
    with refusing(aws.dynamodb, "GetItem", "Oops", status=503), pytest.raises(Unavailable):
        aws.world.budgets.read(KEY)
    with refusing(aws.dynamodb, "UpdateItem", "Oops", status=503), pytest.raises(Unavailable):
        aws.world.budgets.swap(FIRST, seen=SECOND)
