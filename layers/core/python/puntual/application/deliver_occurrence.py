"""Every delivery's last check before it leaves: registration, size, keys; then its own way."""

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from puntual.application.ports import Clock, RootSecret, Targets, Tenants
from puntual.domain.callback_token import Ticket, token_of
from puntual.domain.errors import Unavailable
from puntual.domain.target import (
    Accepted,
    AwsTarget,
    Delivered,
    Delivery,
    DeliveryResult,
    Failed,
    Target,
    WebhookTarget,
    payload_bytes_max_of,
    why_unregistered,
)
from puntual.domain.tenant import Tenant, TenantId
from puntual.domain.webhook_keys import keys_of

REGISTRATION_AGE_MAX = timedelta(seconds=60)
"""How long a registration counts after it was read: by then what was taken out of it is known."""

REGISTRATIONS_KNOWN_MAX = 1_000

CALLBACKS_PATH = "/v1/callbacks/"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverOccurrence:
    """The `Targets` that the executor knows: it hands a delivery on to those of its kind.

    `callbacks_at` is the address, without a slash at its end, that callbacks come in by.
    """

    tenants: Tenants
    root_secret: RootSecret
    webhooks: Targets
    aws: Targets
    clock: Clock
    callbacks_at: str = ""
    _known: OrderedDict[TenantId, tuple[datetime, Tenant | None]] = field(
        default_factory=OrderedDict
    )

    def deliver(self, delivery: Delivery) -> DeliveryResult:
        """Deliver by the registration as it was at most a minute ago."""
        try:
            tenant = self._registered(delivery.occurrence.tenant, delivery.target)
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

    def _registered(self, tenant: TenantId, target: Target) -> Tenant | None:
        """Read it, or give what was read if that lists the target: it may be newer than that.

        Executors' threads may read the same one twice.
        """
        now = self.clock.now()
        read_at, known = self._known.get(tenant, (None, None))
        is_recent = read_at is not None and now - read_at < REGISTRATION_AGE_MAX
        if is_recent and known is not None and why_unregistered(target, known) is None:
            return known
        registered = self.tenants.get(tenant)
        self._known[tenant] = (now, registered)
        while len(self._known) > REGISTRATIONS_KNOWN_MAX:
            self._known.popitem(last=False)
        return registered


def _as_taken(result: DeliveryResult, delivery: Delivery) -> DeliveryResult:
    """A service of AWS takes what somebody else works on: that is no success yet."""
    if isinstance(result, Delivered) and delivery.awaits_callback:
        return Accepted(detail=result.detail)
    return result
