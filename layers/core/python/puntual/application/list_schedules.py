"""List a tenant's schedules by id."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from puntual.application.ports import Clock, Schedules, Tenants
from puntual.domain.errors import Rejected
from puntual.domain.labels import LabelFilter
from puntual.domain.page_token import ForeignPageToken, page_token, position_of
from puntual.domain.schedule import Schedule, ScheduleState
from puntual.domain.tenant import ScheduleId, TenantId, UnknownTenant, schedule_id_of

_PREFIX = re.compile(r"[A-Za-z0-9._-]{0,64}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSchedules:
    schedules: tuple[Schedule, ...]
    page_token: str | None
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSchedules:
    schedules: Schedules
    tenants: Tenants
    clock: Clock

    def __call__(
        self,
        tenant: TenantId,
        *,
        prefix: str,
        state: ScheduleState | None,
        limit: int,
        token: str | None,
        labels: Sequence[LabelFilter] = (),
    ) -> ListedSchedules:
        """Give a page; it may be short, or empty, while there is a token. Raises `Rejected`."""
        check_prefix(prefix)
        listing = ("schedules", tenant, prefix, state or "", *(label.text for label in labels))
        after = None if token is None else schedule_after(token, listing=listing)
        if self.tenants.get(tenant) is None:
            raise UnknownTenant(tenant)
        page = self.schedules.listed(
            tenant, prefix=prefix, state=state, after=after, limit=limit, labels=labels
        )
        return ListedSchedules(
            schedules=page.schedules,
            page_token=page_token((page.after,), listing=listing) if page.after else None,
            as_of=self.clock.now(),
        )


def check_prefix(prefix: str) -> None:
    """Refuse what no id begins with; raises `Rejected`."""
    if not _PREFIX.fullmatch(prefix):
        raise Rejected("prefix", prefix, "up to 64 of A-Z a-z 0-9 . _ -")


def schedule_after(token: str, *, listing: tuple[str, ...]) -> ScheduleId:
    """Read the id that a page ended with; raises `ForeignPageToken`."""
    (after,) = position_of(token, listing=listing, length=1)
    try:
        return schedule_id_of(after)
    except Rejected as error:
        raise ForeignPageToken(token) from error
