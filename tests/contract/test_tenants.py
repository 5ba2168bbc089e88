"""The tenants: registering again changes the quota, never the count."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from pynamodb.models import Model

from puntual.adapters.dynamodb_tenants import DynamoDbTenants
from puntual.application.ports import Tenants
from puntual.aws import ForecastTurnRow, RegistrationRow, bound
from puntual.domain.budget import FIRES, Budget, BudgetKey
from puntual.domain.errors import Unavailable
from puntual.domain.instant import MILLISECOND
from puntual.domain.tenant import ListedTenant, Quotas, TenantId
from tests.builders import NINE, TENANT, a_schedule, a_tenant, a_version
from tests.contract.conftest import Aws, World
from tests.contract.sdk import refusing, repeating

QUEUE = "arn:aws:sqs:us-east-1:123456789012:puntual-target-bills"

ROLE = "arn:aws:iam::123456789012:role/puntual-target-acme"


@pytest.fixture
def tenants(world: World) -> Tenants:
    return world.tenants


def test_a_tenant_that_nobody_registered_is_absent(tenants: Tenants) -> None:
    assert tenants.get(TENANT) is None


def test_a_tenant_is_read_as_it_was_registered(tenants: Tenants) -> None:
    registered = a_tenant(
        schedules_max=7, targets=(QUEUE, f"{QUEUE}.fifo"), roles=(ROLE,), principals=(ROLE,)
    )
    assert tenants.register(registered) == registered
    assert tenants.get(TENANT) == registered
    assert tenants.get(TenantId("other")) is None


def test_quotas_are_read_as_they_were_registered_and_put_anew_as_a_whole(
    tenants: Tenants,
) -> None:
    quotas = Quotas(
        schedules_max=7,
        fires_per_minute_max=120,
        running_max=9,
        catch_ups_per_minute=11,
        retries_per_minute=13,
        smallest_interval=timedelta(minutes=15),
        weight=17,
    )
    assert tenants.register(a_tenant(quotas=quotas)).quotas == quotas
    assert tenants.get(TENANT) == a_tenant(quotas=quotas)
    tenants.register(a_tenant(quotas=Quotas()))
    assert tenants.get(TENANT) == a_tenant(quotas=Quotas())


def test_a_registration_of_before_there_were_more_quotas_has_the_defaults(aws: Aws) -> None:
    assert isinstance(aws.world.tenants, DynamoDbTenants)
    aws.world.tenants.register(a_tenant(schedules_max=7, targets=(QUEUE,)))
    [row] = aws.dynamodb.scan(TableName=aws.world.tenants.table)["Items"]
    del row["quotas"], row["principals"]
    aws.dynamodb.put_item(TableName=aws.world.tenants.table, Item=row)
    assert aws.world.tenants.get(TENANT) == a_tenant(
        quotas=Quotas(schedules_max=7), targets=(QUEUE,)
    )
    [listed] = aws.world.tenants.listed(after=None, limit=5).tenants
    assert listed == ListedTenant(tenant=TENANT, quotas=Quotas(schedules_max=7))


def test_tenants_are_listed_by_id_page_after_page(world: World) -> None:
    for name in ("delta", "alpha", "Zeta", "beta", "a"):
        world.tenants.register(a_tenant(name, quotas=Quotas(schedules_max=len(name), weight=7)))
    world.tenants.take_forecast_turn(TenantId("alpha"), now=NINE, every=EVERY)
    fires = Budget(key=BudgetKey(tenant=TenantId("nobody"), name=FIRES), taken_through=NINE)
    unseen = world.budgets.read(fires.key)
    assert world.budgets.swap(replace(fires, write_id="w"), seen=unseen)
    first = world.tenants.listed(after=None, limit=2)
    assert [each.tenant for each in first.tenants] == ["Zeta", "a"]
    assert [each.quotas for each in first.tenants] == [
        Quotas(schedules_max=4, weight=7),
        Quotas(schedules_max=1, weight=7),
    ]
    second = world.tenants.listed(after=first.after, limit=2)
    assert [each.tenant for each in second.tenants] == ["alpha", "beta"]
    third = world.tenants.listed(after=second.after, limit=2)
    assert [each.tenant for each in third.tenants] == ["delta"]
    assert (first.after, second.after, third.after) == ("a", "beta", None)


def test_a_page_that_holds_the_last_tenant_is_the_last(tenants: Tenants) -> None:
    tenants.register(a_tenant())
    assert tenants.listed(after=None, limit=1).after is None
    assert tenants.listed(after=TENANT, limit=1).tenants == ()


def test_registering_again_keeps_the_count(world: World) -> None:
    world.tenants.register(a_tenant(schedules_max=7, targets=(QUEUE,)))
    world.schedules.create(a_schedule(), a_version(), None, shard=0)
    changed = world.tenants.register(replace(a_tenant(schedules_max=9), schedules=55))
    assert changed == replace(a_tenant(schedules_max=9), schedules=1)
    assert world.tenants.get(TENANT) == changed


EVERY = timedelta(seconds=5)


def test_a_tenant_takes_a_forecast_turn_once_in_a_while(tenants: Tenants) -> None:
    tenants.register(a_tenant())
    turns = [
        tenants.take_forecast_turn(TENANT, now=NINE + after * MILLISECOND, every=EVERY)
        for after in (0, 1, 4_999, 5_000, 9_999, 10_000)
    ]
    assert turns == [True, False, False, True, False, True]
    assert tenants.get(TENANT) == a_tenant(), "its registration is another item"


def test_turns_are_each_tenants_own(tenants: Tenants) -> None:
    assert tenants.take_forecast_turn(TENANT, now=NINE, every=EVERY)
    assert tenants.take_forecast_turn(TenantId("other"), now=NINE, every=EVERY)


@pytest.mark.parametrize(
    ("row", "operation", "call"),
    [
        (RegistrationRow, "GetItem", lambda tenants: tenants.get(TENANT)),
        (RegistrationRow, "Query", lambda tenants: tenants.listed(after=None, limit=5)),
        (RegistrationRow, "UpdateItem", lambda tenants: tenants.register(a_tenant())),
        (
            ForecastTurnRow,
            "UpdateItem",
            lambda tenants: tenants.take_forecast_turn(TENANT, now=NINE, every=EVERY),
        ),
    ],
)
def test_a_throttle_is_unavailable(
    aws: Aws, row: type[Model], operation: str, call: Callable[[Tenants], object]
) -> None:
    assert isinstance(aws.world.tenants, DynamoDbTenants)
    client = bound(row, aws.world.tenants.table)._get_connection().connection.client
    with refusing(client, operation, "ThrottlingException"), pytest.raises(Unavailable):
        call(aws.world.tenants)


def test_a_key_generation_is_raised_once_for_the_one_that_was_seen(tenants: Tenants) -> None:
    tenants.register(a_tenant())
    once = tenants.raise_key_generation(TENANT, seen=1)
    again = tenants.raise_key_generation(TENANT, seen=1)
    assert once == again == a_tenant(key_generation=2)
    third = tenants.raise_key_generation(TENANT, seen=2)
    assert third == a_tenant(key_generation=3)


def test_p9_a_raise_that_the_sdk_repeats_raises_once(aws: Aws) -> None:
    assert isinstance(aws.world.tenants, DynamoDbTenants)
    aws.world.tenants.register(a_tenant())
    client = bound(RegistrationRow, aws.world.tenants.table)._get_connection().connection.client
    with repeating(client, "UpdateItem"):
        raised = aws.world.tenants.raise_key_generation(TENANT, seen=1)
    assert raised == a_tenant(key_generation=2)


def test_registering_again_keeps_the_key_generation(tenants: Tenants) -> None:
    tenants.register(a_tenant())
    tenants.raise_key_generation(TENANT, seen=1)
    assert tenants.register(a_tenant(schedules_max=5)).key_generation == 2


def test_nobodys_key_generation_is_raised(tenants: Tenants) -> None:
    assert tenants.raise_key_generation(TENANT, seen=1) is None
    assert tenants.get(TENANT) is None
