"""Who is let in is known at once, who is put out is out ten seconds later."""

from datetime import timedelta

import pytest

from puntual.application.admit_caller import (
    ADMISSION_AGE_MAX,
    ADMISSIONS_KNOWN_MAX,
    AdmitCaller,
)
from puntual.domain.instant import MILLISECOND
from puntual.domain.principal import CallerNotRegistered
from puntual.domain.tenant import Tenant, TenantId
from tests.builders import NINE, TENANT, a_tenant
from tests.fakes.in_memory_tenants import InMemoryTenants
from tests.fakes.manual_clock import ManualClock

ANA = "arn:aws:iam::123456789012:user/ana"
BEN = "arn:aws:iam::123456789012:user/ben"


class CountedTenants(InMemoryTenants):
    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def get(self, tenant: TenantId) -> Tenant | None:
        self.reads += 1
        return super().get(tenant)


@pytest.fixture
def tenants() -> CountedTenants:
    return CountedTenants()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NINE)


@pytest.fixture
def admit(tenants: CountedTenants, clock: ManualClock) -> AdmitCaller:
    return AdmitCaller(tenants=tenants, clock=clock)


def test_only_the_registered_principals_of_a_tenant_are_let_in(
    admit: AdmitCaller, tenants: CountedTenants
) -> None:
    tenants.register(a_tenant(principals=(ANA,)))
    tenants.register(a_tenant("globex"))
    admit(TENANT, caller=ANA)
    admit(TenantId("globex"), caller=BEN)
    with pytest.raises(CallerNotRegistered):
        admit(TENANT, caller=BEN)


def test_a_tenant_that_nobody_registered_is_no_matter_of_the_guard(admit: AdmitCaller) -> None:
    admit(TENANT, caller=ANA)


def test_whoever_is_let_in_costs_one_read_in_ten_seconds(
    admit: AdmitCaller, tenants: CountedTenants, clock: ManualClock
) -> None:
    tenants.register(a_tenant(principals=(ANA, BEN)))
    for _ in range(20):
        admit(TENANT, caller=ANA)
        admit(TENANT, caller=BEN)
        clock.advance(timedelta(seconds=1))
    assert tenants.reads == 2


def test_a_principal_that_was_taken_out_is_out_ten_seconds_later(
    admit: AdmitCaller, tenants: CountedTenants, clock: ManualClock
) -> None:
    tenants.register(a_tenant(principals=(ANA, BEN)))
    admit(TENANT, caller=BEN)
    tenants.register(a_tenant(principals=(ANA,)))
    clock.advance(ADMISSION_AGE_MAX - MILLISECOND)
    admit(TENANT, caller=BEN)
    clock.advance(MILLISECOND)
    with pytest.raises(CallerNotRegistered):
        admit(TENANT, caller=BEN)


def test_a_reading_by_others_keeps_nobody_in_for_longer(
    admit: AdmitCaller, tenants: CountedTenants
) -> None:
    tenants.register(a_tenant(principals=(ANA, BEN)))
    admit(TENANT, caller=BEN)
    tenants.register(a_tenant(principals=(ANA,)))
    with pytest.raises(CallerNotRegistered):
        admit(TENANT, caller="unknown")
    with pytest.raises(CallerNotRegistered):
        admit(TENANT, caller=BEN)


def test_a_principal_that_was_added_is_in_at_once(
    admit: AdmitCaller, tenants: CountedTenants
) -> None:
    tenants.register(a_tenant(principals=(ANA,)))
    admit(TENANT, caller=ANA)
    tenants.register(a_tenant(principals=(ANA, BEN)))
    admit(TENANT, caller=BEN)


def test_a_tenant_is_guarded_as_soon_as_it_is_registered(
    admit: AdmitCaller, tenants: CountedTenants
) -> None:
    admit(TENANT, caller=BEN)
    tenants.register(a_tenant(principals=(ANA,)))
    with pytest.raises(CallerNotRegistered):
        admit(TENANT, caller=BEN)


def test_what_is_known_is_bounded(admit: AdmitCaller, tenants: CountedTenants) -> None:
    names = [f"t-{number}" for number in range(ADMISSIONS_KNOWN_MAX + 1)]
    for name in names:
        tenants.register(a_tenant(name))
        admit(TenantId(name), caller=ANA)
    read = tenants.reads
    admit(TenantId(names[-1]), caller=ANA)
    assert tenants.reads == read
    admit(TenantId(names[0]), caller=ANA)
    assert tenants.reads == read + 1
