"""Where an occurrence is delivered, and what came of trying."""

import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from urllib.parse import SplitResult, urlsplit

from puntual.domain.errors import Rejected
from puntual.domain.instant import text_of
from puntual.domain.occurrence import Occurrence
from puntual.domain.target_limit import origin_of
from puntual.domain.tenant import Tenant

TIMEOUT_DEFAULT = timedelta(seconds=10)
SERVICE_TIMEOUT = timedelta(seconds=45)
"""Bounds the calls that a delivery to AWS may take, each with its repetitions, by the client's
settings: the role's credentials, a queue's address, the send."""

URL_LENGTH_MAX = 2048
HOST_LENGTH_MAX = 253
TARGET_NAME_PREFIX = "puntual-target-"
"""What a resource's name begins with where Puntual's own role calls it."""

SOURCE_DEFAULT = "puntual"
DETAIL_TYPE_DEFAULT = "Occurrence Due"

_KIB = 1024
_NAMES_BYTES = 4 * _KIB
"""More than the names take that go beside a payload, as attributes or in its envelope."""

WEBHOOK_PAYLOAD_BYTES_MAX = 256 * _KIB

_IPV6_AND_PORT = re.compile(r"\[[0-9A-Fa-f:.]+\](:[0-9]*)?", re.ASCII)
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}", re.ASCII)
_SOURCE = re.compile(r"(?!aws\.)[A-Za-z0-9._/-]{1,256}", re.ASCII)
_DETAIL_TYPE = re.compile(r"[ -~]{1,128}", re.ASCII)


class Service(StrEnum):
    """A service of AWS that can take an occurrence, by the `type` of its targets."""

    SQS = "sqs"
    SNS = "sns"
    EVENTBRIDGE = "eventbridge"
    LAMBDA = "lambda"
    STEP_FUNCTIONS = "step_functions"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFacts:
    """How a service's targets are written, and the longest payload that it takes.

    `resource` is the last part of their ARNs, the resource's own name in its group `name`.
    """

    noun: str
    field: str
    arn_service: str
    resource: str
    payload_bytes_max: int

    def name_in(self, arn: str) -> str | None:
        """Give the name of the resource, None where it is no ARN of this service."""
        pattern = rf"arn:aws[a-z-]*:{self.arn_service}:[a-z0-9-]+:\d{{12}}:{self.resource}"
        match = re.fullmatch(pattern, arn, re.ASCII)
        return None if match is None else match["name"]


FACTS: Mapping[Service, ServiceFacts] = {
    Service.SQS: ServiceFacts(
        noun="queue",
        field="queue_arn",
        arn_service="sqs",
        resource=r"(?P<name>[A-Za-z0-9_-]{1,75}(\.fifo)?)",
        payload_bytes_max=1024 * _KIB - _NAMES_BYTES,
    ),
    Service.SNS: ServiceFacts(
        noun="topic",
        field="topic_arn",
        arn_service="sns",
        resource=r"(?P<name>[A-Za-z0-9_-]{1,251}(\.fifo)?)",
        payload_bytes_max=256 * _KIB - _NAMES_BYTES,
    ),
    Service.EVENTBRIDGE: ServiceFacts(
        noun="event bus",
        field="bus_arn",
        arn_service="events",
        resource=r"event-bus/(?P<name>[A-Za-z0-9._-]{1,256})",
        # AWS documents 1 MB on newer pages and 256 KB on older ones; the smaller always holds.
        payload_bytes_max=256 * _KIB - _NAMES_BYTES,
    ),
    Service.LAMBDA: ServiceFacts(
        noun="function",
        field="function_arn",
        arn_service="lambda",
        resource=r"function:(?P<name>[A-Za-z0-9_-]{1,64})(:[A-Za-z0-9_$-]{1,128})?",
        payload_bytes_max=1_000_000 - _NAMES_BYTES,
    ),
    Service.STEP_FUNCTIONS: ServiceFacts(
        noun="state machine",
        field="state_machine_arn",
        arn_service="states",
        resource=r"stateMachine:(?P<name>[A-Za-z0-9_-]{1,80})(:[A-Za-z0-9_.-]{1,80})?",
        payload_bytes_max=256 * _KIB - _NAMES_BYTES,
    ),
}
"""To add a service, add its row here and its call in the adapter's table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookTarget:
    """An HTTP POST; the answer must come within `timeout`."""

    url: str
    timeout: timedelta = TIMEOUT_DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsTarget:
    """A resource of AWS, called through the tenant's role where there is one.

    `source` and `detail_type` are an event's and empty for every service but EventBridge.
    """

    service: Service
    arn: str
    role_arn: str | None = None
    source: str = ""
    detail_type: str = ""
    timeout: timedelta = SERVICE_TIMEOUT

    @property
    def region(self) -> str:
        return self.arn.split(":")[3]

    @property
    def is_fifo(self) -> bool:
        """Tell whether a queue or topic keeps the order, which its name says."""
        return self.arn.endswith(".fifo")


Target = WebhookTarget | AwsTarget


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
        # What stands beside the brackets is ignored by urlsplit, and a zone is of one machine only.
        if not _IPV6_AND_PORT.fullmatch(parts.netloc):
            return False
        try:
            ipaddress.IPv6Address(host)
        except ipaddress.AddressValueError:
            return False
        return True
    name = host.removesuffix(".")
    return len(name) <= HOST_LENGTH_MAX and all(map(_LABEL.fullmatch, name.split(".")))


def aws_target_of(
    service: Service,
    arn: object,
    *,
    tenant: Tenant,
    role_arn: str | None = None,
    source: str = "",
    detail_type: str = "",
) -> AwsTarget:
    """Check a resource and a role against the tenant's registration; raises `Rejected`."""
    facts = FACTS[service]
    named = f"target.{facts.field}"
    name = facts.name_in(arn) if isinstance(arn, str) else None
    if not isinstance(arn, str) or name is None or arn not in tenant.targets:
        allowed = f"the ARN of a {facts.noun} that the tenant's registration lists in targets"
        raise Rejected(named, arn, allowed)
    if role_arn is None and not name.startswith(TARGET_NAME_PREFIX):
        allowed = f"without target.role_arn, a name that begins with {TARGET_NAME_PREFIX}"
        raise Rejected(named, arn, allowed)
    if role_arn is not None and role_arn not in tenant.roles:
        allowed = "the ARN of a role that the tenant's registration lists in roles"
        raise Rejected("target.role_arn", role_arn, allowed)
    if service is Service.EVENTBRIDGE:
        _check_event(source, detail_type)
    return AwsTarget(
        service=service, arn=arn, role_arn=role_arn, source=source, detail_type=detail_type
    )


