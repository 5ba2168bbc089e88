"""What a lane carries: an occurrence that asks to be run."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from puntual.domain.lane import Lane
from puntual.domain.occurrence import Occurrence
from puntual.domain.page import Planned

PARK_MAX = timedelta(seconds=900)
"""The longest delay a queue gives to a message; longer waits hop."""

PARK_MIN = timedelta(seconds=1)

CLOCK_TOLERANCE = timedelta(seconds=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """`looks` counts the second looks of E6, `lost_races` the parks that E1 asks for.

    `enqueued_at` is when it first was visible in its lane while due; parking keeps it. Until
    `held_until` Puntual itself held it back, which makes it no later. It is `caught_up` once it
    was granted a place among the missed fires that run; before, it is in a backlog since
    `backlog_since`, where its elders go first.
    """

    occurrence: Occurrence
    available_at: datetime
    lane: Lane
    authorised_version: int | None = None
    looks: int = 0
    lost_races: int = 0
    enqueued_at: datetime | None = None
    held_until: datetime | None = None
    caught_up: bool = False
    backlog_since: datetime | None = None

    @property
    def late_since(self) -> datetime:
        """From when on it is late: what Puntual itself held back until then counts from there."""
        return max(self.available_at, self.held_until or self.available_at)

    @property
    def judged_version(self) -> int:
        """The version whose validity decides: the one that authorised it, if any (P3)."""
        authorised = self.authorised_version
        return self.occurrence.version if authorised is None else authorised

    def enqueued(self, visible_at: datetime) -> "Message":
        """Remember when it first was visible while due; the queue's clock may be a little early."""
        if self.enqueued_at is not None or visible_at < self.available_at - CLOCK_TOLERANCE:
            return self
        return replace(self, enqueued_at=max(visible_at, self.available_at))


def message_of(planned: Planned, *, now: datetime) -> Message:
    """Give the message that takes a planned occurrence to its lane."""
    return Message(
        occurrence=planned.occurrence,
        available_at=planned.available_at,
        lane=planned.lane_at(now),
        authorised_version=planned.authorised_version,
        held_until=planned.caught_up_at,
        caught_up=planned.caught_up_at is not None,
    )


def delay_until(instant: datetime, *, now: datetime) -> timedelta:
    """Give the whole seconds, rounded up, that a lane must hold a message: 0 s … 900 s."""
    wait = instant - now
    if wait <= timedelta(0):
        return timedelta(0)
    seconds = -(-wait // timedelta(seconds=1))
    return min(PARK_MAX, timedelta(seconds=seconds))
