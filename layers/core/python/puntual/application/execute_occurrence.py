"""Deliver an occurrence to its target: claim, call, record the outcome."""

from dataclasses import dataclass, replace

from puntual.application.admit_attempt import AdmitAttempt, Admitted, Held
from puntual.application.ports import Chance, Targets
from puntual.application.settle_message import Settled, SettleMessage
from puntual.domain.errors import Unavailable
from puntual.domain.judgement import (
    RECORD_TIME,
    Claim,
    Standing,
    failed,
    overlapped,
    succeeded,
)
from puntual.domain.message import Message
from puntual.domain.run import Run, RunState
from puntual.domain.target import Delivered, Delivery, DeliveryResult, Failed
from puntual.domain.template import rendered, values_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteOccurrence:
    settle_message: SettleMessage
    targets: Targets
    chance: Chance
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
            settled = self._attempted(message, seen, claim, standing, admitted)
        except Unavailable:
            self.admit.over(admitted)
            raise
        self.admit.over(admitted)
        return settled

    def _attempted(
        self,
        message: Message,
        seen: Run | None,
        claim: Claim,
        standing: Standing,
        admitted: Admitted,
    ) -> Settled | None:
        run = self.settle_message.swap(claim.run, seen=seen, slot=claim.slot)
        if run is None:
            return None
        assert run.lease_until is not None
        deadline = run.lease_until - RECORD_TIME
        if self.settle_message.clock.now() >= deadline:
            # Frozen since the claim: the lease may soon be another's, so the target is not called.
            return None
        version = standing.version
        values = values_of(run.occurrence, attempt=run.attempt, time_zone=version.rule.time_zone)
        delivery = Delivery(
            occurrence=run.occurrence,
            attempt=run.attempt,
            round=run.round,
            target=version.target,
            payload=rendered(version.payload, values),
            deadline=deadline,
        )
        result = admitted.refusal or self.targets.deliver(delivery)
        settled = self._record(message, run, result, standing)
        self.admit.heard(admitted, result)
        return settled

    def _record(
        self, message: Message, run: Run, result: DeliveryResult, standing: Standing
    ) -> Settled | None:
        desk, now = self.settle_message, self.settle_message.clock.now()
        match result:
            case Delivered():
                outcome = succeeded(run, detail=result.detail, now=now)
            case Failed():
                retry, chance = standing.policies.retry, self.chance.fraction()
                outcome = failed(run, result, retry=retry, chance=chance, now=now)
                if outcome.not_before is not None:
                    wait = self.admit.retry_wait(run.occurrence.tenant)
                    outcome = replace(outcome, not_before=outcome.not_before + wait)
        written = self._written(outcome, has_slot=standing.policies.has_slot)
        if written is None:
            return None
        outcome = written
        if outcome.state is RunState.RETRY_WAIT:
            assert outcome.not_before is not None
            parked = desk.park(message.tried(), outcome.not_before, why=outcome.state)
            return Settled(why=parked.why, keep=parked.keep, run=outcome)
        return desk.forget(message, outcome, standing)

    def _written(self, outcome: Run, *, has_slot: bool) -> Run | None:
        """Record an outcome, and what stands now; None for a lost race."""
        desk = self.settle_message
        ledger, outcome = desk.ledger, desk.signed(outcome)
        if not has_slot:
            return outcome if ledger.record(outcome) else None
        if outcome.state.is_terminal:
            return outcome if ledger.record_and_free(outcome) else None
        if ledger.record(outcome):
            return outcome
        row = ledger.read(outcome.occurrence.key)
        if row is None or not row.cancel_requested:
            return None
        # Another attempt's row does not take it either: only who asked this one came between.
        canceled = desk.signed(overlapped(outcome))
        return canceled if ledger.record_and_free(canceled) else None
