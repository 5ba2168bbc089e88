"""The token by which a target calls back: it names its attempt itself, and only we can make one.

A message authentication code (HMAC-SHA256, cut to 128 bits as RFC 2104 allows) and what it speaks
for, as base64url. Its key is derived from the environment's root secret and signs nothing else.
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass

from puntual.domain.errors import Rejected
from puntual.domain.instant import instant_of, text_of
from puntual.domain.occurrence import Kind, Occurrence
from puntual.domain.tenant import ScheduleId, TenantId

TOKEN_LENGTH_MAX = 512

_SALT = b"puntual callback tokens"
_CODE_BYTES = 16
_SEPARATOR = "\x1f"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """The attempt that a token was given to."""

    occurrence: Occurrence
    attempt: int


class UnknownCallback(Rejected):
    """The token is none of ours. It is shown to nobody, whatever it is."""

    def __init__(self) -> None:
        super().__init__("token", "(not shown)", "the one that the delivery carried")


def token_of(ticket: Ticket, *, root: bytes) -> str:
    content = _content_of(ticket)
    return _text_of(_code_of(content, root) + content)


def ticket_of(token: str, *, root: bytes) -> Ticket:
    """Read a token that `token_of` gave; raises `UnknownCallback` for any other text.

    The code is compared in constant time and before anything of the token is believed.
    """
    if len(token) > TOKEN_LENGTH_MAX:
        raise UnknownCallback
    try:
        padded = token + "=" * (-len(token) % 4)
        raw = base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise UnknownCallback from error
    code, content = raw[:_CODE_BYTES], raw[_CODE_BYTES:]
    is_ours = hmac.compare_digest(code, _code_of(content, root))
    # Base64 has more than one text for the same bytes; a token has one.
    if not is_ours or _text_of(raw) != token:
        raise UnknownCallback
    return _ticket_of(content)


def _code_of(content: bytes, root: bytes) -> bytes:
    key = hmac.digest(_SALT, root, hashlib.sha256)
    return hmac.digest(key, content, hashlib.sha256)[:_CODE_BYTES]


def _content_of(ticket: Ticket) -> bytes:
    occurrence = ticket.occurrence
    parts: tuple[str, ...] = (
        occurrence.tenant,
        occurrence.schedule,
        str(occurrence.version),
        text_of(occurrence.scheduled_for),
        str(ticket.attempt),
    )
    if not occurrence.is_regular:
        parts += (occurrence.kind, occurrence.request_id)
    return _SEPARATOR.join(parts).encode()


def _ticket_of(content: bytes) -> Ticket:
    """Read what was authenticated, and so is our own writing."""
    tenant, schedule, version, scheduled_for, attempt, *rest = content.decode().split(_SEPARATOR)
    kind, request_id = rest or (Kind.REGULAR, "")
    occurrence = Occurrence(
        tenant=TenantId(tenant),
        schedule=ScheduleId(schedule),
        version=int(version),
        scheduled_for=instant_of(scheduled_for),
        kind=Kind(kind),
        request_id=request_id,
    )
    return Ticket(occurrence=occurrence, attempt=int(attempt))


def _text_of(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
