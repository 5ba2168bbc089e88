"""Every delivery's last check before it leaves: registration, size, keys; then its own way."""

from dataclasses import dataclass, replace

from puntual.application.known_tenants import KnownTenants
from puntual.application.ports import RootSecret, Targets
from puntual.domain.callback_token import Ticket, token_of
from puntual.domain.errors import Unavailable
from puntual.domain.target import (
    Accepted,
    AwsTarget,
    Delivered,
    Delivery,
    DeliveryResult,
    Failed,
    WebhookTarget,
    payload_bytes_max_of,
    why_unregistered,
)
from puntual.domain.tenant import Tenant
from puntual.domain.webhook_keys import keys_of

CALLBACKS_PATH = "/v1/callbacks/"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverOccurrence:
    """The `Targets` that the executor knows: it hands a delivery on to those of its kind.

    `callbacks_at` is the address, without a slash at its end, that callbacks come in by.
    """

    known: KnownTenants
    root_secret: RootSecret
    webhooks: Targets
    aws: Targets
    callbacks_at: str = ""

    def deliver(self, delivery: Delivery) -> DeliveryResult:
        """Deliver by the registration as it was a moment ago.

        One that lists its target, that is: what was added to it since counts at once.
        """

        def lists_it(registered: Tenant) -> bool:
            return why_unregistered(delivery.target, registered) is None

        try:
            tenant = self.known.of(delivery.occurrence.tenant, suits=lists_it)
        except Unavailable:
            detail = "the tenant's registration could not be read"
            return Failed(detail=detail, retryable=True, by_target=False)
        if tenant is None:
            return Failed(detail="the tenant is not registered", retryable=False, by_target=False)
        return self.deliver_for(tenant, delivery)

    def deliver_for(self, tenant: Tenant, delivery: Delivery) -> DeliveryResult:
        """Deliver by a registration that was just read."""
        why = why_unregistered(delivery.target, tenant)
        if why is not None:
            return Failed(detail=why, retryable=False, by_target=False)
        size, size_max = len(delivery.payload.encode()), payload_bytes_max_of(delivery.target)
        if size > size_max:
            detail = f"payload of {size} bytes, beyond {size_max}"
            return Failed(detail=detail, retryable=False, by_target=False)
        if delivery.awaits_callback:
            try:
                delivery = replace(delivery, callback_url=self._callback_url(delivery))
            except Unavailable:
                detail = "the key of callbacks could not be read"
                return Failed(detail=detail, retryable=True, by_target=False)
        match delivery.target:
            case WebhookTarget():
                return self._signed_and_posted(tenant, delivery)
            case AwsTarget():
                return _as_taken(self.aws.deliver(delivery), delivery)

    def _callback_url(self, delivery: Delivery) -> str:
        ticket = Ticket(occurrence=delivery.occurrence, attempt=delivery.attempt)
        token = token_of(ticket, root=self.root_secret.read())
        return f"{self.callbacks_at}{CALLBACKS_PATH}{token}"

    def _signed_and_posted(self, tenant: Tenant, delivery: Delivery) -> DeliveryResult:
        try:
            keys = keys_of(tenant, root=self.root_secret.read())
        except Unavailable:
            detail = "the signing keys could not be read"
            return Failed(detail=detail, retryable=True, by_target=False)
        return self.webhooks.deliver(replace(delivery, keys=tuple(key.secret for key in keys)))


def _as_taken(result: DeliveryResult, delivery: Delivery) -> DeliveryResult:
    """A service of AWS takes what somebody else works on: that is no success yet."""
    if isinstance(result, Delivered) and delivery.awaits_callback:
        return Accepted(detail=result.detail)
    return result
