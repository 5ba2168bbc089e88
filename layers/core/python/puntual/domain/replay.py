"""What a replay does to an occurrence that has ended: one more round under the same id (E2)."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from puntual.domain.errors import Conflict
from puntual.domain.instant import minute_of
from puntual.domain.page import Page, Planned
from puntual.domain.policies import ATTEMPTS_MAX
from puntual.domain.run import Note, Run, RunState, Span
from puntual.domain.schedule import Schedule, ScheduleState
from puntual.domain.tenant import ScheduleId
from puntual.domain.timeline import Entry, Fire, state_of

REPLAYS_MAX = 100
"""Dead letters that one call may replay."""

REQUESTS_KEPT_MAX = 20
"""Requests that a row remembers, so that none of them opens a second round."""

REASON = "replay"
"""Why a row of RETRY_WAIT waits before the first attempt of a round that a replay opened."""


class NotReplayable(Conflict):
    """The occurrence is in no state to be replayed, or its schedule is not."""

    def __init__(self, ref: str, why: str) -> None:
        super().__init__(f"occurrence {ref} cannot be replayed: {why}")
        self.ref, self.why = ref, why


class ContendedOccurrence(Conflict):
    """Its row changed each time that this replay was tried."""

    def __init__(self, ref: str) -> None:
        super().__init__(f"occurrence {ref} is being changed by others")
        self.ref = ref


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterFilter:
    """Dead letters that died in [since, until], of one schedule or of all."""

    schedule: ScheduleId | None = None
    since: datetime | None = None
    until: datetime | None = None


def why_not_replayable(run: Run, head: Schedule, *, force: bool) -> str | None:
    """Say why a row must not be given another round; None where it may."""
    if head.state is ScheduleState.CANCELED:
        return "its schedule is CANCELED"
    match run.state:
        case RunState.RUNNING:
            return "it is RUNNING; only what has ended can be replayed"
        case RunState.RETRY_WAIT:
            return "it is RETRY_WAIT, and is tried again without a replay"
        case RunState.SUCCEEDED if not force:
            return "it has SUCCEEDED; force true delivers it once more"
        case (
            RunState.SUCCEEDED
            | RunState.DEAD
            | RunState.MISSED
            | RunState.CANCELED
            | RunState.SKIPPED_OVERLAP
        ):
            pass
        case _:
            assert_never(run.state)
    if run.attempt >= ATTEMPTS_MAX:
        return f"it has had all of its {ATTEMPTS_MAX} attempts"
    return None


def why_no_row(entry: Span | Note | Fire, now: datetime) -> str:
    """Say why what stands for an occurrence without a row of its own has nothing to be replayed."""
    match entry:
        case Span():
            return f"it is {entry.state} within a range and has no row; a backfill can run it"
        case Note():
            return "it is the note of a voided version, and no run; a backfill can run its instant"
        case Fire():
            return f"it is {state_of(entry, now)} and has not begun"
        case _:
            assert_never(entry)


def run_in(entry: Entry, ref: str, now: datetime) -> Run:
    """Give the row that an entry is; raises `NotReplayable` where it is none."""
    if isinstance(entry, Run):
        return entry
    raise NotReplayable(ref, why_no_row(entry, now))


def reopened(run: Run, head: Schedule, *, not_before: datetime, request: str = "") -> Run:
    """Give the row of the next round: its attempts are counted anew, their numbers go on.

    The head's version authorises it, so that only a later pause or cancel voids it. `request` is
    the mark of a request that may be repeated.
    """
    requests = (*run.requests, request) if request else run.requests
    return replace(
        run,
        state=RunState.RETRY_WAIT,
        round=run.round + 1,
        round_attempt=0,
        not_before=not_before,
        lease_until=None,
        authorised_version=head.version,
        cancel_requested=False,
        reason=REASON,
        died_at=None,
        requests=requests[-REQUESTS_KEPT_MAX:],
    )


def page_of(run: Run, head: Schedule, *, shard: int, now: datetime) -> Page:
    """Give the page that takes a reopened row to its lane, at its `not_before`."""
    assert run.not_before is not None
    planned = Planned(
        occurrence=run.occurrence,
        available_at=run.not_before,
        misfire_after=head.policies.misfire.after,
        authorised_version=run.authorised_version,
        round=run.round,
    )
    return Page(shard=shard, bucket=minute_of(now), planned=(planned,), written_at=now)
