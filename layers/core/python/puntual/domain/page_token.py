"""Where a listing goes on: opaque to callers, and bound to the listing that gave it."""

import base64
import binascii
import hashlib
import json

from puntual.domain.errors import Rejected

TOKEN_LENGTH_MAX = 1024
_DIGEST_LENGTH = 12


def page_token(position: tuple[str, ...], *, listing: tuple[str, ...]) -> str:
    """Give the token of a position; `listing` is all that the caller must ask for again.

    The digest keeps a token from one listing out of another; it is no secret, and needs none: a
    forged position only skips entries of a listing that its caller may read anyway.
    """
    content = json.dumps(position, separators=(",", ":")).encode()
    token = _digest(content, listing) + content
    return base64.urlsafe_b64encode(token).decode().rstrip("=")


def position_of(token: str, *, listing: tuple[str, ...]) -> tuple[str, ...]:
    """Read a position back; raises `Rejected` for any text that `page_token` did not give."""
    refused = Rejected("page_token", token, "the page_token of the same listing's last answer")
    if len(token) > TOKEN_LENGTH_MAX:
        raise refused
    try:
        padded = token + "=" * (-len(token) % 4)
        raw = base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise refused from error
    digest, content = raw[:_DIGEST_LENGTH], raw[_DIGEST_LENGTH:]
    if digest != _digest(content, listing):
        raise refused
    return tuple(json.loads(content))


def _digest(content: bytes, listing: tuple[str, ...]) -> bytes:
    scope = json.dumps(listing).encode()
    return hashlib.blake2b(scope + b"\x1f" + content, digest_size=_DIGEST_LENGTH).digest()
