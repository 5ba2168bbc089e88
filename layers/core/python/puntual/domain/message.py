"""What a lane carries: an occurrence that asks to be run."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from puntual.domain.gate import BY_CATCH_UPS
from puntual.domain.lane import Lane
from puntual.domain.occurrence import Occurrence
from puntual.domain.page import Planned
from puntual.domain.tenant import TenantId

PARK_MAX = timedelta(seconds=900)
"""The longest delay a queue gives to a message; longer waits hop."""

PARK_MIN = timedelta(seconds=1)

CLOCK_TOLERANCE = timedelta(seconds=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """What a tenant has in one lane: what contends with the others' for its executors."""

    tenant: TenantId
    lane: Lane


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """`looks` counts the second looks of E6, `lost_races` the parks that E1 asks for.

    `enqueued_at` is when it first was visible in its lane while due; parking keeps it. `round` is
    the one that it was sent for. A gate that held it says until when, who it was, and the `holds`
    since an attempt was last had, and it is no later for that; `tokens` names the budgets that it
    holds a token of, and need not draw from again. `blocked_since` is when a breaker first held
    this attempt. It is `caught_up` once it was granted a place among the missed fires that run;
    before, it is in a backlog since `backlog_since`, where its elders go first.
    """

    occurrence: Occurrence
    available_at: datetime
    lane: Lane
    authorised_version: int | None = None
    looks: int = 0
    lost_races: int = 0
    enqueued_at: datetime | None = None
    round: int = 0
    held_until: datetime | None = None
    held_by: str = ""
    holds: int = 0
    tokens: tuple[str, ...] = ()
    blocked_since: datetime | None = None
    caught_up: bool = False
    backlog_since: datetime | None = None

    @property
    def starts_at(self) -> datetime:
        """From when it may run: it is not late by the time for which a gate held it."""
        held_until = self.held_until
        return self.available_at if held_until is None else max(self.available_at, held_until)

    @property
    def crowd(self) -> Crowd:
        return Crowd(tenant=self.occurrence.tenant, lane=self.lane)

    @property
    def judged_version(self) -> int:
        """The version whose validity decides: the one that authorised it, if any (P3)."""
        authorised = self.authorised_version
        return self.occurrence.version if authorised is None else authorised

    def kept_waiting(self, gate: str, *, now: datetime, until: datetime) -> "Message":
        """Give it as a gate holds it that has not judged it: as late as it is, and no later."""
        late = max(timedelta(0), now - self.starts_at)
        return replace(self, held_until=until - late, held_by=gate)

    def tried(self) -> "Message":
        """Give it after an attempt: nothing stalls, and the next one needs tokens of its own."""
        return replace(
            self,
            lost_races=0,
            held_until=None,
            held_by="",
            holds=0,
            tokens=(),
            blocked_since=None,
        )

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
        round=planned.round,
        held_until=planned.caught_up_at,
        held_by=BY_CATCH_UPS if planned.caught_up_at else "",
        caught_up=planned.caught_up_at is not None,
    )


def delay_until(instant: datetime, *, now: datetime) -> timedelta:
    """Give the whole seconds, rounded up, that a lane must hold a message: 0 s … 900 s."""
    wait = instant - now
    if wait <= timedelta(0):
        return timedelta(0)
    seconds = -(-wait // timedelta(seconds=1))
    return min(PARK_MAX, timedelta(seconds=seconds))
