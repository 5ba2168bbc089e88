"""Resume a paused schedule, from now on."""

from dataclasses import dataclass
from datetime import datetime

from puntual.application.advance_schedule import AdvanceSchedule, Next
from puntual.application.show_schedule import ShownSchedule
from puntual.domain.definition import Limits
from puntual.domain.schedule import (
    Schedule,
    ScheduleKey,
    ScheduleState,
    ScheduleVersion,
    resumed,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeSchedule:
    advance: AdvanceSchedule
    limits: Limits

    def __call__(self, key: ScheduleKey, *, author: str, seen: int | None = None) -> ShownSchedule:
        """Resume; an active schedule stays as it is. Raises `NotResumable` for an ended one."""

        def decide(head: Schedule, version: ScheduleVersion, now: datetime) -> Next | None:
            if head.state is ScheduleState.ACTIVE:
                return None
            tzdata = self.limits.tzdata
            return resumed(head, version, now=now, author=author, tzdata=tzdata)

        return self.advance(key, seen=seen, decide=decide)
