"""What a tenant reads of its gates."""

from dataclasses import replace
from datetime import timedelta

from puntual.application.read_gates import (
    GateUsage,
    OpenBreaker,
    RateUsage,
    ReadGates,
    RunningUsage,
)
from puntual.domain.breaker import opened
from puntual.domain.target_limit import TargetLimit
from puntual.domain.tenant import Quotas
from tests.builders import NINE, TENANT, a_message, a_tenant, a_version, an_occurrence
from tests.unit.application.world import World

FIRE = NINE + timedelta(minutes=5)
ORIGIN = "https://acme.example"


def read(world: World) -> GateUsage:
    read_gates = ReadGates(
        budgets=world.budgets, shares=world.shares, breakers=world.breakers, clock=world.clock
    )
    tenant = world.tenants.get(TENANT)
    assert tenant is not None
    return read_gates(tenant)


def test_a_tenant_without_limits_reads_what_it_always_has() -> None:
    world = World()
    world.tenants.register(a_tenant())
    assert read(world) == GateUsage(
        rates=(
            RateUsage(name="retries", per_minute=600, waiting=0, held=0),
            RateUsage(name="catch_ups", per_minute=60, waiting=0, held=0),
        ),
        running=(),
        breakers=(),
    )


def test_what_waits_and_what_runs_and_who_is_left_alone_is_read() -> None:
    world = World()
    world.clock.advance_to(FIRE)
    quotas = Quotas(fires_per_minute_max=6, running_max=5)
    limits = (TargetLimit(target=ORIGIN, per_minute=60, running=2),)
    world.tenants.register(replace(a_tenant(quotas=quotas), target_limits=limits))
    for number in range(3):
        world.holds(a_version(schedule=f"s{number}"))
        world.execute(a_message(an_occurrence(schedule=f"s{number}", scheduled_for=FIRE)))
    world.breakers.swap(
        replace(opened(world.breakers.read(TENANT), ORIGIN, FIRE), write_id="one"),
        seen=world.breakers.read(TENANT),
    )
    usage = read(world)
    fires, _, _, target = usage.rates
    assert fires == RateUsage(name="fires", per_minute=6, waiting=2, held=2)
    assert (target.name, target.waiting) == (f"target#{ORIGIN}", 2)
    assert usage.running == (
        RunningUsage(name="running", limit=5, running=1, held=0),
        RunningUsage(name=f"target#{ORIGIN}", limit=2, running=1, held=0),
    )
    until = FIRE + timedelta(seconds=10)
    assert usage.breakers == (OpenBreaker(target=ORIGIN, until=until, opened=1),)
