"""Preview the fires of a schedule as it stands, or as a resume would leave it."""

from dataclasses import dataclass
from datetime import datetime

from puntual.application.ports import Clock, Schedules
from puntual.application.preview_rule import PreviewedRule
from puntual.application.show_schedule import standing
from puntual.domain.definition import Limits
from puntual.domain.instant import MILLISECOND, in_calendar
from puntual.domain.preview import Preview, preview_of
from puntual.domain.rule_warnings import warnings_of
from puntual.domain.schedule import (
    Schedule,
    ScheduleKey,
    ScheduleState,
    ScheduleVersion,
    resumed,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedSchedule:
    head: Schedule
    previewed: PreviewedRule


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewSchedule:
    schedules: Schedules
    clock: Clock
    limits: Limits

    def __call__(
        self, key: ScheduleKey, *, after: datetime | None, count: int
    ) -> PreviewedSchedule:
        """Preview the standing version; raises `UnknownSchedule`, `Rejected`.

        A paused one is previewed as if it were resumed now. A canceled or completed one has no
        fires, so nothing is said of clock changes either.
        """
        now = self.clock.now()
        # As of an unsaved rule, a fire exactly now is still to come.
        after = now - MILLISECOND if after is None else in_calendar("after", after)
        head, version = standing(self.schedules, key)
        if head.state is ScheduleState.PAUSED:
            _, version = resumed(
                head, version, now=now, author=version.author, tzdata=self.limits.tzdata
            )
        fires = version.state is ScheduleState.ACTIVE
        return PreviewedSchedule(
            head=head,
            previewed=PreviewedRule(
                rule=version.rule,
                preview=_preview(version, after=after, count=count) if fires else _nothing(after),
                warnings=warnings_of(version.rule, now=after) if fires else (),
                tzdata=self.limits.tzdata,
            ),
        )


def _preview(version: ScheduleVersion, *, after: datetime, count: int) -> Preview:
    # A version owns no fire before its start.
    after = max(after, version.effective_from - MILLISECOND)
    return preview_of(
        version.rule, after=after, count=count, available_at=version.fires.available_at
    )


def _nothing(after: datetime) -> Preview:
    return Preview(fires=(), clock_changes=(), notes_through=after)
