"""Who owns schedules, and the names they may carry."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import NewType

from puntual.domain.errors import Rejected
from puntual.domain.instant import DAY, MINUTE, SECOND
from puntual.domain.target_limit import TargetLimit

TenantId = NewType("TenantId", str)
ScheduleId = NewType("ScheduleId", str)

ID_ALLOWED = "1 to 64 of A-Z a-z 0-9 . _ -, but not '.' or '..'"
PATHS_BESIDE_SCHEDULES = frozenset({"export", "import"})
"""What the API's paths hold in the place of a schedule's id, so that no schedule may have it."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)

SCHEDULES_MAX_DEFAULT = 100_000
SCHEDULES_MAX_LIMIT = 20_000_000
FIRES_PER_MINUTE_LIMIT = 3_000_000
RUNNING_LIMIT = 1_000_000
CATCH_UPS_PER_MINUTE_LIMIT = 100_000
RETRIES_PER_MINUTE_LIMIT = 1_000_000
SMALLEST_INTERVAL_LEAST = MINUTE
"""No rule fires faster."""
SMALLEST_INTERVAL_LIMIT = DAY
"""Beyond a day, how near two fires of a cron lie is not worked out."""
WEIGHT_MAX = 100
TARGETS_MAX = 50
ROLES_MAX = 20
PRINCIPALS_MAX = 50
KEY_GENERATION_MAX = 1_000_000
ROLE_NAME_PREFIX = "puntual-target-"
"""What a tenant's role is named by, so that Puntual may assume no other role of an account."""

_ROLE_ARN = re.compile(
    rf"arn:aws[a-z-]*:iam::\d{{12}}:role/{ROLE_NAME_PREFIX}[A-Za-z0-9+=,.@_-]{{1,49}}", re.ASCII
)


def _checked_id(field: str, value: object) -> str:
    if not isinstance(value, str) or not _ID.fullmatch(value) or value in {".", ".."}:
        raise Rejected(field, value, ID_ALLOWED)
    return value


def tenant_id_of(value: object, *, field: str = "tenant") -> TenantId:
    """Check a tenant's id; raises `Rejected`."""
    return TenantId(_checked_id(field, value))


def schedule_id_of(value: object, *, field: str = "id") -> ScheduleId:
    """Check a schedule's id; raises `Rejected`."""
    schedule = _checked_id(field, value)
    if schedule in PATHS_BESIDE_SCHEDULES:
        names = " or ".join(repr(name) for name in sorted(PATHS_BESIDE_SCHEDULES))
        raise Rejected(field, value, f"{ID_ALLOWED}, nor {names}")
    return ScheduleId(schedule)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """What a tenant may use at most; None is no limit, and costs nothing to check.

    `weight` is its share of what tenants contend for, beside the others'.
    """

    schedules_max: int = SCHEDULES_MAX_DEFAULT
    fires_per_minute_max: int | None = None
    running_max: int | None = None
    catch_ups_per_minute: int = 60
    retries_per_minute: int = 600
    smallest_interval: timedelta = MINUTE
    weight: int = 1


DEFAULT_QUOTAS = Quotas()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A registered tenant: its quotas, and the resources and roles that its targets may name.

    `principals` are the ARNs of the IAM roles and users that may call for it; none says that IAM
    alone decides. `key_generation` numbers the key that signs its webhooks.
    """

    tenant: TenantId
    quotas: Quotas = DEFAULT_QUOTAS
    schedules: int = 0
    targets: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    principals: tuple[str, ...] = ()
    key_generation: int = 1
    target_limits: tuple[TargetLimit, ...] = ()

    def limit_of(self, target: str) -> TargetLimit | None:
        """Give what limits a target, by its origin or ARN."""
        return next((limit for limit in self.target_limits if limit.target == target), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTenant:
    """What a listing shows of a tenant."""

    tenant: TenantId
    quotas: Quotas


def quotas_of(registered: Tenant | None) -> Quotas:
    """Give a tenant's quotas; the default ones where it is not registered."""
    return DEFAULT_QUOTAS if registered is None else registered.quotas


class UnknownTenant(Rejected):
    """No tenant of this id is registered."""

    def __init__(self, tenant: TenantId) -> None:
        super().__init__("tenant", tenant, "the id of a registered tenant")
        self.tenant = tenant


class ScheduleQuotaReached(Rejected):
    """The tenant has all the schedules that its registration allows."""

    def __init__(self, tenant: TenantId, schedules_max: int) -> None:
        super().__init__("schedules_max", schedules_max, "fewer schedules than that; cancel some")
        self.tenant, self.schedules_max = tenant, schedules_max


def external_id_of(environment: str, tenant: TenantId) -> str:
    """Give what a tenant's role must ask for, so that no other tenant can have it assumed.

    No caller chooses it: that is what keeps Puntual from being a confused deputy.
    """
    return f"puntual/{environment}/{tenant}"


def checked_list(field: str, arns: tuple[str, ...], *, at_most: int) -> tuple[str, ...]:
    """Give a registration's list, each once and in order; raises `Rejected`."""
    if len(arns) > at_most:
        raise Rejected(field, f"{len(arns)} ARNs", f"at most {at_most}")
    return tuple(dict.fromkeys(arns))


def check_role_arn(field: str, arn: str) -> None:
    """Check the ARN of a role that a registration is to list; raises `Rejected`."""
    if not _ROLE_ARN.fullmatch(arn):
        raise Rejected(field, arn, f"the ARN of a role whose name begins with {ROLE_NAME_PREFIX}")


def check_quotas(quotas: Quotas) -> None:
    """Check the quotas that a registration is to hold; raises `Rejected`."""
    _check_within("schedules_max", quotas.schedules_max, 0, SCHEDULES_MAX_LIMIT)
    # From 1, since what is over a rate of none would wait until its queue forgets it.
    if quotas.fires_per_minute_max is not None:
        _check_within(
            "fires_per_minute_max", quotas.fires_per_minute_max, 1, FIRES_PER_MINUTE_LIMIT
        )
    if quotas.running_max is not None:
        _check_within("running_max", quotas.running_max, 1, RUNNING_LIMIT)
    _check_within(
        "catch_ups_per_minute", quotas.catch_ups_per_minute, 1, CATCH_UPS_PER_MINUTE_LIMIT
    )
    _check_within("retries_per_minute", quotas.retries_per_minute, 1, RETRIES_PER_MINUTE_LIMIT)
    _check_within(
        "smallest_interval_seconds",
        quotas.smallest_interval // SECOND,
        SMALLEST_INTERVAL_LEAST // SECOND,
        SMALLEST_INTERVAL_LIMIT // SECOND,
    )
    _check_within("weight", quotas.weight, 1, WEIGHT_MAX)


def _check_within(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise Rejected(f"quotas.{name}", value, f"{least} to {most}")
