"""Derive a schedule's fires from its versions and time rules alone (SCHEDULED, ENQUEUED)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from puntual.application.ports import Schedules
from puntual.domain.instant import MILLISECOND, text_of
from puntual.domain.schedule import Schedule, ScheduleState, ScheduleVersion
from puntual.domain.timeline import Fire

VERSIONS_PER_PAGE_MAX = 20
VERSION_SEARCH_STEPS_MAX = 40
"""Halves a trillion versions down to one."""

AFTER_ALL_SUFFIXES = "~"
"""Sorts behind whatever a run key has beside its instant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """Fires in order; none is left out whose run key is at most `complete_through`."""

    fires: tuple[Fire, ...]
    complete_through: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeriveFires:
    """Version n owns [effective_from, until); only active ones have fires."""

    schedules: Schedules
    retention: timedelta

    def __call__(
        self, head: Schedule, *, after: datetime, through: datetime, limit: int, now: datetime
    ) -> Derived:
        """Give up to `limit` fires in (after, through], none older than what the ledger keeps."""
        after = max(after, now - self.retention)
        fires: list[Fire] = []
        version = self._owner(head, after)
        for _ in range(VERSIONS_PER_PAGE_MAX):
            fires.extend(
                fires_of(version, head=head, after=after, through=through, limit=limit - len(fires))
            )
            if len(fires) >= limit:
                return Derived(fires=tuple(fires), complete_through=fires[-1].run)
            following = self._following(version, head, through)
            if following is None:
                return _derived(fires, through)
            version = following
        return _derived(fires, version.effective_from - MILLISECOND)

    def _owner(self, head: Schedule, instant: datetime) -> ScheduleVersion:
        """Give the version that owns an instant, or the first where none is so old."""
        lowest, highest = 1, head.version
        if head.effective_from <= instant:
            lowest = highest
        for _ in range(VERSION_SEARCH_STEPS_MAX):
            if lowest >= highest:
                break
            middle = (lowest + highest + 1) // 2
            if self._version(head, middle).effective_from <= instant:
                lowest = middle
            else:
                highest = middle - 1
        return self._version(head, lowest)

    def _following(
        self, version: ScheduleVersion, head: Schedule, through: datetime
    ) -> ScheduleVersion | None:
        if version.version >= head.version or version.until is None or version.until > through:
            return None
        return self._version(head, version.version + 1)

    def _version(self, head: Schedule, number: int) -> ScheduleVersion:
        version = self.schedules.version(head.key, number)
        assert version is not None, "versions are never deleted"
        return version


def fires_of(
    version: ScheduleVersion, *, head: Schedule, after: datetime, through: datetime, limit: int
) -> list[Fire]:
    """Give up to `limit` of the fires that a version owns in (after, through]."""
    if version.until is not None:
        through = min(through, version.until - MILLISECOND)
    return planned_fires_of(version, head=head, after=after, through=through, limit=limit)


def planned_fires_of(
    version: ScheduleVersion, *, head: Schedule, after: datetime, through: datetime, limit: int
) -> list[Fire]:
    """Give up to `limit` fires in (after, through] that a planner may have planned for a version.

    Planned ahead, some may lie behind the version's end.
    """
    after = max(after, version.effective_from - MILLISECOND)
    if version.state is not ScheduleState.ACTIVE or after >= through or limit <= 0:
        return []
    voided = version.version < head.min_valid_version
    return [
        _fire(version, instant, voided=voided)
        for instant in version.rule.fires_between(after, through, limit=limit)
    ]


def _fire(version: ScheduleVersion, instant: datetime, *, voided: bool) -> Fire:
    return Fire(
        occurrence=version.fires.occurrence(instant),
        available_at=version.fires.available_at(instant),
        voided=voided,
    )


def _derived(fires: list[Fire], through: datetime) -> Derived:
    complete = text_of(through) + AFTER_ALL_SUFFIXES
    return Derived(fires=tuple(fires), complete_through=complete)
