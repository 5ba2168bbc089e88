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
class Step:
    """What stands after a decision, or would stand, and the version that it was made on."""

    replaced: ScheduleVersion
    shown: ShownSchedule


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
        return self.step(key, seen=seen, decide=decide).shown

    def step(
        self, key: ScheduleKey, *, seen: int | None, decide: Decide, dry_run: bool = False
    ) -> Step:
        """Do the same; a dry run decides and raises as a real one, but writes nothing at all."""
        for _ in range(TRIES_MAX):
            head, version = standing(self.schedules, key)
            if seen is not None and seen != head.version:
                raise StaleVersion(key, seen=seen, current=head.version)
            now = self.clock.now()
            following = decide(head, version, now)
            next_head, next_version = following or (head, version)
            if following is None or dry_run or self._advance(*following):
                shown = ShownSchedule(head=next_head, version=next_version, as_of=now)
                return Step(replaced=version, shown=shown)
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
