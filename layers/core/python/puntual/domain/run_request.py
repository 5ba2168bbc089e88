"""What callers ask to run beside the rule: a manual run, or a backfill of past instants."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import batched
from typing import NamedTuple

from puntual.domain.budget import time_of
from puntual.domain.instant import minute_of, rounded_to_millisecond
from puntual.domain.occurrence import Kind, Occurrence
from puntual.domain.page import OCCURRENCES_PER_PAGE_MAX, Page, Planned
from puntual.domain.policies import MISFIRE_AFTER_DEFAULT
from puntual.domain.run import RUN_AGE_MAX, Run, RunState
from puntual.domain.schedule import ScheduleKey
from puntual.domain.tenant import ScheduleId, TenantId


class OwnedFire(NamedTuple):
    """An instant and the version that it belongs to, whose target and payload it runs with."""

    version: int
    scheduled_for: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a backfill found: how many instants `ran` or run, and how many may still do so.

    `rest_from` is the instant from which it did not look any more, if it met a bound.
    """

    looked_at: int
    ran: int
    pending: int
    rest_from: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """Occurrences that were asked for at once: the same ones, however often that is repeated.

    `fingerprint` tells what was asked for, and is empty where nobody can repeat it. The first
    occurrence is available at `available_from`, the others follow at the rate. All are judged by
    `authorised_version`, the head's when they were asked for (P3).
    """

    tenant: TenantId
    schedule: ScheduleId
    id: str
    fingerprint: str
    kind: Kind
    authorised_version: int
    asked_at: datetime
    fires: tuple[OwnedFire, ...]
    available_from: datetime
    per_minute: int = 1
    survey: Survey | None = None

    @property
    def key(self) -> ScheduleKey:
        return ScheduleKey(tenant=self.tenant, schedule=self.schedule)

    @property
    def planned(self) -> tuple[Planned, ...]:
        return tuple(self._planned(number, fire) for number, fire in enumerate(self.fires))

    def _planned(self, number: int, fire: OwnedFire) -> Planned:
        occurrence = Occurrence(
            tenant=self.tenant,
            schedule=self.schedule,
            version=fire.version,
            scheduled_for=fire.scheduled_for,
            kind=self.kind,
            request_id=self.id,
        )
        return Planned(
            occurrence=occurrence,
            available_at=rounded_to_millisecond(
                self.available_from + time_of(number, self.per_minute)
            ),
            misfire_after=MISFIRE_AFTER_DEFAULT,
            authorised_version=self.authorised_version,
        )

    def pages(self, shard: int, *, written_at: datetime) -> Iterator[Page]:
        """Give the pages that take them to their lane; the same ones whenever they are written."""
        for planned in batched(self.planned, OCCURRENCES_PER_PAGE_MAX, strict=False):
            bucket = minute_of(planned[0].available_at)
            yield Page(shard=shard, bucket=bucket, planned=planned, written_at=written_at)

    def may_be_on_its_way(self, now: datetime) -> bool:
        """Tell whether to send it again: later the ledger may have forgotten that it ran."""
        return now - self.asked_at <= RUN_AGE_MAX


def asked_run(planned: Planned) -> Run:
    """Give the row of an occurrence that was asked for and that nobody has claimed yet."""
    return Run(
        occurrence=planned.occurrence,
        state=RunState.RETRY_WAIT,
        available_at=planned.available_at,
        not_before=planned.available_at,
        authorised_version=planned.authorised_version,
    )
