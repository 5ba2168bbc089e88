"""Change a schedule's definition, whole or in part: a new version of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from puntual.application.advance_schedule import AdvanceSchedule, Next
from puntual.application.ports import Tenants
from puntual.application.show_schedule import ShownSchedule
from puntual.domain.definition import Definition, Limits, version_of
from puntual.domain.errors import Rejected
from puntual.domain.expression import Rule, program_of
from puntual.domain.fire_changes import FireChanges, fire_changes
from puntual.domain.instant import MILLISECOND
from puntual.domain.rule_warnings import unsaved_warnings
from puntual.domain.schedule import (
    Schedule,
    ScheduleEnded,
    ScheduleKey,
    ScheduleState,
    ScheduleVersion,
    edited,
    effective_from_of,
)
from puntual.domain.tenant import UnknownTenant

Revise = Callable[[ScheduleVersion], Definition]
"""Gives the new definition from the version that stands; may raise `Rejected`."""

CHANGES_SPAN = timedelta(days=90)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSchedule:
    """A schedule with its new version, which a dry run has not written."""

    replaced: ScheduleVersion
    shown: ShownSchedule
    dry_run: bool

    @property
    def rule_changed(self) -> bool:
        return self.replaced.rule != self.shown.version.rule

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know of the new version; of a dry run also that a new pace has not begun."""
        rule = self.shown.version.rule
        unsaved = self.dry_run and rule.anchor != self.replaced.rule.anchor
        return (*(unsaved_warnings(rule) if unsaved else ()), *self.shown.warnings)

    @property
    def changes(self) -> FireChanges:
        """What the rules do to the fires of the next 90 days; a paused schedule's, if resumed."""
        version = self.shown.version
        start = version.effective_from
        old = self.replaced.rule
        if not _can_fire(old):
            # As if it had ended: what is written already must be answered all the same.
            old = replace(version.rule, end_at=start - MILLISECOND)
        return fire_changes(old, version.rule, start=start, span=CHANGES_SPAN)


def _can_fire(rule: Rule) -> bool:
    """Tell whether a stored rule still is one: its zone may be gone from the zone data."""
    try:
        program_of(rule)
    except Rejected:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSchedule:
    tenants: Tenants
    advance: AdvanceSchedule
    limits: Limits

    def __call__(
        self, key: ScheduleKey, *, seen: int, revise: Revise, author: str, dry_run: bool = False
    ) -> ChangedSchedule:
        """Write what `revise` makes of version `seen`; a paused schedule stays paused.

        A dry run makes every check and answers what would come, but writes nothing.
        Raises `UnknownTenant`, `UnknownSchedule`, `StaleVersion`, `ScheduleEnded`, `Rejected`.
        """
        tenant = self.tenants.get(key.tenant)
        if tenant is None:
            raise UnknownTenant(key.tenant)

        def decide(head: Schedule, version: ScheduleVersion, now: datetime) -> Next | None:
            if head.state is ScheduleState.CANCELED:
                raise ScheduleEnded(key)
            proposed = version_of(
                revise(version),
                key=key,
                tenant=tenant,
                limits=self.limits,
                effective_from=effective_from_of(head, now),
                author=author,
                previous=version,
            )
            return edited(head, proposed)

        step = self.advance.step(key, seen=seen, decide=decide, dry_run=dry_run)
        return ChangedSchedule(replaced=step.replaced, shown=step.shown, dry_run=dry_run)
