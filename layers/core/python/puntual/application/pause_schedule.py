"""Pause a schedule: nothing whose check comes after the answer starts any more (P3)."""

from dataclasses import dataclass
from datetime import datetime

from puntual.application.advance_schedule import AdvanceSchedule, Next
from puntual.application.show_schedule import ShownSchedule
from puntual.domain.schedule import (
    Schedule,
    ScheduleKey,
    ScheduleState,
    ScheduleVersion,
    paused,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseSchedule:
    advance: AdvanceSchedule

    def __call__(self, key: ScheduleKey, *, author: str, seen: int | None = None) -> ShownSchedule:
        """Pause; a paused schedule stays as it is. Raises `NotPausable` for an ended one."""

        def decide(head: Schedule, version: ScheduleVersion, now: datetime) -> Next | None:
            if head.state is ScheduleState.PAUSED:
                return None
            return paused(head, version, now=now, author=author)

        return self.advance(key, seen=seen, decide=decide)
