"""Replay one occurrence of a schedule, whatever it has ended as."""

from dataclasses import dataclass

from puntual.application.ports import Clock, Schedules
from puntual.application.reopen_occurrence import ReopenOccurrence
from puntual.application.show_occurrence import ShowOccurrence
from puntual.domain.occurrence import ref_of
from puntual.domain.replay import ContendedOccurrence, NotReplayable, run_in
from puntual.domain.request import Request
from puntual.domain.run import Run
from puntual.domain.schedule import ScheduleKey, UnknownSchedule

TRIES_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOccurrence:
    schedules: Schedules
    show: ShowOccurrence
    reopen: ReopenOccurrence
    clock: Clock

    def __call__(
        self, key: ScheduleKey, ref: str, *, force: bool, request: Request | None = None
    ) -> Run:
        """Open a round that may begin at once; gives its row.

        A `request` that opened a round already opens no other. Raises `NotReplayable`,
        `ContendedOccurrence`, `UnknownSchedule`, `UnknownOccurrence`, `Rejected`.
        """
        mark = request.mark if request else ""
        for _ in range(TRIES_MAX):
            run = run_in(self.show(key, ref).entry, ref, self.clock.now())
            if mark in run.requests:
                return run
            head = self.schedules.head(key)
            if head is None:
                raise UnknownSchedule(key)
            why = self.reopen.why_not(run, head, force=force)
            if why is not None:
                raise NotReplayable(ref_of(run.occurrence.key.run), why)
            replayed = self.reopen(run, head, not_before=self.clock.now(), request=mark)
            if replayed is not None:
                return replayed
        raise ContendedOccurrence(ref)
