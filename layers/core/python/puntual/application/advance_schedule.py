"""Write a schedule's next version: what edits, pauses, resumes and cancels have in common."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from puntual.application.announced import Announced
from puntual.application.ports import Clock, Schedules
from puntual.application.show_schedule import ShownSchedule, standing
from puntual.domain.agenda import first_cursor
from puntual.domain.schedule import (
    ContendedSchedule,
    Schedule,
    ScheduleKey,
    ScheduleVersion,
    StaleVersion,
)

TRIES_MAX = 5

Next = tuple[Schedule, ScheduleVersion]
Decide = Callable[[Schedule, ScheduleVersion, datetime], Next | None]
"""Gives the next head and version from the standing ones and now; None if nothing is to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvanceSchedule:
    schedules: Schedules
    announced: Announced
    clock: Clock

    def __call__(self, key: ScheduleKey, *, seen: int | None, decide: Decide) -> ShownSchedule:
        """Decide on what stands and write it, again where another writer came first.

        `seen` is the version that the caller decided on, if it matters: raises `StaleVersion`
        where another stands. Raises `UnknownSchedule`, `ContendedSchedule` and what `decide` does.
        """
        for _ in range(TRIES_MAX):
            head, version = standing(self.schedules, key)
            if seen is not None and seen != head.version:
                raise StaleVersion(key, seen=seen, current=head.version)
            now = self.clock.now()
            following = decide(head, version, now)
            if following is None:
                return ShownSchedule(head=head, version=version, as_of=now)
            if self._advance(*following):
                return ShownSchedule(head=following[0], version=following[1], as_of=now)
        raise ContendedSchedule(key)

    def _advance(self, head: Schedule, version: ScheduleVersion) -> bool:
        """Write both and their first cursor, with E10 before and P1 after."""
        cursor = first_cursor(version)
        if cursor is None:
            shard = self.announced.shard(head.key)
        else:
            shard = self.announced.ensure_shard(head.key)
        if not self.schedules.advance(head, version, cursor, shard=shard):
            return False
        if cursor is not None:
            self.announced.plan_inline(cursor)
        return True
