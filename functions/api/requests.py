"""What is read from a request beside its route: JSON, If-Match, Idempotency-Key."""

import base64
import json
import re
import zlib
from typing import Any, NoReturn

from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from functions.api.models import FIELD_LENGTH_MAX, EmptyBody
from functions.api.problems import PreconditionMissing
from puntual.application.import_schedules import FileTooLarge
from puntual.domain.definition import check_depth
from puntual.domain.errors import Rejected
from puntual.domain.request import Request

IDEMPOTENCY_KEY = "Idempotency-Key"
IF_MATCH = "If-Match"
CONTENT_ENCODING = "Content-Encoding"
GZIP = "gzip"
IDENTITY = "identity"
GZIP_BEGINS = b"\x1f\x8b"
"""No JSON text begins so."""

GZIP_BITS = zlib.MAX_WBITS | 16
"""How zlib is asked for gzip's own header and checksum."""

GZIP_MEMBERS_MAX = 100
"""Files that were packed one by one and put together; each costs a copy of what is left."""

_ETAG = re.compile(r'"([1-9][0-9]{0,8})"', re.ASCII)
_KEY = re.compile(r"[!-~]{1,128}", re.ASCII)


class Malformed(Rejected):
    """The body is not a JSON object."""

    ALLOWED = "one JSON object (RFC 8259) in UTF-8"

    def __init__(self, why: str) -> None:
        super().__init__("body", why, self.ALLOWED)


def json_object(text: str) -> dict[str, Any]:
    """Read a body; raises `Malformed`, which says where but repeats nothing of it.

    Its depth is bounded here, before anything recurses into it; raises `NestedTooDeeply`. A member
    that comes twice is refused by its name, since readers differ in which one counts.
    """
    try:
        value = json.loads(
            text, parse_constant=_refuse_constant, object_pairs_hook=_object_of_members
        )
    except json.JSONDecodeError as error:
        raise Malformed(f"{error.msg} at character {error.pos}") from error
    except RecursionError as error:
        raise Malformed("nested too deeply") from error
    except ValueError as error:
        raise Malformed("a number that is out of range") from error
    if not isinstance(value, dict):
        raise Malformed("JSON, but not an object")
    for name, member in value.items():
        check_depth(name[:FIELD_LENGTH_MAX], member)
    return value


def check_no_body(router: APIGatewayRouter) -> None:
    """Refuse what nobody reads; raises `Rejected`, and ValidationError for what is no object."""
    EmptyBody.model_validate(router.current_event.json_body or {})


def unpacked_body(router: APIGatewayRouter, *, bytes_max: int) -> bytes:
    """Give a body's bytes, out of gzip where they are in it; raises `Rejected`.

    What they begin with tells, and not the header: API Gateway unpacks what Content-Encoding names,
    and leaves the header as it was.
    """
    coding = _header(router, CONTENT_ENCODING) or IDENTITY
    if coding.lower() not in {GZIP, IDENTITY}:
        raise Rejected(CONTENT_ENCODING, coding, f"{GZIP}, or none")
    body = router.current_event.get("body") or ""
    if not router.current_event.get("isBase64Encoded"):
        return str(body).encode(errors="surrogatepass")
    try:
        content = base64.b64decode(body, validate=True)
    except ValueError as error:
        raise Rejected("body", "base64 that cannot be read", "bytes") from error
    return _gunzipped(content, bytes_max) if content.startswith(GZIP_BEGINS) else content


def _gunzipped(content: bytes, bytes_max: int) -> bytes:
    """Unpack no more than `bytes_max` and one byte, by which it shows that there is more."""
    unpacked, rest = b"", content
    for _ in range(GZIP_MEMBERS_MAX):
        member = zlib.decompressobj(wbits=GZIP_BITS)
        try:
            unpacked += member.decompress(rest, bytes_max + 1 - len(unpacked))
        except zlib.error as error:
            raise Rejected("body", "gzip that cannot be unpacked", "whole gzip members") from error
        if len(unpacked) > bytes_max:
            raise FileTooLarge("body", "more, once unpacked", f"at most {bytes_max} bytes")
        if not member.eof:
            raise Rejected("body", "gzip that is cut short", "whole gzip members")
        rest = member.unused_data
        if not rest:
            return unpacked
    raise Rejected("body", "more gzip members", f"at most {GZIP_MEMBERS_MAX}")


def _refuse_constant(name: str) -> NoReturn:
    raise Malformed(f"{name} is not JSON")


def _object_of_members(members: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for name, member in members:
        if name in value:
            raise Rejected(name[:FIELD_LENGTH_MAX], "it comes twice", "once in an object")
        value[name] = member
    return value


def seen_version(router: APIGatewayRouter) -> int | None:
    """Give the version that If-Match names, None without the header; raises `Rejected`."""
    etag = _header(router, IF_MATCH)
    if etag is None:
        return None
    match = _ETAG.fullmatch(etag)
    if match is None:
        raise Rejected(IF_MATCH, etag, 'one ETag that an answer gave, such as "3"')
    return int(match[1])


def required_version(router: APIGatewayRouter) -> int:
    """Give the version that If-Match names; raises `PreconditionMissing`, `Rejected`."""
    seen = seen_version(router)
    if seen is None:
        raise PreconditionMissing
    return seen


def request_of(router: APIGatewayRouter, body: str) -> Request | None:
    """Give what makes it repeatable, if the caller gave a key; raises `Rejected`.

    `body` is the canonical text of all that the request asks for.
    """
    key = _header(router, IDEMPOTENCY_KEY)
    if key is None:
        return None
    if not _KEY.fullmatch(key):
        raise Rejected(IDEMPOTENCY_KEY, key, "1 to 128 visible ASCII characters")
    return Request(key=key, body=body)


def _header(router: APIGatewayRouter, name: str) -> str | None:
    value: str | None = router.current_event.headers.get(name)
    return None if value is None else value.strip()
