"""Deliver an occurrence to its target: claim, call, record the outcome."""

from dataclasses import dataclass, replace
from datetime import datetime

from puntual.application.ports import Chance, Targets
from puntual.application.settle_message import Settled, SettleMessage
from puntual.domain.callback import accepted
from puntual.domain.judgement import (
    RECORD_TIME,
    Claim,
    Standing,
    failed,
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
    chance: Chance

    def __call__(self, message: Message) -> Settled:
        """Handle one received message.

        Raises `Unavailable` where not even parking was possible: the message must be kept.
        """
        return self.settle_message.settle(message, self._claim)

    def _claim(
        self, message: Message, seen: Run | None, claim: Claim, standing: Standing
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
            awaits_callback=standing.policies.completion.is_by_callback,
        )
        return self._record(message, run, self.targets.deliver(delivery), standing)

    def _record(
        self, message: Message, run: Run, result: DeliveryResult, standing: Standing
    ) -> Settled | None:
        desk, now = self.settle_message, self.settle_message.clock.now()
        match result:
            case Delivered():
                outcome = succeeded(run, detail=result.detail, now=now)
            case Accepted():
                return self._held(message, run, result, standing)
            case Failed():
                retry, chance = standing.policies.retry, self.chance.fraction()
                outcome = failed(run, result, retry=retry, chance=chance, now=now)
        written = desk.record(outcome, has_slot=standing.policies.has_slot)
        if written is None:
            return None
        outcome = written
        if outcome.state is RunState.RETRY_WAIT:
            assert outcome.not_before is not None
            again = replace(message, lost_races=0)  # an attempt was had: nothing stalls
            parked = desk.park(again, outcome.not_before, why=outcome.state)
            return Settled(why=parked.why, keep=parked.keep, run=outcome)
        return desk.forget(message, outcome, standing)

    def _held(
        self, message: Message, run: Run, result: Accepted, standing: Standing
    ) -> Settled | None:
        """Hold the lease for the target, and send who looks when it runs out (P7).

        None where a callback came first, or another attempt: their row is judged anew (E1).
        """
        desk, completion = self.settle_message, standing.policies.completion

        def taken(row: Run, now: datetime) -> Run:
            return accepted(row, completion, detail=result.detail, now=now)

        held = desk.rewrite(run, taken)
        if held is None:
            return None
        assert held.lease_until is not None
        again = replace(message, lost_races=0)  # an attempt was had: nothing stalls
        parked = desk.park(again, looks_at_lease(held.lease_until), why="accepted")
        return Settled(why=parked.why, keep=parked.keep, run=held)
