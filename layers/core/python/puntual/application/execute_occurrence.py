"""Deliver an occurrence to its target: claim, call, record the outcome."""

from dataclasses import dataclass, replace
from datetime import datetime

from puntual.application.admit_attempt import AdmitAttempt, Held
from puntual.application.fail_attempt import FailAttempt
from puntual.application.ports import Targets
from puntual.application.settle_message import Settled, SettleMessage
from puntual.domain.callback import accepted
from puntual.domain.errors import Unavailable
from puntual.domain.judgement import (
    RECORD_TIME,
    Claim,
    Standing,
    looks_at_lease,
    succeeded,
)
from puntual.domain.message import Message
from puntual.domain.run import Run, RunState
from puntual.domain.target import Accepted, Delivered, Delivery, DeliveryResult, Failed
from puntual.domain.template import rendered, values_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteOccurrence:
    settle_message: SettleMessage
    targets: Targets
    fail_attempt: FailAttempt
    admit: AdmitAttempt

    def __call__(self, message: Message) -> Settled:
        """Handle one received message.

        Raises `Unavailable` where not even parking was possible: the message must be kept.
        """
        return self.settle_message.settle(message, self._claim)

    def _claim(
        self, message: Message, seen: Run | None, claim: Claim, standing: Standing
    ) -> Settled | None:
        """Ask the gates before the claim is written: what they hold has spent no attempt."""
        admitted = self.admit(message, claim.run, standing.version.target)
        if isinstance(admitted, Held):
            held = admitted.message
            return self.settle_message.park(held, admitted.until, why=held.held_by)
        try:
            settled, run = None, self._claimed(seen, claim)
            if run is not None:
                result = admitted.refusal or self.targets.deliver(_delivery_of(run, standing))
                answered_at = self.settle_message.clock.now()
                if isinstance(result, Accepted):
                    taken = _taken(run, result, standing, answered_at)
                    assert taken.lease_until is not None
                    admitted = self.admit.taken(admitted, run, until=taken.lease_until)
                settled = self._record(message, run, result, standing, answered_at)
                self.admit.heard(admitted, result)
        except Unavailable:
            self.admit.over(admitted)
            raise
        self.admit.over(admitted)
        return settled

    def _claimed(self, seen: Run | None, claim: Claim) -> Run | None:
        """Write the claim; None where that was lost, or the target is not to be called any more."""
        run = self.settle_message.swap(claim.run, seen=seen, slot=claim.slot)
        if run is None:
            return None
        assert run.lease_until is not None
        # Frozen since the claim, the lease may soon be another's.
        is_late = self.settle_message.clock.now() >= run.lease_until - RECORD_TIME
        return None if is_late else run

    def _record(
        self,
        message: Message,
        run: Run,
        result: DeliveryResult,
        standing: Standing,
        now: datetime,
    ) -> Settled | None:
        desk = self.settle_message
        match result:
            case Delivered():
                outcome = succeeded(run, detail=result.detail, now=now)
            case Accepted():
                return self._held(message, run, result, standing, now)
            case Failed():
                outcome = self.fail_attempt(run, result, standing.policies.retry)
        written = desk.record(outcome, has_slot=standing.policies.has_slot)
        if written is None:
            return None
        outcome = written
        if outcome.state is RunState.RETRY_WAIT:
            assert outcome.not_before is not None
            # It may have been made for a duplicate.
            again = replace(message.tried(), round=outcome.round)
            parked = desk.park(again, outcome.not_before, why=outcome.state)
            return Settled(why=parked.why, keep=parked.keep, run=outcome)
        return desk.forget(message, outcome, standing)

    def _held(
        self, message: Message, run: Run, result: Accepted, standing: Standing, now: datetime
    ) -> Settled | None:
        """Hold the lease for the target, and send who looks when it runs out (P7).

        None where a callback came first, or another attempt: their row is judged anew (E1).
        """
        desk = self.settle_message

        def taken(row: Run, _: datetime) -> Run:
            # As of the answer, since the run's room is kept for as long.
            return _taken(row, result, standing, now)

        held = desk.rewrite(run, taken)
        if held is None:
            self.admit.rooms.leave(run, standing.version.target)
            return None
        assert held.lease_until is not None
        parked = desk.park(message.tried(), looks_at_lease(held.lease_until), why="accepted")
        return Settled(why=parked.why, keep=parked.keep, run=held)


def _taken(run: Run, result: Accepted, standing: Standing, now: datetime) -> Run:
    return accepted(run, standing.policies.completion, detail=result.detail, now=now)


def _delivery_of(run: Run, standing: Standing) -> Delivery:
    assert run.lease_until is not None
    version = standing.version
    values = values_of(run.occurrence, attempt=run.attempt, time_zone=version.rule.time_zone)
    return Delivery(
        occurrence=run.occurrence,
        attempt=run.attempt,
        round=run.round,
        is_repeat=run.round_attempt > 1,
        target=version.target,
        payload=rendered(version.payload, values),
        deadline=run.lease_until - RECORD_TIME,
        awaits_callback=standing.policies.completion.is_by_callback,
    )
