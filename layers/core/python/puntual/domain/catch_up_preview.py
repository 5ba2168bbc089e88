"""What each misfire policy would make of an outage, by the planner's own decisions."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from puntual.domain.agenda import cursor_at
from puntual.domain.budget import time_of
from puntual.domain.catch_up import caught_up
from puntual.domain.fire_bits import fire_bits
from puntual.domain.instant import MILLISECOND
from puntual.domain.planning import CursorPlan, plan_cursor
from puntual.domain.policies import Misfire
from puntual.domain.run import Span
from puntual.domain.schedule import Schedule, ScheduleState

OUTAGE_MAX = timedelta(days=31)
"""Longer than any fire may be late."""

RUNS_SHOWN_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """A range that would be MISSED, and how many fires it has."""

    first: datetime
    last: datetime
    count: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOutcome:
    """What one policy would do. `runs` late ones, the first of which are `fires`.

    `drains_in` is how long they take at the tenant's rate; `last` the latest of them.
    """

    policy: Misfire
    runs: int
    fires: tuple[datetime, ...]
    last: datetime | None
    missed: tuple[Missed, ...]
    drains_in: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUpPreview:
    """Of the fires after `start`, which is when the outage began, through `end`.

    The last `on_time` of them are not late yet, and run under every policy.
    """

    start: datetime
    end: datetime
    fires: int
    on_time: int
    per_minute: int
    outcomes: tuple[PolicyOutcome, ...]


def preview_of_outage(
    head: Schedule, *, start: datetime, end: datetime, per_minute: int, shown: int
) -> CatchUpPreview:
    """Say what would become of what a schedule missed from `start` to `end`, if it is active."""
    assert end - start <= OUTAGE_MAX
    first = None
    if head.state is ScheduleState.ACTIVE:
        first = head.rule.next_fire(max(start, head.effective_from - MILLISECOND))
    late = head.fires.last_available(end - head.policies.misfire.after - MILLISECOND)
    last = head.fires.last_available(end)
    has_fires = first is not None and last is not None and last >= first
    has_late = has_fires and late is not None and first is not None and late >= first
    fires = _count(head, first, last) if has_fires else 0
    missed = _count(head, first, late) if has_late else 0
    return CatchUpPreview(
        start=start,
        end=end,
        fires=fires,
        on_time=fires - missed,
        per_minute=per_minute,
        outcomes=tuple(
            _outcome(head, policy, first if has_late else None, end, per_minute, shown)
            for policy in Misfire
        ),
    )


def _outcome(
    head: Schedule,
    policy: Misfire,
    first: datetime | None,
    now: datetime,
    per_minute: int,
    shown: int,
) -> PolicyOutcome:
    plan = CursorPlan()
    if first is not None:
        misfire = replace(head.policies.misfire, policy=policy)
        head = replace(head, policies=replace(head.policies, misfire=misfire))
        plan = plan_cursor(cursor_at(first, head.fires), head=head, ended=None, now=now)
    runs, fires, last = _runs(head, plan, now, shown)
    return PolicyOutcome(
        policy=policy,
        runs=runs,
        fires=fires,
        last=last,
        missed=tuple(_missed(head, span) for span in plan.spans),
        drains_in=time_of(max(0, runs - 1), per_minute) if plan.recovery else timedelta(0),
    )


def _runs(
    head: Schedule, plan: CursorPlan, now: datetime, shown: int
) -> tuple[int, tuple[datetime, ...], datetime | None]:
    recovery = plan.recovery
    if recovery is None or recovery.recovery is None:
        fires = tuple(planned.occurrence.scheduled_for for planned in plan.planned)
        return len(fires), fires, max(fires, default=None)
    parts = caught_up(
        head.fires,
        head.policies.misfire,
        first=recovery.scheduled_for,
        last=recovery.recovery.last,
        left=recovery.recovery.left,
        now=now,
    )
    assert parts.runs is not None
    first, last = parts.runs
    fires = head.rule.fires_between(first - MILLISECOND, last, limit=shown)
    return _count(head, first, last), fires, last


def _missed(head: Schedule, span: Span) -> Missed:
    return Missed(
        first=span.first,
        last=span.last,
        count=_count(head, span.first, span.last),
        reason=span.reason,
    )


def _count(head: Schedule, first: datetime | None, last: datetime | None) -> int:
    assert first is not None
    assert last is not None
    return fire_bits(head.rule, first, last).count
