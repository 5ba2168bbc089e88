"""A tenant's usage: what is counted is shown, and nothing else."""

from datetime import timedelta

import pytest

from puntual.application.show_usage import RateUsage
from puntual.domain.budget import FIRES, RETRIES, BudgetKey, reserve
from puntual.domain.tenant import Quotas, TenantId, UnknownTenant
from tests.builders import NINE, TENANT, a_tenant
from tests.control_plane_world import World

NOTHING = RateUsage(waiting=0, held=0)


def draw(world: World, name: str, count: int, *, per_minute: int) -> None:
    budget = world.budgets.read(BudgetKey(tenant=TENANT, name=name))
    taken, _ = reserve(budget, per_minute, count, world.clock.now())
    assert world.budgets.swap(taken, seen=budget)


def test_schedules_and_bounded_rates_are_shown() -> None:
    world = World()
    world.tenants.register(a_tenant(quotas=Quotas(fires_per_minute_max=60)))
    world.created()
    usage = world.plane.show_usage(TENANT)
    assert (usage.tenant.schedules, usage.as_of) == (1, NINE)
    assert usage.rates == {"fires": NOTHING, "retries": NOTHING, "catch_ups": NOTHING}


def test_what_waits_for_a_token_is_counted_until_it_has_fallen_due() -> None:
    world = World()
    world.tenants.register(a_tenant(quotas=Quotas(fires_per_minute_max=60)))
    draw(world, FIRES, 11, per_minute=60)
    world.clock.advance(timedelta(seconds=0.5))
    assert world.plane.show_usage(TENANT).rates["fires"] == RateUsage(waiting=10, held=10)
    world.clock.advance(timedelta(seconds=5))
    assert world.plane.show_usage(TENANT).rates["fires"] == RateUsage(waiting=5, held=10)
    world.clock.advance(timedelta(minutes=1))
    assert world.plane.show_usage(TENANT).rates["fires"] == RateUsage(waiting=0, held=10)


def test_a_rate_that_no_quota_bounds_is_left_out_whatever_its_budget_was() -> None:
    world = World()
    draw(world, FIRES, 11, per_minute=60)
    draw(world, RETRIES, 1, per_minute=600)
    assert world.plane.show_usage(TENANT).rates.keys() == {"retries", "catch_ups"}


def test_another_tenants_usage_is_its_own() -> None:
    world = World()
    world.tenants.register(a_tenant("globex"))
    draw(world, RETRIES, 50, per_minute=600)
    assert world.plane.show_usage(TenantId("globex")).rates["retries"] == NOTHING


def test_nobodys_usage_is_unknown() -> None:
    with pytest.raises(UnknownTenant):
        World().plane.show_usage(TenantId("nobody"))
