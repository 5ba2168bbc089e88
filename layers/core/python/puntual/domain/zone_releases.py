"""Which releases of the zone data stored cursors may follow: the deployed one, and former ones."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from puntual.domain.errors import Conflict
from puntual.domain.instant import text_of

FORMER_PLANNERS_GONE_AFTER = timedelta(minutes=15)
"""A planner's pass of ten minutes that began before a deployment, and the deployment itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasesInUse:
    """`current` is deployed, as far as is known, since `since`.

    `former` were deployed before it and since schedules were last re-planned, also for a minute:
    their planners have moved cursors on. A release that is deployed again is no former one.
    """

    current: str
    since: datetime
    former: frozenset[str] = field(default=frozenset())

    @property
    def former_gone_at(self) -> datetime:
        """From here on no cursor is written by the rules of a former release."""
        return self.since + FORMER_PLANNERS_GONE_AFTER

    def is_behind(self, deployed: str) -> bool:
        """Tell whether cursors may follow other rules than those that are deployed."""
        return bool(self.former) or self.current != deployed


class FormerPlannersAtWork(Conflict):
    """A planner of the former release may still write cursors."""

    def __init__(self, until: datetime) -> None:
        super().__init__(
            f"planners of the former release may be at work until {text_of(until)}: "
            "re-plan after that"
        )
        self.until = until


class OvertakenRun(Conflict):
    """The token belongs to another run of planning anew than the one that could go on now."""

    def __init__(self) -> None:
        super().__init__(
            "this run cannot go on: zone data were deployed anew since its last slice, or its "
            "token is of another run; run it again from the start"
        )


def with_deployed(seen: ReleasesInUse | None, deployed: str, *, now: datetime) -> ReleasesInUse:
    """Give what is in use once `deployed` is known to be."""
    if seen is None:
        return ReleasesInUse(current=deployed, since=now)
    if seen.current == deployed:
        return seen
    return ReleasesInUse(
        current=deployed, since=now, former=(seen.former | {seen.current}) - {deployed}
    )
