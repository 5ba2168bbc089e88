"""One memory of registrations for all that look them up at every attempt or request."""

from dataclasses import replace

import pytest

from puntual.application.catch_up_tokens import CatchUpTokens
from puntual.application.draw_tokens import DrawTokens
from puntual.application.known_tenants import KNOWN_FOR, KNOWN_MAX, KnownTenants
from puntual.domain.errors import Unavailable
from puntual.domain.tenant import Quotas, TenantId
from tests.builders import NINE, TENANT, a_tenant
from tests.fakes.counted_tenants import CountedTenants
from tests.fakes.counting_ids import CountingIds
from tests.fakes.in_memory_budgets import InMemoryBudgets
from tests.fakes.manual_clock import ManualClock

HEAVY = replace(a_tenant(), quotas=Quotas(weight=7))


def test_a_registration_is_read_once_in_half_a_minute() -> None:
    tenants, clock = CountedTenants(), ManualClock(NINE)
    known = KnownTenants(tenants=tenants, clock=clock)
    tenants.register(a_tenant())
    assert [known.of(TENANT) for _ in range(3)] == [a_tenant()] * 3
    tenants.register(HEAVY)
    assert (known.of(TENANT), tenants.reads) == (a_tenant(), 1)
    clock.advance(KNOWN_FOR)
    assert (known.of(TENANT), tenants.reads) == (HEAVY, 2)


def test_one_that_does_not_suit_is_read_anew() -> None:
    tenants = CountedTenants()
    known = KnownTenants(tenants=tenants, clock=ManualClock(NINE))
    tenants.register(a_tenant())
    known.of(TENANT)
    tenants.register(HEAVY)
    heavy = known.of(TENANT, suits=lambda registered: registered.quotas.weight > 1)
    assert (heavy, known.of(TENANT), tenants.reads) == (HEAVY, HEAVY, 2)


def test_a_tenant_is_known_as_soon_as_it_is_registered() -> None:
    tenants = CountedTenants()
    known = KnownTenants(tenants=tenants, clock=ManualClock(NINE))
    assert known.of(TENANT) is None
    tenants.register(a_tenant())
    assert known.of(TENANT) == a_tenant()


def test_what_was_read_last_is_there_when_the_table_is_not() -> None:
    tenants, clock = CountedTenants(), ManualClock(NINE)
    known = KnownTenants(tenants=tenants, clock=clock)
    tenants.register(a_tenant())
    known.of(TENANT)
    clock.advance(KNOWN_FOR)
    tenants.is_out_of_reach = True
    with pytest.raises(Unavailable):
        known.of(TENANT)
    assert known.last(TENANT) == a_tenant()


def test_only_so_many_are_known_those_that_were_read_last() -> None:
    tenants, clock = CountedTenants(), ManualClock(NINE)
    known = KnownTenants(tenants=tenants, clock=clock)
    names = [TenantId(f"t-{number}") for number in range(KNOWN_MAX + 1)]
    for name in names[:-1]:
        tenants.register(a_tenant(name))
        known.of(name)
    clock.advance(KNOWN_FOR)
    known.of(names[0])
    tenants.register(a_tenant(names[-1]))
    known.of(names[-1])
    assert known.last(names[0]) is not None
    assert known.last(names[1]) is None


def test_a_backlog_looks_its_rate_up_once_not_for_every_message() -> None:
    tenants, clock = CountedTenants(), ManualClock(NINE)
    tenants.register(a_tenant())
    tokens = CatchUpTokens(
        known=KnownTenants(tenants=tenants, clock=clock),
        draw=DrawTokens(budgets=InMemoryBudgets(), clock=clock, ids=CountingIds()),
        clock=clock,
    )
    for _ in range(10):
        tokens.per_minute(TENANT)
        tokens.reserve(TENANT)
    assert tenants.reads == 1
