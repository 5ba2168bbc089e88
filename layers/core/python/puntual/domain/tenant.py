"""Who owns schedules, and the names they may carry."""

import re
from dataclasses import dataclass
from typing import NewType

from puntual.domain.errors import Rejected

TenantId = NewType("TenantId", str)
ScheduleId = NewType("ScheduleId", str)

ID_ALLOWED = "1 to 64 of A-Z a-z 0-9 . _ -, but not '.' or '..'"
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)

SCHEDULES_MAX_DEFAULT = 100_000
SCHEDULES_MAX_LIMIT = 20_000_000
TARGETS_MAX = 50
ROLES_MAX = 20
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
    return ScheduleId(_checked_id(field, value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A registered tenant: its quota, and the resources and roles that its targets may name.

    `key_generation` numbers the key that signs its webhooks.
    """

    tenant: TenantId
    schedules_max: int = SCHEDULES_MAX_DEFAULT
    schedules: int = 0
    targets: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    key_generation: int = 1


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
