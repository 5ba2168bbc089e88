"""The open breakers in memory."""

from puntual.domain.breaker import Breakers
from puntual.domain.tenant import TenantId


class InMemoryBreakers:
    def __init__(self) -> None:
        self.rows: dict[TenantId, Breakers] = {}
        self.swaps = 0

    def read(self, tenant: TenantId) -> Breakers:
        return self.rows.get(tenant, Breakers(tenant=tenant, by_target={}))

    def swap(self, breakers: Breakers, *, seen: Breakers) -> bool:
        stands = self.read(breakers.tenant)
        if stands.write_id != seen.write_id:
            return stands.write_id == breakers.write_id
        self.rows[breakers.tenant] = breakers
        self.swaps += 1
        return True
