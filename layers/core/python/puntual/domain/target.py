"""Where an occurrence is delivered, and what came of trying."""

import ipaddress
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import SplitResult, urlsplit

from puntual.domain.errors import Rejected
from puntual.domain.instant import text_of
from puntual.domain.occurrence import Occurrence

TIMEOUT_DEFAULT = timedelta(seconds=10)
QUEUE_TIMEOUT = timedelta(seconds=45)
"""Bounds the calls that a send may take, each with its repetitions, by the client's settings."""

URL_LENGTH_MAX = 2048
HOST_LENGTH_MAX = 253
QUEUE_NAME_PREFIX = "puntual-target-"

_QUEUE_ARN = re.compile(
    rf"arn:aws[a-z-]*:sqs:[a-z0-9-]+:\d{{12}}:{QUEUE_NAME_PREFIX}[A-Za-z0-9_-]{{1,60}}(\.fifo)?",
    re.ASCII,
)

_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookTarget:
    """An HTTP POST; the answer must come within `timeout`."""

    url: str
    timeout: timedelta = TIMEOUT_DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTarget:
    """An SQS queue that the tenant's registration lists; its name says whether it is FIFO."""

    arn: str
    timeout: timedelta = QUEUE_TIMEOUT

    @property
    def is_fifo(self) -> bool:
        return self.arn.endswith(".fifo")


Target = WebhookTarget | QueueTarget


def webhook_target_of(url: object, *, timeout: timedelta, plain_http: bool) -> WebhookTarget:
    """Check a webhook's address by its text; raises `Rejected`.

    What the name resolves to is checked at each delivery, since it can change.
    """
    schemes = ("https", "http") if plain_http else ("https",)
    allowed = (
        f"an absolute {' or '.join(schemes)} URL of at most {URL_LENGTH_MAX} characters "
        "with a host that DNS can hold, without user information or fragment"
    )
    if not isinstance(url, str) or len(url) > URL_LENGTH_MAX:
        raise Rejected("target.url", url, allowed)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Rejected("target.url", url, allowed) from error
    printable = url.isascii() and url.isprintable() and " " not in url
    if (
        not printable
        or parts.scheme not in schemes
        or not _is_host(parts)
        or port == 0
        or parts.username is not None
        or parts.password is not None
        or "#" in url
    ):
        raise Rejected("target.url", url, allowed)
    return WebhookTarget(url=url, timeout=timeout)


def _is_host(parts: SplitResult) -> bool:
    """Tell whether the host is an IPv6 literal, or a name by its lengths (RFC 1035, 2.3.4)."""
    host = parts.hostname or ""
    if "[" in parts.netloc:
        try:
            ipaddress.IPv6Address(host)
        except ipaddress.AddressValueError:
            return False
        return True
    name = host.removesuffix(".")
    return len(name) <= HOST_LENGTH_MAX and all(map(_LABEL.fullmatch, name.split(".")))


def queue_target_of(arn: object, *, registered: tuple[str, ...]) -> QueueTarget:
    """Check a queue's ARN against the tenant's registered queues; raises `Rejected`."""
    if not isinstance(arn, str) or not is_target_queue(arn) or arn not in registered:
        raise Rejected(
            "target.queue_arn",
            arn,
            "the ARN of a queue that the tenant's registration lists in target_queues",
        )
    return QueueTarget(arn=arn)


def is_target_queue(arn: str) -> bool:
    """Tell whether an ARN names a queue that the executor's role may send to."""
    return _QUEUE_ARN.fullmatch(arn) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One attempt's message to its target; `payload` is JSON text, `deadline` ends the wait."""

    occurrence: Occurrence
    attempt: int
    target: Target
    payload: str = field(repr=False)
    deadline: datetime

    def told(self) -> dict[str, str]:
        """Give what every target is told beside the payload, by name."""
        return {
            "Idempotency-Key": self.occurrence.id,
            "Puntual-Tenant": self.occurrence.tenant,
            "Puntual-Schedule": self.occurrence.schedule,
            "Puntual-Scheduled-For": text_of(self.occurrence.scheduled_for),
            "Puntual-Attempt": str(self.attempt),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """The target took it; `detail` is a status for people, such as `HTTP 200`."""

    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The target did not take it; `detail` holds neither payload nor answer body."""

    detail: str
    retryable: bool
    retry_after: timedelta | None = None


DeliveryResult = Delivered | Failed
