"""Keys that sign webhooks, one root secret for all of them, and the signature itself.

A tenant's key is derived (HKDF, RFC 5869) and never stored; the signature is that of Standard
Webhooks (https://www.standardwebhooks.com), so receivers need no code of ours.
"""

import base64
import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import datetime

from puntual.domain.errors import Conflict
from puntual.domain.tenant import Tenant, TenantId

KEY_PREFIX = "whsec_"

_SALT = b"puntual webhook keys"
_SHA256_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookKey:
    """One generation of a tenant's key, as its receivers write it down."""

    generation: int
    secret: bytes = field(repr=False)

    @property
    def text(self) -> str:
        return KEY_PREFIX + base64.b64encode(self.secret).decode()


class StaleGeneration(Conflict):
    """The key that was to be replaced is not the current one."""

    def __init__(self, tenant: TenantId, *, seen: int, current: int) -> None:
        super().__init__(f"the keys of {tenant} are at generation {current}, not at {seen}")
        self.tenant, self.seen, self.current = tenant, seen, current


def keys_of(tenant: Tenant, *, root: bytes) -> tuple[WebhookKey, ...]:
    """Give the tenant's keys that sign now: the current one, and the one before it if any."""
    newest = tenant.key_generation
    return tuple(
        WebhookKey(generation=generation, secret=_derived(root, tenant.tenant, generation))
        for generation in (newest, newest - 1)
        if generation > 0
    )


def _derived(root: bytes, tenant: TenantId, generation: int) -> bytes:
    """Extract and expand by one block, which is as long as a key."""
    extracted = hmac.digest(_SALT, root, hashlib.sha256)
    info = f"{tenant}\x1f{generation}".encode()
    derived = hmac.digest(extracted, info + b"\x01", hashlib.sha256)
    assert len(derived) == _SHA256_BYTES
    return derived


def signature_headers(
    keys: tuple[bytes, ...], *, message_id: str, sent_at: datetime, body: bytes
) -> dict[str, str]:
    """Give the three headers of Standard Webhooks, with one signature for each key."""
    timestamp = str(int(sent_at.timestamp()))
    signed = b".".join((message_id.encode(), timestamp.encode(), body))
    signatures = (hmac.digest(key, signed, hashlib.sha256) for key in keys)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(
            f"v1,{base64.b64encode(signature).decode()}" for signature in signatures
        ),
    }
