"""What an executor does with one message: pure decisions on facts that were read just before.

The use case gathers the facts in two steps, `before_head` and `judge`, and writes what they say;
every write is conditional on the row being as it was read, so a decision is never applied to
something else than it was made on.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from puntual.domain.backlog import (
    Before,
    is_backlog,
    may_go_before_elders,
    place_in_backlog,
)
from puntual.domain.budget import time_of
from puntual.domain.callback import lapse_of
from puntual.domain.catch_up import BEYOND_LIMIT, FORGOTTEN, TOO_LATE
from puntual.domain.message import Message
from puntual.domain.policies import ATTEMPTS_MAX, Misfire, Policies, RetryPolicy
from puntual.domain.run import (
    DETAIL_LENGTH_MAX,
    LEASE_MARGIN,
    LEASE_RAN_OUT,
    RUN_AGE_MAX,
    Attempt,
    Note,
    Run,
    RunState,
    RunSwap,
)
from puntual.domain.schedule import Schedule, ScheduleVersion
from puntual.domain.slot import (
    EndsHolder,
    Enters,
    Moved,
    Occupancy,
    Place,
    Skipped,
    Slot,
    SlotSwap,
    Waits,
    contest,
    overlap_reason,
)
from puntual.domain.target import Failed

FOREIGN_WAIT = timedelta(seconds=60)
"""How long a message waits behind the row of another id before it looks again."""

RECORD_TIME = timedelta(seconds=15)
"""What a lease holds beyond the target's timeout: time to record the outcome."""

SLOT_WAIT = timedelta(seconds=30)
"""How long the one that waits for a slot waits before it looks again."""

DEADLINE = "deadline"
"""Why a run is DEAD that may start no other attempt in its round."""

STALLED_AFTER_PARKS = 5
LOST_RACES_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Park:
    """Wait, and ask again then."""

    until: datetime
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """The row is terminal: complete the schedule if this was its last, and delete the message.

    `slot` is the waiting place that the message must give back first.
    """

    slot: SlotSwap | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """The message leaves no row at its key: a second look first (E6), a note if it was voided.

    `slot` is the waiting place that the message must give back first.
    """

    note: Note | None
    why: str
    slot: SlotSwap | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Write this terminal row over the one that was read, or where none was; then judge again.

    A `slot` is left, or only has to be as it was, in the same transaction.
    """

    run: Run
    slot: SlotSwap | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Take the lease with this row over the one that was read, or where none was.

    A `slot` is taken in the same transaction, also where it is held already.
    """

    run: Run
    slot: SlotSwap | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Take the waiting place while the row is as it was read, and then park.

    `asked` is the holder's row with the request to end, in the same transaction.
    """

    slot: SlotSwap
    asked: RunSwap | None
    until: datetime
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndHolder:
    """End another's row, which holds the slot without a right to it any more; then judge again."""

    holder: RunSwap
    slot: SlotSwap


@dataclass(frozen=True, slots=True, kw_only=True)
class AskAgain:
    """So much time has passed since the head was read that it must be read anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recover:
    """Go on in the recovery lane: from `until` on, or, if that is None, when a token is free."""

    until: datetime | None
    why: str


Verdict = Park | Forget | Drop | End | Claim | Wait | EndHolder | AskAgain | Recover


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The head, read strongly after the row, and the message's own version.

    `until` is read strongly too where the head has moved on, and is None where it has not.
    `asked_at` is the clock just before the head was read. `occupancy` is read after the head, and
    only for versions that need the slot; `before` too, only for what `needs_backlog`.
    """

    asked_at: datetime
    head: Schedule
    version: ScheduleVersion
    until: datetime | None
    occupancy: Occupancy | None = None
    before: Before | None = None

    @property
    def policies(self) -> Policies:
        return self.version.policies

    def last_available(self, now: datetime) -> datetime | None:
        """The version's last fire that is available by now, its end never passed (E5)."""
        return replace(self.version.fires, until=self.until).last_available(now)

    def has_waiting(self, message: Message) -> bool:
        occupancy = self.occupancy
        return occupancy is not None and occupancy.slot.is_waited_for_by(message.occurrence.id)


def before_row(message: Message, now: datetime) -> Park | None:
    """Judge by the message alone: nothing starts early on this clock."""
    if now < message.available_at:
        return Park(until=message.available_at, why="too early")
    if now < message.starts_at:
        return Park(until=message.starts_at, why=message.held_by)
    return None


def before_head(message: Message, row: Run | None, now: datetime) -> Verdict | None:
    """Judge by the row; None means that the head decides."""
    if row is None:
        return None
    foreign = row.occurrence.id != message.occurrence.id
    if row.state.is_terminal:
        # What is the message's own left the slot as it ended; another's did not do so for it.
        return None if foreign else Forget()
    if row.has_live_lease(now):
        assert row.lease_until is not None
        return Park(until=looks_at_lease(row.lease_until), why="live lease")
    if foreign:
        return Park(until=now + FOREIGN_WAIT, why="row of another id")
    return None


