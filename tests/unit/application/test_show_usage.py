"""A tenant's usage: what is counted is shown, and nothing else."""

from dataclasses import replace
from datetime import timedelta

import pytest

from functions.api.answers import usage_document
from puntual.application.show_usage import RateUsage, RunningUsage, TargetUsage
from puntual.domain.breaker import OpenBreaker, opened
from puntual.domain.budget import FIRES, RETRIES, BudgetKey, reserve
from puntual.domain.share import ShareKey, taken
from puntual.domain.target_limit import TargetLimit
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


ORIGIN = "https://acme.example"
OTHER = "https://other.example"


def test_limits_on_concurrency_and_of_targets_and_open_breakers_are_shown() -> None:
    world = World()
    limits = (
        TargetLimit(target=ORIGIN, per_minute=60, running=2),
        TargetLimit(target=OTHER, running=3),
    )
    tenant = replace(a_tenant(quotas=Quotas(running_max=5)), target_limits=limits)
    world.tenants.register(tenant)
    draw(world, f"target#{ORIGIN}", 4, per_minute=60)
    for name, count in (("running", 4), (f"target#{ORIGIN}", 1)):
        seen = world.shares.read(ShareKey(tenant=TENANT, name=name))
        until = NINE + timedelta(minutes=1)
        after, _ = taken(seen, "one", count, limit=5, until=until, now=NINE)
        assert world.shares.swap(replace(after, held=7, write_id="one"), seen=seen)
    shut = opened(world.breakers.read(TENANT), OTHER, NINE)
    assert world.breakers.swap(replace(shut, write_id="one"), seen=world.breakers.read(TENANT))
    usage = world.plane.show_usage(TENANT)
    assert usage.running == RunningUsage(in_use=4, max=5, held=7)
    assert usage.targets == (
        TargetUsage(
            target=ORIGIN,
            rate=RateUsage(waiting=3, held=3),
            running=RunningUsage(in_use=1, max=2, held=7),
        ),
        TargetUsage(target=OTHER, rate=None, running=RunningUsage(in_use=0, max=3, held=0)),
    )
    until = NINE + timedelta(seconds=10)
    assert usage.breakers == (OpenBreaker(target=OTHER, until=until, opened=1),)
    used = usage_document(usage)
    assert used["used"]["running"] == {"in_use": 4, "max": 5, "held": 7}
    assert used["used"]["targets"] == [
        {
            "target": ORIGIN,
            "attempts": {"waiting": 3, "held": 3},
            "running": {"in_use": 1, "max": 2, "held": 7},
        },
        {"target": OTHER, "running": {"in_use": 0, "max": 3, "held": 0}},
    ]
    assert used["breakers"] == [
        {"target": OTHER, "until": "2026-11-30T09:00:10.000Z", "opened": 1},
    ]


def test_without_limits_on_concurrency_none_are_shown() -> None:
    usage = World().plane.show_usage(TENANT)
    assert (usage.running, usage.targets, usage.breakers) == (None, (), ())
    assert "running" not in usage_document(usage)["used"]
