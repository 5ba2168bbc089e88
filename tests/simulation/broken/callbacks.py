"""Rules of completion by callback taken away."""

from dataclasses import replace
from datetime import datetime

from puntual.application.execute_occurrence import ExecuteOccurrence
from puntual.application.settle_message import Settled
from puntual.application.take_callback import TakeCallback
from puntual.domain.callback import accepted
from puntual.domain.callback_token import Ticket
from puntual.domain.judgement import Standing
from puntual.domain.message import Message
from puntual.domain.run import Run
from puntual.domain.target import Accepted
from tests.simulation.scenarios.callbacks import (
    a_complete_after_the_lease_is_lost,
    a_complete_before_the_answer_is_recorded,
    a_heartbeat_that_meets_the_end,
    a_target_that_is_asked_to_end,
    a_target_that_is_never_heard_of_again,
)
from tests.simulation.variant import Variant
from tests.simulation.watched import WatchedLedger
from tests.simulation.world import Parts


class SendsNobodyToLookAtTheLease(ExecuteOccurrence):
    def _held(
        self, message: Message, run: Run, result: Accepted, standing: Standing, now: datetime
    ) -> Settled | None:
        completion = standing.policies.completion

        def taken(row: Run, _: datetime) -> Run:
            return accepted(row, completion, detail=result.detail, now=now)

        held = self.settle_message.rewrite(run, taken)
        return Settled(why=f"accepted {message.lane}", run=held) if held else None


class RaisesLeasesOverWhateverIsThere(WatchedLedger):
    """The record of a 202, and a heartbeat."""

    def swap(self, run: Run, *, seen: Run | None) -> bool:
        if seen is not None and run.runs_attempt(seen.occurrence, seen.attempt):
            seen = self.read(run.occurrence.key)
        return super().swap(run, seen=seen)


class TakesTheTokenOfAnyAttempt(TakeCallback):
    def ticket(self, token: str) -> Ticket:
        ticket = super().ticket(token)
        row = self.settle_message.ledger.read(ticket.occurrence.key)
        return ticket if row is None else replace(ticket, attempt=row.attempt)


class TellsNobodyToEnd(TakeCallback):
    def heartbeat(self, ticket: Ticket) -> Run:
        return replace(super().heartbeat(ticket), cancel_requested=False)


CALLBACKS: dict[str, Variant] = {
    "nobody looks at the lease": Variant(
        rule="P7",
        parts=Parts(execute=SendsNobodyToLookAtTheLease),
        shows=frozenset({"STUCK RUNNING"}),
        scenario=a_target_that_is_never_heard_of_again,
    ),
    "202 over a complete": Variant(
        rule="E1",
        parts=Parts(ledger=RaisesLeasesOverWhateverIsThere),
        shows=frozenset({"TERMINAL ROW REOPENED"}),
        scenario=a_complete_before_the_answer_is_recorded,
    ),
    "heartbeats that revive": Variant(
        rule="E1",
        parts=Parts(ledger=RaisesLeasesOverWhateverIsThere),
        shows=frozenset({"TERMINAL ROW REOPENED"}),
        scenario=a_heartbeat_that_meets_the_end,
    ),
    "stale tokens": Variant(
        rule="E1",
        parts=Parts(take_callback=TakesTheTokenOfAnyAttempt),
        shows=frozenset({"STALE CALLBACK TAKEN"}),
        scenario=a_complete_after_the_lease_is_lost,
    ),
    "tells nobody to end": Variant(
        rule="E7",
        parts=Parts(take_callback=TellsNobodyToEnd),
        shows=frozenset({"REQUEST TO END NOT TOLD"}),
        scenario=a_target_that_is_asked_to_end,
    ),
}