def looks_at_lease(lease_until: datetime) -> datetime:
    """Give when whoever waits for a lease to run out looks again: then it is free to any clock."""
    return lease_until + LEASE_MARGIN + timedelta(seconds=1)


def judge(message: Message, row: Run | None, standing: Standing, now: datetime) -> Verdict:
    """Judge by the head, and by the slot where the version needs it.

    The row, if any, is another's that has ended, or the message's own: waiting, or with a lease
    that has run out.
    """
    verdict = _by_head(message, row, standing, now)
    if standing.occupancy is None:
        return verdict
    match verdict:
        case End():
            return replace(verdict, slot=_left(message, standing.occupancy.slot))
        case Forget() | Drop():
            left = _left(message, standing.occupancy.slot)
            return replace(verdict, slot=left if left.changes else None)
        case Claim():
            return _contested(message, row, verdict, standing, standing.occupancy, now)
        case _:
            return verdict


def _by_head(message: Message, row: Run | None, standing: Standing, now: datetime) -> Verdict:
    if row is not None and row.state.is_terminal:
        return Forget()
    if _is_voided(message, row, standing):
        return _voided(message, row, standing, now)
    if _is_superseded(message, row, standing):
        return Drop(note=None, why="superseded")
    if row is None:
        return (
            _missed(message, standing, now)
            or _recovered(message, standing, now)
            or _first_claim(message, standing, now)
        )
    row = replace(row, enqueued_at=row.enqueued_at or message.enqueued_at)
    if not row.attempt:
        # One that was asked for has its row before any gate holds it.
        row = replace(row, held_until=message.held_until, held_by=message.held_by)
    return _by_own_row(row, standing, now)


def _by_own_row(row: Run, standing: Standing, now: datetime) -> Verdict:
    lapse = lapse_of(row, standing.policies.completion)
    if row.cancel_requested:
        return End(run=_ended(row, RunState.CANCELED, overlap_reason(row), now, lapse=lapse))
    if row.state is RunState.RETRY_WAIT and row.not_before is not None and row.not_before > now:
        return Park(until=row.not_before, why="backoff")
    if row.round_attempt >= standing.policies.retry.max_attempts or row.attempt >= ATTEMPTS_MAX:
        return End(run=_ended(row, RunState.DEAD, "attempts used up", now, lapse=lapse))
    left = _time_left(row, standing.policies.retry, now)
    if left is not None and left < timedelta(0):
        return End(run=_ended(row, RunState.DEAD, DEADLINE, now, lapse=lapse))
    return _next_claim(row, standing, now)


def _time_left(row: Run, retry: RetryPolicy, now: datetime) -> timedelta | None:
    """Give the time in which another attempt of the round may start, None where all may."""
    began_at = row.round_began_at
    if retry.deadline is None or began_at is None:
        return None
    return began_at + retry.deadline - now


def _contested(
    message: Message,
    row: Run | None,
    claim: Claim,
    standing: Standing,
    occupancy: Occupancy,
    now: datetime,
) -> Verdict:
    """Judge a claim by the slot: every claim, of whichever attempt, is made together with it."""
    slot = occupancy.slot
    place = Place(occurrence=message.occurrence, judged_version=_judged_version(message, row))
    min_valid_version = standing.head.min_valid_version
    found = contest(
        place,
        occupancy,
        overlap=standing.policies.overlap,
        min_valid_version=min_valid_version,
        now=now,
    )
    match found:
        case Enters():
            return replace(claim, slot=SlotSwap(slot=found.slot, seen=slot))
        case Waits():
            return _waits(found, slot, now)
        case Skipped():
            skipped = RunState.SKIPPED_OVERLAP
            run = (
                _rowless(message, skipped, found.reason)
                if row is None
                else _ended(row, skipped, found.reason, now)
            )
            return End(run=run, slot=_left(message, slot))
        case EndsHolder():
            holder = found.holder
            ended = _ended(holder, RunState.CANCELED, found.reason, now)
            left = SlotSwap(slot=slot.without(holder.occurrence.id), seen=slot)
            return EndHolder(holder=RunSwap(run=ended, seen=holder), slot=left)
        case Moved():
            return AskAgain()
        case _:
            assert_never(found)


