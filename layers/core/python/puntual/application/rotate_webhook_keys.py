"""Give a tenant a new key for its webhooks; the one before it signs on beside it."""

from dataclasses import dataclass

from puntual.application.ports import RootSecret, Tenants
from puntual.domain.errors import Rejected
from puntual.domain.tenant import KEY_GENERATION_MAX, TenantId, UnknownTenant
from puntual.domain.webhook_keys import StaleGeneration, WebhookKey, keys_of


@dataclass(frozen=True, slots=True, kw_only=True)
class RotateWebhookKeys:
    """Asked for by the generation that it replaces, so that a repeated request rotates once."""

    tenants: Tenants
    root_secret: RootSecret

    def __call__(self, tenant: TenantId, *, seen: int) -> tuple[WebhookKey, ...]:
        """Give the keys after it; raises `UnknownTenant`, `StaleGeneration`, `Rejected`."""
        if not 1 <= seen < KEY_GENERATION_MAX:
            raise Rejected("generation", seen, f"1 to {KEY_GENERATION_MAX - 1}")
        rotated = self.tenants.raise_key_generation(tenant, seen=seen)
        if rotated is None:
            raise UnknownTenant(tenant)
        if rotated.key_generation != seen + 1:
            raise StaleGeneration(tenant, seen=seen, current=rotated.key_generation)
        return keys_of(rotated, root=self.root_secret.read())
