"""Show a schedule as it stands."""

from dataclasses import dataclass
from datetime import datetime

from puntual.application.ports import Clock, Schedules
from puntual.domain.instant import MILLISECOND
from puntual.domain.rule_warnings import warnings_of
from puntual.domain.schedule import (
    FIRES_SHOWN,
    Schedule,
    ScheduleKey,
    ScheduleState,
    ScheduleVersion,
    UnknownSchedule,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSchedule:
    """A head with its version, as of an instant; its next fires come after that."""

    head: Schedule
    version: ScheduleVersion
    as_of: datetime

    @property
    def next_fires(self) -> tuple[datetime, ...]:
        """The first few fires; none but of an active schedule."""
        after: datetime | None = max(self.as_of, self.version.effective_from - MILLISECOND)
        fires: list[datetime] = []
        active = self.head.state is ScheduleState.ACTIVE
        while active and after is not None and len(fires) < FIRES_SHOWN:
            after = self.version.rule.next_fire(after)
            if after is not None:
                fires.append(after)
        return tuple(fires)

    @property
    def warnings(self) -> tuple[str, ...]:
        return warnings_of(self.version.rule, now=self.as_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowSchedule:
    schedules: Schedules
    clock: Clock

    def __call__(self, key: ScheduleKey) -> ShownSchedule:
        """Read head and version, strongly; raises `UnknownSchedule`."""
        head, version = standing(self.schedules, key)
        return ShownSchedule(head=head, version=version, as_of=self.clock.now())


def standing(schedules: Schedules, key: ScheduleKey) -> tuple[Schedule, ScheduleVersion]:
    """Read a head and the version that it stands for; raises `UnknownSchedule`."""
    head = schedules.head(key)
    if head is None:
        raise UnknownSchedule(key)
    version = schedules.version(key, head.version)
    assert version is not None, "a head and its version are written together"
    return head, version