def _waits(found: Waits, slot: Slot, now: datetime) -> Park | Wait:
    swap = SlotSwap(slot=found.slot, seen=slot)
    until, why = now + SLOT_WAIT, "waits for the slot"
    if found.asked is None:
        return (
            Wait(slot=swap, asked=None, until=until, why=why)
            if swap.changes
            else Park(until=until, why=why)
        )
    asked = RunSwap(run=replace(found.asked, cancel_requested=True), seen=found.asked)
    return Wait(slot=swap, asked=asked, until=until, why=why)


def _left(message: Message, slot: Slot) -> SlotSwap:
    return SlotSwap(slot=slot.without(message.occurrence.id), seen=slot)


def _is_voided(message: Message, row: Run | None, standing: Standing) -> bool:
    return _judged_version(message, row) < standing.head.min_valid_version


def _judged_version(message: Message, row: Run | None) -> int:
    if row is None or row.authorised_version is None:
        return message.judged_version
    return max(message.judged_version, row.authorised_version)


def _is_superseded(message: Message, row: Run | None, standing: Standing) -> bool:
    """A row binds an occurrence to its id: supersession no longer applies then (P5, E3)."""
    occurrence = message.occurrence
    if row is not None or not occurrence.is_regular or standing.until is None:
        return False
    return occurrence.scheduled_for >= standing.until


def _voided(message: Message, row: Run | None, standing: Standing, now: datetime) -> Verdict:
    occurrence = message.occurrence
    if row is not None:
        reason = f"voided after attempt {row.attempt}" if row.attempt else "voided"
        lapse = lapse_of(row, standing.policies.completion)
        return End(run=_ended(row, RunState.CANCELED, reason, now, lapse=lapse))
    due_before_end = standing.until is None or occurrence.scheduled_for < standing.until
    if occurrence.is_regular and due_before_end:
        return End(run=_rowless(message, RunState.CANCELED, "voided"))
    return Drop(note=Note(occurrence=occurrence, reason="voided", noted_at=now), why="voided")


def _missed(message: Message, standing: Standing, now: datetime) -> End | AskAgain | None:
    """Apply the misfire policy at a first claim: the lag may have lain in the queue (E5).

    The one that waits for its slot is late by no fault of its own, and only `max_lateness` ends it.
    What a gate held is late from then on; only for `max_lateness` does that time count too.
    Only what was late when the head was asked is missed: by a later instant the run may have
    become the next version's, for which it need not be late.
    """
    if _missed_by(message, standing, now) is None:
        return None
    return _missed_by(message, standing, standing.asked_at) or AskAgain()


def _missed_by(message: Message, standing: Standing, now: datetime) -> End | None:
    occurrence, misfire = message.occurrence, standing.policies.misfire
    if now - occurrence.scheduled_for > RUN_AGE_MAX:
        return End(run=_rowless(message, RunState.MISSED, FORGOTTEN))
    late = now - message.available_at
    if not occurrence.is_regular or late <= misfire.after:
        return None
    if misfire.max_lateness is not None and late > misfire.max_lateness:
        return End(run=_rowless(message, RunState.MISSED, TOO_LATE))
    return _missed_by_policy(message, standing, now)


def _missed_by_policy(message: Message, standing: Standing, now: datetime) -> End | None:
    """What Puntual itself held back is late from then on; only `max_lateness` counts the wait."""
    occurrence, misfire = message.occurrence, standing.policies.misfire
    spared = now - message.starts_at <= misfire.after or standing.has_waiting(message)
    match misfire.policy:
        case Misfire.SKIP if not spared:
            return End(run=_rowless(message, RunState.MISSED, "skip"))
        case Misfire.FIRE_ONCE if not spared:
            latest = standing.last_available(now)
            if latest is not None and latest > occurrence.scheduled_for:
                return End(run=_rowless(message, RunState.MISSED, "fire_once"))
    return None


def needs_backlog(message: Message, row: Run | None, standing: Standing, now: datetime) -> bool:
    """Tell whether the rows before a message's have a say in its verdict."""
    return (
        row is None
        and is_backlog(message, standing.policies.misfire, now)
        and not standing.has_waiting(message)
    )


def _recovered(
    message: Message, standing: Standing, now: datetime
) -> End | Recover | AskAgain | None:
    """Find a late one's place in its backlog: beyond the limit, behind its elders, or next."""
    if not needs_backlog(message, None, standing, now):
        return None
    before, misfire = standing.before, standing.policies.misfire
    if before is None or not needs_backlog(message, None, standing, standing.asked_at):
        # It has become late, or later, since the head and the rows were read.
        return AskAgain()
    place = place_in_backlog(message, standing.version, before, now)
    if place.exceeds(misfire.limit):
        return End(run=_rowless(message, RunState.MISSED, BEYOND_LIMIT))
    waits = place.elders and not may_go_before_elders(message, place, before.per_minute, now)
    if waits:
        wait = time_of(place.elders, before.per_minute)
        return Recover(until=now + wait, why="elders first")
    return Recover(until=None, why="catches up")


