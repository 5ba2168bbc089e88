"""How a receiver checks that a webhook is Puntual's, as docs/webhooks.md says."""

import base64
import hmac
from collections.abc import Iterable, Mapping

TOLERANCE_SECONDS = 300


def is_signed(headers: Mapping[str, str], body: bytes, keys: Iterable[str], *, now: float) -> bool:
    """Tell whether one of the keys signed the body, not long ago; `now` in Unix seconds.

    The names of `headers` are in small letters.
    """
    message_id = headers.get("webhook-id", "")
    sent_at = headers.get("webhook-timestamp", "")
    if not (sent_at.isascii() and sent_at.isdigit()):
        return False
    if abs(now - int(sent_at)) > TOLERANCE_SECONDS:
        return False
    signed = f"{message_id}.{sent_at}.".encode() + body
    given = headers.get("webhook-signature", "").split(" ")
    for key in keys:
        secret = base64.b64decode(key.removeprefix("whsec_"))
        digest = base64.b64encode(hmac.digest(secret, signed, "sha256")).decode()
        if any(hmac.compare_digest(f"v1,{digest}", each) for each in given):
            return True
    return False
