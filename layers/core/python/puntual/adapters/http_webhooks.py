"""Webhook targets over HTTP/1.1, at the address that was checked and never at another.

A tenant chooses the URL, so the name is resolved here, every address is judged, and the connection
is made to the judged address itself: a name that changes its answer between the check and the
connection gains nothing. Redirects are not followed.
"""

import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import SplitResult, urlsplit

from puntual.application.ports import Clock
from puntual.domain.target import (
    Accepted,
    Delivered,
    Delivery,
    DeliveryResult,
    Failed,
    WebhookTarget,
)
from puntual.domain.webhook_keys import signature_headers

ACCEPTED_STATUS = 202
RETRYABLE_STATUSES = frozenset({408, 425, 429})
INTERIM_ANSWERS_MAX = 20
SECONDS_LEFT_MIN = 0.001
_NOT_PUBLIC = (
    ipaddress.IPv6Network("64:ff9b::/96"),  # NAT64 (RFC 6052)
    ipaddress.IPv6Network("64:ff9b:1::/48"),  # local NAT64 (RFC 8215)
    ipaddress.IPv6Network("2002::/16"),  # 6to4 (RFC 3056)
    ipaddress.IPv6Network("2001::/32"),  # Teredo (RFC 4380)
    ipaddress.IPv6Network("::/96"),  # IPv4-compatible (RFC 4291)
    ipaddress.IPv6Network("3fff::/20"),  # documentation (RFC 9637)
)
"""What embeds IPv4, and what the library does not know to be reserved."""

Resolve = Callable[[str, int], list[str]]


class AddressRefused(Exception):
    """The host's name leads to an address that no tenant may reach."""


def resolved(host: str, port: int) -> list[str]:
    """Give the addresses of a host, as the system resolves it."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


def is_public(address: str) -> bool:
    """Tell whether an address is on the public internet, by what it embeds too."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return is_public(str(ip.ipv4_mapped))
        if ip.is_site_local or any(ip in network for network in _NOT_PUBLIC):
            return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


