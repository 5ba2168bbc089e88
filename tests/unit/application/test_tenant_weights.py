from dataclasses import dataclass, replace

from puntual.application.tenant_weights import WEIGHT_AGE_MAX, WEIGHTS_KNOWN_MAX, TenantWeights
from puntual.domain.errors import Unavailable
from puntual.domain.tenant import Quotas, Tenant, TenantId
from tests.builders import NINE, TENANT, a_tenant
from tests.fakes.in_memory_tenants import InMemoryTenants
from tests.fakes.manual_clock import ManualClock


@dataclass
class CountedTenants(InMemoryTenants):
    reads: int = 0
    answers: bool = True

    def __post_init__(self) -> None:
        super().__init__()

    def get(self, tenant: TenantId) -> Tenant | None:
        self.reads += 1
        if not self.answers:
            raise Unavailable("read a tenant")
        return super().get(tenant)


def weighing(tenants: CountedTenants, weight: int) -> None:
    tenants.register(replace(a_tenant(), quotas=Quotas(weight=weight)))


def test_a_weight_is_read_once_a_minute() -> None:
    tenants, clock = CountedTenants(), ManualClock(NINE)
    weights = TenantWeights(tenants=tenants, clock=clock)
    weighing(tenants, 7)
    assert [weights(TENANT) for _ in range(3)] == [7, 7, 7]
    weighing(tenants, 9)
    assert (weights(TENANT), tenants.reads) == (7, 1)
    clock.advance(WEIGHT_AGE_MAX)
    assert (weights(TENANT), tenants.reads) == (9, 2)


def test_who_is_not_registered_weighs_one() -> None:
    weights = TenantWeights(tenants=CountedTenants(), clock=ManualClock(NINE))
    assert weights(TENANT) == 1


def test_a_table_that_does_not_answer_stops_nobody() -> None:
    tenants, clock = CountedTenants(), ManualClock(NINE)
    weights = TenantWeights(tenants=tenants, clock=clock)
    weighing(tenants, 7)
    assert weights(TENANT) == 7
    tenants.answers = False
    clock.advance(WEIGHT_AGE_MAX)
    assert weights(TENANT) == 7, "the one that was known before"
    assert weights(TenantId("unknown")) == 1


def test_only_so_many_are_remembered() -> None:
    tenants = CountedTenants()
    weights = TenantWeights(tenants=tenants, clock=ManualClock(NINE))
    for number in range(WEIGHTS_KNOWN_MAX + 1):
        weights(TenantId(f"t{number}"))
    weights(TenantId("t0"))
    assert tenants.reads == WEIGHTS_KNOWN_MAX + 2
