"""Where a listing goes on: opaque to callers, and bound to the listing that gave it."""

import base64
import binascii
import hashlib
import json

from puntual.domain.errors import Rejected

TOKEN_LENGTH_MAX = 1024
_DIGEST_LENGTH = 12


class ForeignPageToken(Rejected):
    """The token is none that the listing gave."""

    def __init__(self, token: str) -> None:
        super().__init__("page_token", token, "the page_token of the same listing's last answer")


def page_token(position: tuple[str, ...], *, listing: tuple[str, ...]) -> str:
    """Give the token of a position; `listing` is all that the caller must ask for again.

    The digest keeps a token from one listing out of another; it is no secret, and needs none: a
    forged position only skips entries of a listing that its caller may read anyway.
    """
    content = json.dumps(position, separators=(",", ":")).encode()
    token = _digest(content, listing) + content
    return base64.urlsafe_b64encode(token).decode().rstrip("=")


def position_of(token: str, *, listing: tuple[str, ...], length: int) -> tuple[str, ...]:
    """Read a position of `length` texts back; raises `ForeignPageToken` for any other text.

    Since a token can be forged, the texts may be any: who reads them checks them.
    """
    if len(token) > TOKEN_LENGTH_MAX:
        raise ForeignPageToken(token)
    try:
        padded = token + "=" * (-len(token) % 4)
        raw = base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True)
        digest, content = raw[:_DIGEST_LENGTH], raw[_DIGEST_LENGTH:]
        position = json.loads(content) if digest == _digest(content, listing) else None
    except (binascii.Error, RecursionError, ValueError) as error:
        raise ForeignPageToken(token) from error
    if not isinstance(position, list) or len(position) != length:
        raise ForeignPageToken(token)
    if not all(isinstance(text, str) for text in position):
        raise ForeignPageToken(token)
    return tuple(position)


def _digest(content: bytes, listing: tuple[str, ...]) -> bytes:
    scope = json.dumps(listing).encode()
    return hashlib.blake2b(scope + b"\x1f" + content, digest_size=_DIGEST_LENGTH).digest()
