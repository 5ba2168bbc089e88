"""Cancel a schedule for good, and say what is still running, finished or already out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from puntual.application.advance_schedule import AdvanceSchedule, Next
from puntual.application.derive_fires import AFTER_ALL_SUFFIXES, planned_fires_of
from puntual.application.ports import Ledger, Schedules, Shards
from puntual.application.show_schedule import ShownSchedule
from puntual.domain.instant import MILLISECOND
from puntual.domain.policies import WINDOW_MAX
from puntual.domain.run import Note, Run, Span
from puntual.domain.schedule import (
    Schedule,
    ScheduleKey,
    ScheduleState,
    ScheduleVersion,
    canceled,
)
from puntual.domain.timeline import Fire, covers, run_of

ROWS_READ_MAX = 200
FINISHED_SHOWN = 5
OUT_SHOWN_MAX = 100
OUT_VERSIONS_MAX = 20
OUT_LOOK_BACK = timedelta(hours=1)
"""How far before the cancel fires are looked for that are due and not yet claimed."""

BEFORE_ALL_KEYS = "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class CanceledSchedule:
    """A canceled schedule, and what the cancel met, from the newest `ROWS_READ_MAX` rows.

    `running` have not ended: their attempt is live or lost, or they wait for a retry. The cancel
    lets live attempts end and lets no other start. `already_out` are on their way to an executor,
    planned or asked for, which will record them as CANCELED. `complete` is False where there may
    be more than is shown.
    """

    shown: ShownSchedule
    running: tuple[Run, ...]
    finished: tuple[Run, ...]
    already_out: tuple[Fire | Run, ...]
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelSchedule:
    schedules: Schedules
    ledger: Ledger
    shards: Shards
    advance: AdvanceSchedule

    def __call__(
        self, key: ScheduleKey, *, author: str, seen: int | None = None
    ) -> CanceledSchedule:
        """Cancel; a canceled schedule stays as it is and is reported on again.

        Raises `UnknownSchedule`, `StaleVersion`.
        """

        def decide(head: Schedule, version: ScheduleVersion, now: datetime) -> Next | None:
            if head.state is ScheduleState.CANCELED:
                return None
            return canceled(head, version, now=now, author=author)

        shown = self.advance(key, seen=seen, decide=decide)
        rows = self.ledger.between(
            key,
            first=BEFORE_ALL_KEYS,
            last=AFTER_ALL_SUFFIXES,
            limit=ROWS_READ_MAX,
            newest_first=True,
        )
        runs = [row for row in rows if isinstance(row, Run)]
        fires, all_versions = self._already_out(shown, rows)
        out: list[Fire | Run] = [*fires, *(run for run in runs if run.is_asked)]
        finished = [run for run in runs if run.state.is_terminal]
        return CanceledSchedule(
            shown=shown,
            running=tuple(run for run in runs if not (run.state.is_terminal or run.is_asked)),
            finished=tuple(finished[:FINISHED_SHOWN]),
            already_out=tuple(out[:OUT_SHOWN_MAX]),
            complete=all_versions and len(rows) < ROWS_READ_MAX and len(out) <= OUT_SHOWN_MAX,
        )

    def _already_out(
        self, shown: ShownSchedule, rows: Sequence[Run | Span | Note]
    ) -> tuple[list[Fire], bool]:
        """Give the fires of voided versions that were due or planned and that no row tells of.

        False beside them if versions that may have more were not looked at.
        """
        head = shown.head
        planned_through = self._planned_through(head)
        oldest = head.effective_from - OUT_LOOK_BACK
        accounted = {run_of(row) for row in rows}
        spans = [row for row in rows if isinstance(row, Span)]
        out: list[Fire] = []
        all_versions = False
        for number in range(head.version - 1, 0, -1)[:OUT_VERSIONS_MAX]:
            version = self.schedules.version(head.key, number)
            assert version is not None, "versions are never deleted"
            fires = self._out_of(version, head, oldest=oldest, planned_through=planned_through)
            out.extend(fire for fire in fires if not _is_accounted(fire, accounted, spans))
            # The version before this one, if any, ended where this one began.
            if number == 1 or version.effective_from + WINDOW_MAX < oldest:
                all_versions = True
                break
        return sorted(out, key=lambda fire: (fire.run, fire.occurrence.version)), all_versions

    def _out_of(
        self,
        version: ScheduleVersion,
        head: Schedule,
        *,
        oldest: datetime,
        planned_through: datetime,
    ) -> list[Fire]:
        """Give the fires of a version that came due after `oldest`, or may have been planned."""
        assert version.until is not None, "only the head's version has no end"
        # What was due before the end is still planned after it; the rest only was before.
        ahead = min(planned_through, version.until + self.advance.announced.horizon)
        last = version.rule.last_fire(oldest) if version.policies.window else None
        fires = planned_fires_of(
            version,
            head=head,
            # Of the fires before, only the window of the last one may reach so far (P10).
            after=oldest if last is None else last - MILLISECOND,
            through=planned_through,
            limit=OUT_SHOWN_MAX + 2,
        )
        return [
            fire
            for fire in fires
            if oldest < fire.available_at <= planned_through
            and (fire.occurrence.scheduled_for < version.until or fire.available_at <= ahead)
        ]

    def _planned_through(self, head: Schedule) -> datetime:
        """Give how far a planner may have come before the cancel."""
        shard = self.shards.get(self.advance.announced.shard(head.key))
        horizon = head.effective_from + self.advance.announced.horizon
        return head.effective_from if shard is None else min(shard.planned_through, horizon)


def _is_accounted(fire: Fire, accounted: set[str], spans: Sequence[Span]) -> bool:
    note = f"{fire.run}#v{fire.occurrence.version}"
    return fire.run in accounted or note in accounted or any(covers(span, fire) for span in spans)
