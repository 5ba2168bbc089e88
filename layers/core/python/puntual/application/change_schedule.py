"""Change a schedule's definition, whole or in part: a new version of it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from puntual.application.advance_schedule import AdvanceSchedule, Next
from puntual.application.ports import Tenants
from puntual.application.show_schedule import ShownSchedule
from puntual.domain.definition import Definition, Limits, version_of
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSchedule:
    tenants: Tenants
    advance: AdvanceSchedule
    limits: Limits

    def __call__(
        self, key: ScheduleKey, *, seen: int, revise: Revise, author: str
    ) -> ShownSchedule:
        """Write what `revise` makes of version `seen`; a paused schedule stays paused.

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

        return self.advance(key, seen=seen, decide=decide)
