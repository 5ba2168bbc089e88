"""What a planner does with one cursor: pure, so that it can be replayed."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from puntual.domain.agenda import Cursor, cursor_at
from puntual.domain.expression import Rule
from puntual.domain.instant import MILLISECOND
from puntual.domain.occurrence import Occurrence, available_at_of
from puntual.domain.page import Planned
from puntual.domain.policies import Misfire, Policies
from puntual.domain.run import RunState, Span
from puntual.domain.schedule import Schedule, ScheduleVersion

NextFire = Callable[[Rule, datetime], datetime | None]
"""`Rule.next_fire`, or a memo of it: many schedules share a rule and an instant."""

LATE_LOOKS_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorPlan:
    """What to write for one cursor, in this order: spans, page, next cursor; then drop it.

    `accounted` is the last fire of a rule that ends here without a run, so that whoever drops
    the cursor completes the schedule (E11).
    """

    planned: tuple[Planned, ...] = ()
    spans: tuple[Span, ...] = ()
    next_cursor: Cursor | None = None
    accounted: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Owner:
    """The version that a cursor belongs to, and where its time ends."""

    cursor: Cursor
    rule: Rule
    policies: Policies
    until: datetime | None

    def available_at(self, fire: datetime) -> datetime:
        return available_at_of(self.occurrence(fire), self.policies.window)

    def occurrence(self, fire: datetime) -> Occurrence:
        return Occurrence(
            tenant=self.cursor.tenant,
            schedule=self.cursor.schedule,
            version=self.cursor.version,
            scheduled_for=fire,
        )

    def planned(self, fire: datetime) -> Planned:
        return Planned(
            occurrence=self.occurrence(fire),
            available_at=self.available_at(fire),
            misfire_after=self.policies.misfire.after,
            flexible=self.policies.window > timedelta(0),
        )

    def span(self, state: RunState, first: datetime, last: datetime, reason: str) -> Span:
        return Span(
            tenant=self.cursor.tenant,
            schedule=self.cursor.schedule,
            version=self.cursor.version,
            state=state,
            first=first,
            last=last,
            reason=reason,
        )

    def last_fire(self, at_most: datetime) -> datetime | None:
        """The last fire of this version at or before an instant, its end never passed."""
        if self.until is not None:
            at_most = min(at_most, self.until - MILLISECOND)
        return self.rule.last_fire(at_most)


def plan_cursor(
    cursor: Cursor,
    *,
    head: Schedule,
    ended: ScheduleVersion | None,
    now: datetime,
    next_fire: NextFire = Rule.next_fire,
) -> CursorPlan:
    """Decide what one cursor asks for.

    `ended` is the cursor's own version, read strongly, where the head has moved past it (P3).
    """
    if head.version == cursor.version:
        owner = _Owner(cursor=cursor, rule=head.rule, policies=head.policies, until=None)
    else:
        assert ended is not None
        assert ended.version == cursor.version
        owner = _Owner(cursor=cursor, rule=ended.rule, policies=ended.policies, until=ended.until)
        if ended.until is not None and cursor.scheduled_for >= ended.until:
            return CursorPlan()
        if cursor.version < head.min_valid_version:
            return _voided(owner)
    if now - cursor.available_at > owner.policies.misfire.after:
        return _late(owner, now=now, next_fire=next_fire)
    fire = cursor.scheduled_for
    return CursorPlan(
        planned=(owner.planned(fire),),
        next_cursor=_next_cursor(owner, next_fire(owner.rule, fire)),
    )


def _voided(owner: _Owner) -> CursorPlan:
    """A pause or cancel ended this version: what was still due under it is CANCELED (E8)."""
    assert owner.until is not None
    fire = owner.cursor.scheduled_for
    last = max(owner.last_fire(owner.until) or fire, fire)
    return CursorPlan(spans=(owner.span(RunState.CANCELED, fire, last, "voided"),))


def _late(owner: _Owner, *, now: datetime, next_fire: NextFire) -> CursorPlan:
    """Apply the misfire policy in one step, however many fires were missed."""
    fire, misfire = owner.cursor.scheduled_for, owner.policies.misfire
    late_last = max(_last_late(owner, now) or fire, fire)
    if misfire.policy is Misfire.SKIP:
        return _missed_through(owner, late_last, "skip", next_fire)
    latest = max(owner.last_fire(now) or late_last, late_last)
    too_late = misfire.max_lateness
    if too_late is not None and now - owner.available_at(latest) > too_late:
        return _missed_through(owner, latest, "max_lateness", next_fire)
    spans: tuple[Span, ...] = ()
    before = owner.last_fire(latest - MILLISECOND)
    if before is not None and before >= fire:
        spans = (owner.span(RunState.MISSED, fire, before, "fire_once"),)
    return CursorPlan(
        planned=(owner.planned(latest),),
        spans=spans,
        next_cursor=_next_cursor(owner, next_fire(owner.rule, latest)),
    )


def _last_late(owner: _Owner, now: datetime) -> datetime | None:
    """The last fire that is late, its jitter counted."""
    limit = now - owner.policies.misfire.after
    fire = owner.last_fire(limit - MILLISECOND)
    looks = 0
    while fire is not None and owner.available_at(fire) >= limit and looks < LATE_LOOKS_MAX:
        fire = owner.last_fire(fire - MILLISECOND)
        looks += 1
    return fire


def _missed_through(owner: _Owner, last: datetime, reason: str, next_fire: NextFire) -> CursorPlan:
    following = next_fire(owner.rule, last)
    return CursorPlan(
        spans=(owner.span(RunState.MISSED, owner.cursor.scheduled_for, last, reason),),
        next_cursor=_next_cursor(owner, following),
        accounted=last if following is None else None,
    )


def _next_cursor(owner: _Owner, fire: datetime | None) -> Cursor | None:
    if fire is None or (owner.until is not None and fire >= owner.until):
        return None
    return cursor_at(
        fire, key=owner.cursor.key, version=owner.cursor.version, policies=owner.policies
    )


def is_last_fire(head: Schedule, version: int, fire: datetime, next_fire: NextFire) -> bool:
    """Tell whether an active schedule of this version ends with this fire (E11)."""
    return head.version == version and next_fire(head.rule, fire) is None