class FinalAnswer(http.client.HTTPResponse):
    """Skips interim answers (RFC 9110, 15.2): the library itself skips none but 100."""

    def begin(self) -> None:
        super().begin()
        for _ in range(INTERIM_ANSWERS_MAX):
            if not 101 < self.status < 200:  # noqa: PLR2004 what may come before the final one
                return
            self.headers = self.msg = None  # type: ignore[assignment]
            super().begin()


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpWebhooks:
    """`allow_private` is for one machine only: it lets a receiver on loopback be reached."""

    clock: Clock
    allow_private: bool
    resolve: Resolve = resolved
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)

    def deliver(self, delivery: Delivery) -> DeliveryResult:
        """POST the payload once. Whatever the receiver does is a result."""
        assert isinstance(delivery.target, WebhookTarget)
        assert delivery.keys, "no webhook leaves unsigned"
        seconds = (delivery.deadline - self.clock.now()).total_seconds()
        if seconds <= 0:
            return Failed(detail="timeout before the call", retryable=True, by_target=False)
        url = urlsplit(delivery.target.url)
        port = url.port or (443 if url.scheme == "https" else 80)
        ended = threading.Event()
        try:
            addresses = self._checked_addresses(url.hostname or "", port)
            if self.clock.now() >= delivery.deadline:
                return Failed(detail="timeout: the name was slow to resolve", retryable=True)
            with self._connected(url, addresses, port, delivery.deadline, ended) as connection:
                return self._posted(connection, url, delivery, ended)
        except (AddressRefused, UnicodeError) as error:
            no_name = isinstance(error, UnicodeError)
            detail = "the host is not a name that DNS can hold" if no_name else str(error)
            return Failed(detail=detail, retryable=False, by_target=False)
        except (OSError, http.client.HTTPException) as error:
            if ended.is_set() or isinstance(error, TimeoutError):
                return Failed(detail=f"timeout after {seconds:.1f} s", retryable=True)
            return Failed(detail=_what_broke(error), retryable=True)

    def _checked_addresses(self, host: str, port: int) -> list[str]:
        addresses = self.resolve(host, port)
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "no address")
        if not self.allow_private and not all(is_public(address) for address in addresses):
            raise AddressRefused("the host has a private or reserved address, which is refused")
        return addresses

    @contextmanager
    def _connected(
        self,
        url: SplitResult,
        addresses: list[str],
        port: int,
        deadline: datetime,
        ended: threading.Event,
    ) -> Iterator[http.client.HTTPConnection]:
        """Connect within the time; a watchdog ends the call when the whole of it is used up.

        Socket timeouts bound single reads only: a receiver that answers a byte at a time would
        otherwise outlive the lease.
        """
        connection = http.client.HTTPConnection(url.hostname or "", port)
        connection.response_class = FinalAnswer
        raw = _first_that_answers(addresses, port, self._seconds_left(deadline))
        line = raw.dup()  # TLS takes the first handle over, and the watchdog would hold nothing

        def end() -> None:
            ended.set()
            with _quiet():
                line.shutdown(socket.SHUT_RDWR)

        left = self._seconds_left(deadline)
        raw.settimeout(left)
        watchdog = threading.Timer(left, end)
        watchdog.daemon = True
        watchdog.start()
        try:
            connection.sock = raw
            if url.scheme == "https":
                # Certificates name hosts without the dot that may end a name.
                name = (url.hostname or "").removesuffix(".")
                connection.sock = self.tls.wrap_socket(raw, server_hostname=name)
            yield connection
        finally:
            watchdog.cancel()
            connection.close()
            raw.close()
            line.close()

    def _seconds_left(self, deadline: datetime) -> float:
        return max((deadline - self.clock.now()).total_seconds(), SECONDS_LEFT_MIN)

    def _posted(
        self,
        connection: http.client.HTTPConnection,
        url: SplitResult,
        delivery: Delivery,
        ended: threading.Event,
    ) -> DeliveryResult:
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        host = url.netloc.rpartition("@")[2]
        body = delivery.payload.encode()
        headers = _headers(host, delivery) | signature_headers(
            delivery.keys,
            message_id=delivery.occurrence.id,
            sent_at=self.clock.now(),
            body=body,
        )
        connection.request("POST", path, body=body, headers=headers)
        answer = connection.getresponse()
        if ended.is_set():
            raise TimeoutError  # headers that were cut off look as if they had ended there
        # The body is never read: it says nothing that counts, and may be endless.
        return _result(answer, delivery, self.clock.now())


def _first_that_answers(addresses: list[str], port: int, seconds: float) -> socket.socket:
    """Connect to the addresses in turn, as the system ordered them, in equal shares of the time."""
    share = seconds / len(addresses)
    for address in addresses[:-1]:
        with _quiet():
            return socket.create_connection((address, port), timeout=share)
    return socket.create_connection((addresses[-1], port), timeout=share)


def _what_broke(error: OSError | http.client.HTTPException) -> str:
    """Name a fault without its text, which may repeat what the receiver said."""
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or 'failed'}"
    if isinstance(error, socket.gaierror):
        return "the host's name does not resolve"
    return f"connection: {type(error).__name__}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Let a connection that is over fail: its result is known already."""
    try:
        yield
    except (OSError, http.client.HTTPException):
        return


def _headers(host: str, delivery: Delivery) -> dict[str, str]:
    return {
        "Host": host,
        "Content-Type": "application/json",
        "User-Agent": "Puntual",
        "Connection": "close",
        **delivery.told(),
    }


def _result(answer: http.client.HTTPResponse, delivery: Delivery, now: datetime) -> DeliveryResult:
    detail = f"HTTP {answer.status}"
    if answer.status == ACCEPTED_STATUS and delivery.awaits_callback:
        return Accepted(detail=detail)
    if 200 <= answer.status < 300:  # noqa: PLR2004 the success class of RFC 9110
        return Delivered(detail=detail)
    retryable = answer.status in RETRYABLE_STATUSES or answer.status >= 500  # noqa: PLR2004
    return Failed(
        detail=detail,
        retryable=retryable,
        retry_after=_retry_after(answer.getheader("Retry-After"), now) if retryable else None,
    )


def _retry_after(value: str | None, now: datetime) -> timedelta | None:
    """Read seconds or a date (RFC 9110, 10.2.3); None for anything else."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit() and len(text) <= 9:  # noqa: PLR2004 30 years
        return timedelta(seconds=int(text))
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(until - now, timedelta(0))
