"""Who is let in is known at once, who is put out is out ten seconds later."""

from datetime import timedelta

import pytest

from puntual.application.admit_caller import (
    ADMISSION_AGE_MAX,
    AdmitCaller,
)
from puntual.application.known_tenants import KnownTenants
from puntual.domain.instant import MILLISECOND
from puntual.domain.principal import CallerNotRegistered
from puntual.domain.tenant import TenantId
from tests.builders import NINE, TENANT, a_tenant
from tests.fakes.counted_tenants import CountedTenants
from tests.fakes.manual_clock import ManualClock

ANA = "arn:aws:iam::123456789012:user/ana"
BEN = "arn:aws:iam::123456789012:user/ben"


@pytest.fixture
def tenants() -> CountedTenants:
    return CountedTenants()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NINE)


@pytest.fixture
def admit(tenants: CountedTenants, clock: ManualClock) -> AdmitCaller:
    return AdmitCaller(
        known=KnownTenants(tenants=tenants, clock=clock, known_for=ADMISSION_AGE_MAX)
    )


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