def _check_event(source: str, detail_type: str) -> None:
    if not _SOURCE.fullmatch(source):
        allowed = "1 to 256 of A-Z a-z 0-9 . _ / -, not beginning with 'aws.'"
        raise Rejected("target.source", source, allowed)
    if not _DETAIL_TYPE.fullmatch(detail_type):
        raise Rejected("target.detail_type", detail_type, "1 to 128 printable ASCII characters")


def check_target_arn(field: str, arn: str) -> None:
    """Check an ARN that a registration is to list; raises `Rejected`."""
    if not any(facts.name_in(arn) for facts in FACTS.values()):
        nouns = ", ".join(facts.noun for facts in FACTS.values())
        raise Rejected(field, arn, f"the ARN of one of these: {nouns}")


def why_unregistered(target: Target, tenant: Tenant) -> str | None:
    """Tell what a tenant's registration no longer lists of a target that it once allowed."""
    if isinstance(target, WebhookTarget):
        return None
    if target.arn not in tenant.targets:
        return f"the {FACTS[target.service].noun} is not registered any more"
    if target.role_arn is not None and target.role_arn not in tenant.roles:
        return "the role is not registered any more"
    return None


def limited_name_of(target: Target) -> str:
    """Give what a target's limits and its breaker are kept under: its origin, or its ARN."""
    return origin_of(target.url) if isinstance(target, WebhookTarget) else target.arn


def payload_bytes_max_of(target: Target) -> int:
    """Give the longest payload that a target takes, once its placeholders are replaced."""
    if isinstance(target, WebhookTarget):
        return WEBHOOK_PAYLOAD_BYTES_MAX
    return FACTS[target.service].payload_bytes_max


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One attempt's message to its target; `payload` is JSON text, `deadline` ends the wait.

    `is_repeat` where an earlier attempt of the same round may have arrived. `keys` sign a webhook,
    the newest first. A try belongs to no schedule and leaves no row. `callback_url` is where the
    target calls back, of those that are awaited to do so.
    """

    occurrence: Occurrence
    attempt: int
    round: int = 0
    is_repeat: bool = False
    target: Target
    payload: str = field(repr=False)
    deadline: datetime
    keys: tuple[bytes, ...] = field(default=(), repr=False)
    is_try: bool = False
    awaits_callback: bool = False
    callback_url: str = field(default="", repr=False)

    @property
    def once_name(self) -> str:
        """The name under which a target that tells repeats apart takes this round once.

        Where a callback ends the attempt, each takes its own: the one before it has failed.
        """
        occurrence = self.occurrence.id
        if self.awaits_callback:
            return f"{occurrence}-{self.round}-{self.attempt}"
        return occurrence if self.round == 0 else f"{occurrence}-{self.round}"

    def told(self) -> dict[str, str]:
        """Give what every target is told beside the payload, by name."""
        told = {
            "Idempotency-Key": self.occurrence.id,
            "Puntual-Tenant": self.occurrence.tenant,
            "Puntual-Schedule": self.occurrence.schedule,
            "Puntual-Scheduled-For": text_of(self.occurrence.scheduled_for),
            "Puntual-Attempt": str(self.attempt),
        }
        if self.callback_url:
            told["Puntual-Callback-Url"] = self.callback_url
        return told | {"Puntual-Try": "true"} if self.is_try else told

    def enveloped(self) -> str:
        """Give the JSON object for targets that have no place for names beside a payload."""
        names: dict[str, object] = {
            "idempotency_key": self.occurrence.id,
            "tenant": self.occurrence.tenant,
            "schedule": self.occurrence.schedule,
            "scheduled_for": text_of(self.occurrence.scheduled_for),
            "attempt": self.attempt,
            "try": self.is_try,
        }
        if self.callback_url:
            names["callback_url"] = self.callback_url
        return f'{{"puntual":{json.dumps(names, separators=(",", ":"))},"payload":{self.payload}}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """The target took it; `detail` is a status for people, such as `HTTP 200`."""

    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The target took it and will call back: what becomes of it, it says then."""

    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The target did not take it; `detail` holds neither payload nor answer body.

    `by_target` is False where it was never asked: that says nothing about it.
    """

    detail: str
    retryable: bool
    retry_after: timedelta | None = None
    by_target: bool = True


DeliveryResult = Delivered | Accepted | Failed
