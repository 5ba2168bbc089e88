"""What a planner does with a recovery cursor: slices of a missed range, oldest first (P8, E9)."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from puntual.domain.agenda import Cursor, Recovery
from puntual.domain.catch_up import CaughtUp, caught_up
from puntual.domain.expression import NextFire, Rule
from puntual.domain.instant import MILLISECOND, MINUTE, minute_of
from puntual.domain.page import Planned
from puntual.domain.planning import Owner, missed_spans, owner_of
from puntual.domain.run import RunState, Span
from puntual.domain.schedule import Schedule, ScheduleVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """So many of a slice's fires may run: the first one from `first_at` on, `every` so often."""

    count: int
    first_at: datetime
    every: timedelta

    def cut(self, at_most: int) -> "tuple[Granted, Granted]":
        """Give the first of them, at most so many, and those that are left."""
        count = min(self.count, at_most)
        rest = self.first_at + count * self.every
        return replace(self, count=count), replace(self, count=self.count - count, first_at=rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The fires that a recovery cursor asks for now, each for a token of its tenant's."""

    owner: Owner
    parts: CaughtUp
    fires: tuple[datetime, ...]
    voided: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicePlan:
    """What to write for a recovery cursor, in this order: spans, pages, next cursor; then drop it.

    `accounted` is the last fire of a rule that ends here without a run (E11).
    """

    planned: tuple[Planned, ...] = ()
    spans: tuple[Span, ...] = ()
    next_cursor: Cursor | None = None
    accounted: datetime | None = None


def slice_of(
    cursor: Cursor,
    *,
    head: Schedule,
    ended: ScheduleVersion | None,
    now: datetime,
    at_most: int,
    next_fire: NextFire = Rule.next_fire,
) -> Slice:
    """Find the next slice, of at most so many fires; none of a version that was voided.

    `ended` is as for `plan_cursor`.
    """
    recovery = _recovery_of(cursor)
    owner = owner_of(cursor, head=head, ended=ended, next_fire=next_fire)
    parts = caught_up(
        owner.fires,
        owner.policies.misfire,
        first=cursor.scheduled_for,
        last=recovery.last,
        left=recovery.left,
        now=now,
    )
    voided = cursor.version < head.min_valid_version
    fires: tuple[datetime, ...] = ()
    if parts.runs is not None and not voided:
        first, last = parts.runs
        fires = owner.fires.rule.fires_between(first - MILLISECOND, last, limit=at_most)
    return Slice(owner=owner, parts=parts, fires=fires, voided=voided)


def plan_slice(found: Slice, *, granted: Granted, now: datetime) -> SlicePlan:
    """Plan those fires of a slice that are granted; the next one is due in the next minute."""
    owner, parts = found.owner, found.parts
    if found.voided:
        return _voided(found)
    runs = found.fires[: granted.count]
    planned = tuple(
        replace(owner.planned(fire), caught_up_at=granted.first_at + place * granted.every)
        for place, fire in enumerate(runs)
    )
    following = _following(found, granted.count)
    if following is None:
        return SlicePlan(
            planned=planned,
            spans=missed_spans(owner, too_late=parts.too_late, beyond=parts.beyond),
            accounted=_accounted(found),
        )
    recovery = _recovery_of(owner.cursor)
    return SlicePlan(
        planned=planned,
        # What lies beyond the limit has had its span since the range was found.
        spans=missed_spans(owner, too_late=parts.too_late, beyond=None),
        next_cursor=replace(
            owner.cursor,
            scheduled_for=following,
            available_at=minute_of(now) + MINUTE,
            recovery=replace(recovery, left=recovery.left - len(runs)),
        ),
    )


def _voided(found: Slice) -> SlicePlan:
    """A pause or cancel ended the version: what was still to run is CANCELED in one span (E8)."""
    too_late, runs, _ = found.parts
    first, last = too_late or runs, runs or too_late
    if first is None or last is None:
        return SlicePlan()
    span = found.owner.span(RunState.CANCELED, first.first, last.last, "voided")
    return SlicePlan(spans=(span,))


def _following(found: Slice, granted: int) -> datetime | None:
    """Give the first fire of the next slice."""
    if granted < len(found.fires):
        return found.fires[granted]
    if not found.fires or found.parts.runs is None:
        return None
    following = found.owner.fires.fire_after(found.fires[-1])
    return following if following is not None and following <= found.parts.runs.last else None


def _accounted(found: Slice) -> datetime | None:
    """Give the rule's last fire if it lies in this range and does not run."""
    last = _recovery_of(found.owner.cursor).last
    missed = found.parts.beyond is not None or found.parts.runs is None
    return last if missed and found.owner.fires.fire_after(last) is None else None


def _recovery_of(cursor: Cursor) -> Recovery:
    assert cursor.recovery is not None
    return cursor.recovery
