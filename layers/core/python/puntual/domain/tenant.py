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
TARGET_QUEUES_MAX = 50


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
    """A registered tenant: its quota, and the queues it may name as targets."""

    tenant: TenantId
    schedules_max: int = SCHEDULES_MAX_DEFAULT
    schedules: int = 0
    target_queues: tuple[str, ...] = ()


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


def target_queues_of(arns: tuple[str, ...]) -> tuple[str, ...]:
    """Check a registration's queues, each once and in order; raises `Rejected`."""
    if len(arns) > TARGET_QUEUES_MAX:
        raise Rejected("target_queues", f"{len(arns)} queues", f"at most {TARGET_QUEUES_MAX}")
    return tuple(dict.fromkeys(arns))
