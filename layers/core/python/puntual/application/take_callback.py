"""What a target says later of a run that it took: it lives, it has succeeded, it has failed."""

from dataclasses import dataclass, replace
from datetime import datetime

from puntual.application.fail_attempt import FailAttempt
from puntual.application.kept_rooms import KeptRooms
from puntual.application.ports import RootSecret
from puntual.application.settle_message import SettleMessage
from puntual.domain.callback import (
    AttemptOver,
    completed,
    ends_at,
    renewed,
    was_completed,
    was_failed,
)
from puntual.domain.callback_token import Ticket, ticket_of
from puntual.domain.errors import Unavailable
from puntual.domain.judgement import overlapped
from puntual.domain.message import message_of
from puntual.domain.page import Planned
from puntual.domain.policies import Policies
from puntual.domain.run import Run, RunState
from puntual.domain.schedule import ScheduleVersion
from puntual.domain.target import Failed

HAS_ENDED = "has ended"
HAD_ITS_TIME = "has had its max_duration"


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeCallback:
    """Everything is written on condition that the token's attempt runs (E1), or nothing is.

    A token is judged before anything is read. A repeated call finds its own effect and is answered
    as the first one was.
    """

    root_secret: RootSecret
    settle_message: SettleMessage
    fail_attempt: FailAttempt
    rooms: KeptRooms

    def ticket(self, token: str) -> Ticket:
        """Give the attempt that a token names; raises `UnknownCallback`, `Unavailable`."""
        return ticket_of(token, root=self.root_secret.read())

    def heartbeat(self, ticket: Ticket) -> Run:
        """Raise the attempt's lease, and give its row, which tells whether it is asked to end (E7).

        Raises `AttemptOver`, also where its time is up, and `Unavailable`.
        """
        row = self._row(ticket)
        if not row.runs_attempt(ticket.occurrence, ticket.attempt):
            raise AttemptOver(ticket.attempt, HAS_ENDED)
        version = self._version(ticket)
        completion = version.policies.completion
        now = self.settle_message.clock.now()
        if now >= ends_at(row, completion):
            raise AttemptOver(ticket.attempt, HAD_ITS_TIME)

        def beaten(live: Run, _: datetime) -> Run:
            # As of the call, since the run's room is kept for as long.
            return renewed(live, completion, now=now)

        lease_until = beaten(row, now).lease_until
        assert lease_until is not None
        # Its room first: one that outlasts the lease does no harm.
        self.rooms.keep(row, version.target, until=lease_until)
        held = self.settle_message.rewrite(row, beaten)
        if held is not None:
            return held
        if self._row(ticket).runs_attempt(ticket.occurrence, ticket.attempt):
            raise Unavailable("a heartbeat lost its races")
        self.rooms.leave(row, version.target)
        raise AttemptOver(ticket.attempt, HAS_ENDED)

    def complete(self, ticket: Ticket, *, result: str) -> Run:
        """End the attempt's run as SUCCEEDED; raises `AttemptOver`, `Unavailable`."""
        row = self._row(ticket)
        if row.runs_attempt(ticket.occurrence, ticket.attempt):
            now, version = self.settle_message.clock.now(), self._version(ticket)
            outcome = completed(row, result=result, now=now)
            written = self.settle_message.record(outcome, has_slot=version.policies.has_slot)
            if written is not None:
                self.rooms.leave(row, version.target)
                return written
            row = self._row(ticket)
        if not was_completed(row):
            raise AttemptOver(ticket.attempt, HAS_ENDED)
        return row

    def fail(self, ticket: Ticket, *, reason: str, retry: bool) -> Run:
        """End the attempt: RETRY_WAIT or DEAD, or CANCELED where it was asked to end (E7).

        Raises `AttemptOver`, `Unavailable`.
        """
        row = self._row(ticket)
        if row.runs_attempt(ticket.occurrence, ticket.attempt):
            version = self._version(ticket)
            policies = version.policies
            outcome = self._failed(row, Failed(detail=reason, retryable=retry), policies)
            written = self.settle_message.record(outcome, has_slot=policies.has_slot)
            if written is not None:
                self.rooms.leave(row, version.target)
                self._send_retry(written, policies)
                return written
            row = self._row(ticket)
        if not was_failed(row):
            raise AttemptOver(ticket.attempt, HAS_ENDED)
        return row

    def _failed(self, row: Run, failure: Failed, policies: Policies) -> Run:
        outcome = self.fail_attempt(row, failure, policies.retry)
        return overlapped(outcome) if row.cancel_requested else outcome

    def _send_retry(self, run: Run, policies: Policies) -> None:
        """Send the message of the retry: that of the attempt looks when its lease would run out.

        So the claim stays backed by a live message, also where this one is not sent (P7).
        """
        if run.state is not RunState.RETRY_WAIT:
            return
        assert run.not_before is not None
        planned = Planned(
            occurrence=run.occurrence,
            available_at=run.available_at,
            misfire_after=policies.misfire.after,
            flexible=run.occurrence.is_regular and bool(policies.window),
            authorised_version=run.authorised_version,
            round=run.round,
        )
        message = message_of(planned, now=run.enqueued_at or run.available_at)
        message = replace(message, enqueued_at=run.enqueued_at)
        self.settle_message.park(message, run.not_before, why=run.state)

    def _row(self, ticket: Ticket) -> Run:
        """Read the row, as long as the token's attempt is its newest; raises `AttemptOver`."""
        row = self.settle_message.ledger.read(ticket.occurrence.key)
        if row is None or not row.is_attempt(ticket.occurrence, ticket.attempt):
            raise AttemptOver(ticket.attempt, HAS_ENDED)
        return row

    def _version(self, ticket: Ticket) -> ScheduleVersion:
        return self.settle_message.version(ticket.occurrence)
