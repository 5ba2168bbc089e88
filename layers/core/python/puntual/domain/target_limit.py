"""What a tenant's registration allows of one target, however many schedules share it."""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from puntual.domain.errors import Rejected

TARGET_LIMITS_MAX = 50
PER_MINUTE_LIMIT = 1_000_000
RUNNING_LIMIT = 10_000

TARGET_ALLOWED = (
    "an origin such as https://acme.example:8443, in lower case, without the port that its scheme"
    " has anyway or a dot at its end, IPv6 addresses at their shortest; or a target's ARN"
)

_DEFAULT_PORTS = {"http": 80, "https": 443}
_ORIGIN = re.compile(
    r"https?://([a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(:[1-9][0-9]{0,4})?",
    re.ASCII,
)
_ARN = re.compile(r"arn:aws[a-z-]*:(sqs|sns|events|lambda|states):[!-~]{1,300}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetLimit:
    """At most so many attempts a minute and at once; None is no limit.

    `target` is a URL's origin without its scheme's own port, or an ARN.
    """

    target: str
    per_minute: int | None = None
    running: int | None = None

    @property
    def name(self) -> str:
        return limit_name_of(self.target)


def limit_name_of(target: str) -> str:
    """Give what the budget and the shares of a target are called."""
    return f"target#{target}"


def origin_of(url: str) -> str:
    """Give the origin of a URL that was checked, as limits and breakers name it.

    Another spelling of a host, by a dot at its end or an IPv6 address at length, is no other host.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").removesuffix(".")
    host = f"[{ipaddress.IPv6Address(host)}]" if ":" in host else host
    port = parts.port
    is_default = port is None or port == _DEFAULT_PORTS.get(parts.scheme)
    return f"{parts.scheme}://{host}" if is_default else f"{parts.scheme}://{host}:{port}"


def checked_limits(limits: tuple[TargetLimit, ...]) -> tuple[TargetLimit, ...]:
    """Check a registration's limits of targets; raises `Rejected`."""
    if len(limits) > TARGET_LIMITS_MAX:
        raise Rejected("target_limits", f"{len(limits)} limits", f"at most {TARGET_LIMITS_MAX}")
    seen = set[str]()
    for number, limit in enumerate(limits):
        _check(f"target_limits.{number}", limit)
        if limit.target in seen:
            raise Rejected(f"target_limits.{number}.target", limit.target, "each target once")
        seen.add(limit.target)
    return limits


def _check(field: str, limit: TargetLimit) -> None:
    _check_target(f"{field}.target", limit.target)
    if limit.per_minute is None and limit.running is None:
        raise Rejected(f"{field}.per_minute", None, "per_minute, running or both")
    for name, value, most in (
        ("per_minute", limit.per_minute, PER_MINUTE_LIMIT),
        ("running", limit.running, RUNNING_LIMIT),
    ):
        if value is not None and not 1 <= value <= most:
            raise Rejected(f"{field}.{name}", value, f"1 to {most}")


def _check_target(field: str, target: str) -> None:
    if not _is_origin(target) and not _ARN.fullmatch(target):
        raise Rejected(field, target, TARGET_ALLOWED)


def _is_origin(target: str) -> bool:
    """Tell whether it is spelled as `origin_of` does, since any other spelling limits nothing."""
    try:
        return _ORIGIN.fullmatch(target) is not None and origin_of(target) == target
    except ValueError:  # no IPv6 address, or no port
        return False
