"""Show the keys that sign a tenant's webhooks."""

from dataclasses import dataclass

from puntual.application.ports import RootSecret, Tenants
from puntual.domain.tenant import TenantId, UnknownTenant
from puntual.domain.webhook_keys import WebhookKey, keys_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowWebhookKeys:
    tenants: Tenants
    root_secret: RootSecret

    def __call__(self, tenant: TenantId) -> tuple[WebhookKey, ...]:
        """Give them, the newest first; raises `UnknownTenant`."""
        registered = self.tenants.get(tenant)
        if registered is None:
            raise UnknownTenant(tenant)
        return keys_of(registered, root=self.root_secret.read())
