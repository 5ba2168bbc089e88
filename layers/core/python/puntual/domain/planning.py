"""What a planner does with one cursor: pure, so that it can be replayed."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from puntual.domain.agenda import Cursor, Recovery, cursor_at
from puntual.domain.catch_up import BEYOND_LIMIT, Stretch, caught_up, oldest_of
from puntual.domain.expression import NextFire, Rule
from puntual.domain.instant import MILLISECOND, minute_of
from puntual.domain.occurrence import VersionFires
from puntual.domain.page import Planned
from puntual.domain.policies import Misfire, Policies
from puntual.domain.run import RunState, Span
from puntual.domain.schedule import Schedule, ScheduleVersion

PLACES_APART = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorPlan:
    """What to write for one cursor, in this order: spans, page, cursors; then drop it.

    `recovery` is the cursor of a missed range, beside the regular one that goes on (P8).
    `accounted` is the last fire of a rule that ends here without a run, so that whoever drops
    the cursor completes the schedule (E11).
    """

    planned: tuple[Planned, ...] = ()
    spans: tuple[Span, ...] = ()
    next_cursor: Cursor | None = None
    recovery: Cursor | None = None
    accounted: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The version that a cursor belongs to."""

    cursor: Cursor
    fires: VersionFires
    policies: Policies

    def planned(self, fire: datetime) -> Planned:
        return Planned(
            occurrence=self.fires.occurrence(fire),
            available_at=self.fires.available_at(fire),
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
    owner = owner_of(cursor, head=head, ended=ended, next_fire=next_fire)
    until = owner.fires.until
    if until is not None and cursor.scheduled_for >= until:
        return CursorPlan()
    if cursor.version < head.min_valid_version:
        return _voided(owner)
    if now - cursor.available_at > owner.policies.misfire.after:
        return _late(owner, now)
    fire = cursor.scheduled_for
    return CursorPlan(
        planned=(owner.planned(fire),),
        next_cursor=_next_cursor(owner, owner.fires.fire_after(fire)),
    )


def owner_of(
    cursor: Cursor, *, head: Schedule, ended: ScheduleVersion | None, next_fire: NextFire
) -> Owner:
    """Give the version that a cursor belongs to, as `plan_cursor` is told of it."""
    version, until = _own_version(cursor, head, ended)
    return Owner(
        cursor=cursor,
        fires=replace(version.fires, until=until, next_fire=next_fire),
        policies=version.policies,
    )


def _own_version(
    cursor: Cursor, head: Schedule, ended: ScheduleVersion | None
) -> tuple[Schedule | ScheduleVersion, datetime | None]:
    """Give what holds for a cursor, and until when: the head where it is of the same version."""
    if head.version == cursor.version:
        return head, None
    assert ended is not None
    assert ended.version == cursor.version
    return ended, ended.until


def _voided(owner: Owner) -> CursorPlan:
    """A pause or cancel ended this version: what was still due under it is CANCELED (E8)."""
    assert owner.fires.until is not None
    fire = owner.cursor.scheduled_for
    last = max(owner.fires.last_fire(owner.fires.until) or fire, fire)
    return CursorPlan(spans=(owner.span(RunState.CANCELED, fire, last, "voided"),))


def _late(owner: Owner, now: datetime) -> CursorPlan:
    """Apply the misfire policy in one step, however many fires were missed."""
    fire, misfire = owner.cursor.scheduled_for, owner.policies.misfire
    late_last = max(owner.fires.last_available(now - misfire.after - MILLISECOND) or fire, fire)
    if misfire.policy is Misfire.SKIP:
        return _missed_through(owner, late_last, "skip")
    if misfire.policy is Misfire.CATCH_UP:
        return _catching_up(owner, late_last, now)
    latest = max(owner.fires.last_available(now) or late_last, late_last)
    too_late = misfire.max_lateness
    if too_late is not None and now - owner.fires.available_at(latest) > too_late:
        return _missed_through(owner, latest, "max_lateness")
    spans: tuple[Span, ...] = ()
    before = owner.fires.last_fire(latest - MILLISECOND)
    if before is not None and before >= fire:
        spans = (owner.span(RunState.MISSED, fire, before, "fire_once"),)
    return CursorPlan(
        planned=(owner.planned(latest),),
        spans=spans,
        next_cursor=_next_cursor(owner, owner.fires.fire_after(latest)),
    )


def _catching_up(owner: Owner, last: datetime, now: datetime) -> CursorPlan:
    """Leave what runs to a recovery cursor, and go on behind the missed range at once (P8)."""
    misfire = owner.policies.misfire
    parts = caught_up(
        owner.fires,
        misfire,
        first=owner.cursor.scheduled_for,
        last=last,
        left=misfire.limit,
        now=now,
    )
    recovery = None
    if parts.runs is not None:
        recovery = replace(
            owner.cursor,
            scheduled_for=parts.runs.first,
            available_at=minute_of(now),
            recovery=Recovery(last=last, left=misfire.limit),
        )
    following = owner.fires.fire_after(last)
    return CursorPlan(
        spans=missed_spans(owner, too_late=parts.too_late, beyond=parts.beyond),
        next_cursor=_next_cursor(owner, following),
        recovery=recovery,
        accounted=last if following is None and recovery is None else None,
    )


def missed_spans(
    owner: Owner, *, too_late: Stretch | None, beyond: Stretch | None
) -> tuple[Span, ...]:
    """Give the spans of what `catch_up` leaves out."""
    _, why = oldest_of(owner.policies.misfire)
    parts = ((too_late, why), (beyond, BEYOND_LIMIT))
    return tuple(owner.span(RunState.MISSED, *part, why) for part, why in parts if part is not None)


def _missed_through(owner: Owner, last: datetime, reason: str) -> CursorPlan:
    following = owner.fires.fire_after(last)
    return CursorPlan(
        spans=(owner.span(RunState.MISSED, owner.cursor.scheduled_for, last, reason),),
        next_cursor=_next_cursor(owner, following),
        accounted=last if following is None else None,
    )


def _next_cursor(owner: Owner, fire: datetime | None) -> Cursor | None:
    until = owner.fires.until
    if fire is None or (until is not None and fire >= until):
        return None
    following = cursor_at(fire, owner.fires)
    # Zone rules that changed since this cursor was put may bring the next fire into its window.
    # Two at one place would be deleted together, and an earlier place may have been closed.
    place = max(following.available_at, owner.cursor.available_at + PLACES_APART)
    return replace(following, available_at=place)


def is_last_fire(head: Schedule, version: int, fire: datetime, next_fire: NextFire) -> bool:
    """Tell whether an active schedule of this version ends with this fire (E11)."""
    return head.version == version and next_fire(head.rule, fire) is None