def _rowless(message: Message, state: RunState, reason: str) -> Run:
    return Run(
        occurrence=message.occurrence,
        state=state,
        available_at=message.available_at,
        enqueued_at=message.enqueued_at,
        authorised_version=message.authorised_version,
        held_until=message.held_until,
        held_by=message.held_by,
        caught_up=message.caught_up,
        reason=reason,
    )


def _ended(
    row: Run, state: RunState, reason: str, now: datetime, *, lapse: str = LEASE_RAN_OUT
) -> Run:
    """End a row; `lapse` is why the lease of one that was running ran out."""
    attempts = row.attempts
    if row.state is RunState.RUNNING:
        attempts = row.finished_attempt(now=now, result=lapse)
    return replace(
        row,
        state=state,
        reason=reason,
        attempts=attempts,
        lease_until=None,
        not_before=None,
        died_at=now if state is RunState.DEAD else None,
    )


def _first_claim(message: Message, standing: Standing, now: datetime) -> Claim:
    blank = _rowless(message, RunState.RUNNING, "")
    return _next_claim(blank, standing, now)


def _next_claim(row: Run, standing: Standing, now: datetime) -> Claim:
    attempts = row.attempts
    if row.state is RunState.RUNNING and row.attempt:
        lapse = lapse_of(row, standing.policies.completion)
        attempts = row.finished_attempt(now=now, result=lapse)
    number = row.attempt + 1
    return Claim(
        run=replace(
            row,
            state=RunState.RUNNING,
            attempt=number,
            round_attempt=row.round_attempt + 1,
            lease_until=now + standing.version.target.timeout + RECORD_TIME,
            not_before=None,
            reason="",
            attempts=(*attempts, Attempt(number=number, started_at=now, round=row.round)),
        )
    )


def is_of_an_earlier_round(message: Message, row: Run | None) -> bool:
    """Tell whether a message was sent before the row's round began, which has one of its own.

    Then its end among the dead letters says nothing about that round (E2).
    """
    return row is not None and message.round < row.round


def buried(message: Message, row: Run | None, now: datetime) -> Run:
    """Give the DEAD row of a message that was received too often to go on (E4)."""
    if row is None:
        return replace(_rowless(message, RunState.DEAD, "undeliverable"), died_at=now)
    return _ended(row, RunState.DEAD, "undeliverable", now)


def overlapped(outcome: Run) -> Run:
    """Give the CANCELED row of a run that was asked to end and would wait for a retry (E7)."""
    return replace(
        outcome,
        state=RunState.CANCELED,
        reason=overlap_reason(outcome),
        not_before=None,
        cancel_requested=True,
        died_at=None,
    )


def succeeded(run: Run, *, detail: str, now: datetime) -> Run:
    return replace(
        run,
        state=RunState.SUCCEEDED,
        lease_until=None,
        attempts=run.finished_attempt(now=now, result=detail),
    )


def failed(run: Run, failure: Failed, *, retry: RetryPolicy, chance: float, now: datetime) -> Run:
    """Give the row after a failed attempt: RETRY_WAIT while the round allows, else DEAD.

    It is DEAD at once, too, where the next attempt would start behind the deadline.
    """
    reason = failure.detail[:DETAIL_LENGTH_MAX]
    attempts = run.finished_attempt(now=now, result=reason)
    spent = run.round_attempt >= retry.max_attempts or run.attempt >= ATTEMPTS_MAX
    if not failure.retryable or spent:
        return _dead(run, reason, attempts, now)
    left = _time_left(run, retry, now)
    wait = retry.backoff(
        failures=run.round_attempt, chance=chance, retry_after=failure.retry_after, left=left
    )
    if left is not None and wait > left:
        return _dead(run, f"{DEADLINE}: {reason}"[:DETAIL_LENGTH_MAX], attempts, now)
    return replace(
        run,
        state=RunState.RETRY_WAIT,
        reason=reason,
        lease_until=None,
        not_before=now + wait,
        attempts=attempts,
    )


def put_off(outcome: Run, wait: timedelta | None, *, now: datetime) -> Run:
    """Put a retry off beyond its backoff; None where it would then start behind its deadline."""
    assert outcome.not_before is not None
    if wait is None:
        reason = f"{DEADLINE}: {outcome.reason}"[:DETAIL_LENGTH_MAX]
        return _dead(replace(outcome, not_before=None), reason, outcome.attempts, now)
    return replace(outcome, not_before=outcome.not_before + wait)


def _dead(run: Run, reason: str, attempts: tuple[Attempt, ...], now: datetime) -> Run:
    return replace(
        run,
        state=RunState.DEAD,
        reason=reason,
        lease_until=None,
        attempts=attempts,
        died_at=now,
    )
