from dataclasses import replace

from puntual.application.known_tenants import KNOWN_FOR, KnownTenants
from puntual.application.tenant_weights import TenantWeights
from puntual.domain.tenant import Quotas, TenantId
from tests.builders import NINE, TENANT, a_tenant
from tests.fakes.counted_tenants import CountedTenants
from tests.fakes.manual_clock import ManualClock


def test_who_is_not_registered_weighs_one() -> None:
    weights = TenantWeights(known=KnownTenants(tenants=CountedTenants(), clock=ManualClock(NINE)))
    assert weights(TENANT) == 1


def test_a_table_that_does_not_answer_stops_nobody() -> None:
    tenants, clock = CountedTenants(), ManualClock(NINE)
    weights = TenantWeights(known=KnownTenants(tenants=tenants, clock=clock))
    tenants.register(replace(a_tenant(), quotas=Quotas(weight=7)))
    assert weights(TENANT) == 7
    tenants.is_out_of_reach = True
    clock.advance(KNOWN_FOR)
    assert weights(TENANT) == 7, "the one that was known before"
    assert weights(TenantId("unknown")) == 1
