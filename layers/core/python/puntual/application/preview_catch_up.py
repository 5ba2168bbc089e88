"""Say what each misfire policy would make of an outage of a schedule; it writes nothing."""

from dataclasses import dataclass
from datetime import datetime

from puntual.application.ports import Clock, Schedules, Tenants
from puntual.domain.catch_up_preview import OUTAGE_MAX, CatchUpPreview, preview_of_outage
from puntual.domain.errors import Rejected
from puntual.domain.instant import in_calendar, text_of
from puntual.domain.schedule import Schedule, ScheduleKey, UnknownSchedule
from puntual.domain.tenant import quotas_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedCatchUp:
    head: Schedule
    preview: CatchUpPreview


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewCatchUp:
    schedules: Schedules
    tenants: Tenants
    clock: Clock

    def __call__(
        self, key: ScheduleKey, *, start: datetime, end: datetime | None, count: int
    ) -> PreviewedCatchUp:
        """Take an outage after `start` that ended at `end`, or now; shows up to `count` runs.

        By the standing version, also for what an older one owned. Only an active schedule misses
        anything. Raises `UnknownSchedule`, `Rejected`.
        """
        end = self.clock.now() if end is None else in_calendar("until", end)
        in_calendar("from", start)
        if end < start:
            raise Rejected("until", text_of(end), f"not before from, {text_of(start)}")
        if end - start > OUTAGE_MAX:
            allowed = f"not before {text_of(end - OUTAGE_MAX)}, {OUTAGE_MAX.days} days before until"
            raise Rejected("from", text_of(start), allowed)
        head = self.schedules.head(key)
        if head is None:
            raise UnknownSchedule(key)
        preview = preview_of_outage(
            head,
            start=start,
            end=end,
            per_minute=quotas_of(self.tenants.get(key.tenant)).catch_ups_per_minute,
            shown=count,
        )
        return PreviewedCatchUp(head=head, preview=preview)
