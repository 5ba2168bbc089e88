"""A late first claim under `catch_up`: which place it has among the missed fires that run.

A backlog is what lies between a schedule's last run on time and its first one to be on time again.
Its oldest `limit` fires run, each after its elders, whatever order their messages come in: the
place of each follows from the rule, and from what the ledger says of those before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from puntual.domain.budget import time_of
from puntual.domain.catch_up import BEYOND_LIMIT, oldest_of
from puntual.domain.fire_bits import fire_bits
from puntual.domain.instant import MILLISECOND
from puntual.domain.message import Message
from puntual.domain.policies import Misfire, MisfirePolicy
from puntual.domain.run import Note, Run, RunState, Span
from puntual.domain.schedule import ScheduleVersion

ELDERS_WAIT_MAX = timedelta(minutes=10)
"""How long, beyond what the rate explains, a message waits for elders: one may have been lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The ledger's rows before a message's, newest first; `cut` where there may be more.

    `per_minute` is the rate at which its tenant catches up.
    """

    rows: Sequence[Run | Span | Note]
    cut: bool
    per_minute: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogPlace:
    """How many of a backlog go before a message: those that took a place, and its `elders`.

    Elders have no row yet.
    """

    taken: int
    elders: int
    beyond: bool

    def exceeds(self, limit: int) -> bool:
        return self.beyond or self.taken + self.elders >= limit


def is_backlog(message: Message, policies: MisfirePolicy, now: datetime) -> bool:
    """Tell whether a message without a row is so late that it has to find its place."""
    late = now - message.starts_at > policies.after
    return policies.policy is Misfire.CATCH_UP and message.occurrence.is_regular and late


def backlog_reaches_back_to(message: Message, version: ScheduleVersion, now: datetime) -> datetime:
    """Give the first instant whose fire may be in one backlog with a message, and may still run."""
    oldest, _ = oldest_of(version.policies.misfire)
    window = message.available_at - message.occurrence.scheduled_for
    earliest = now - oldest - max(window, version.policies.window)
    return max(version.effective_from, earliest)


def place_in_backlog(
    message: Message, version: ScheduleVersion, before: Before, now: datetime
) -> BacklogPlace:
    """Find a message's place; `now` is the instant by which lateness is judged."""
    first = backlog_reaches_back_to(message, version, now)
    taken, walked = 0, []
    for row in before.rows:
        match row:
            case Run() if row.occurrence.is_regular:
                if row.caught_up:
                    taken += 1
                elif row.state is RunState.MISSED and row.reason == BEYOND_LIMIT:
                    return BacklogPlace(taken=taken, elders=0, beyond=True)
                elif _was_on_time(row):
                    first = max(first, row.occurrence.scheduled_for + MILLISECOND)
                    break
            case Span() if row.state is RunState.MISSED and row.reason == BEYOND_LIMIT:
                return BacklogPlace(taken=taken, elders=0, beyond=True)
        walked.append(row)
    else:
        if before.cut and walked:
            first = max(first, _instant_of(walked[-1]) + MILLISECOND)
    elders = _elders(message, version, walked, first=first, now=now)
    return BacklogPlace(taken=taken, elders=elders, beyond=False)


def may_go_before_elders(
    message: Message, place: BacklogPlace, per_minute: int, now: datetime
) -> bool:
    """Tell whether a message has waited long enough for elders that do not come."""
    if message.backlog_since is None:
        return False
    explained = time_of(place.taken + place.elders, per_minute)
    return now - message.backlog_since > explained + ELDERS_WAIT_MAX


def _was_on_time(run: Run) -> bool:
    """Under `catch_up`, what was late when it was judged is marked, or was missed or voided."""
    return bool(run.attempts) or run.state is RunState.SKIPPED_OVERLAP


def _elders(
    message: Message,
    version: ScheduleVersion,
    walked: Sequence[Run | Span | Note],
    *,
    first: datetime,
    now: datetime,
) -> int:
    fires = version.fires
    oldest, _ = oldest_of(version.policies.misfire)
    too_late = fires.last_available(now - oldest - MILLISECOND)
    if too_late is not None:
        first = max(first, too_late + MILLISECOND)
    elders = fire_bits(version.rule, first, message.occurrence.scheduled_for - MILLISECOND)
    for row in walked:
        match row:
            case Run() if row.occurrence.is_regular:
                elders = elders.without(row.occurrence.scheduled_for)
            case Span() if row.version == version.version:
                elders = elders.without_range(row.first, row.last)
            case Note() if row.occurrence.version == version.version:
                elders = elders.without(row.occurrence.scheduled_for)
    return elders.count


def _instant_of(row: Run | Span | Note) -> datetime:
    return row.last if isinstance(row, Span) else row.occurrence.scheduled_for
