"""Rules of the slot taken away."""

from dataclasses import replace
from datetime import datetime

from puntual.domain.judgement import (
    Claim,
    Drop,
    End,
    EndHolder,
    Forget,
    Park,
    Standing,
    Verdict,
    Wait,
    judge,
)
from puntual.domain.message import Message
from puntual.domain.run import Run, RunState, RunSwap, Unchanged
from puntual.domain.slot import SlotSwap
from tests.simulation.scenarios.slots import (
    a_duplicate_that_waits_for_what_has_ended,
    a_request_to_end_that_meets_a_backoff,
    a_skip_behind_a_run_that_has_ended,
    a_voided_one_that_waits,
    a_voided_run_in_its_backoff,
    a_waiting_one_that_is_superseded,
    two_claims_of_one_slot,
)
from tests.simulation.variant import Variant
from tests.simulation.watched import WatchedLedger
from tests.simulation.world import Parts


class ClaimsBesideTheSlot(WatchedLedger):
    """Two writes instead of one transaction: the claim asks for its row alone."""

    def swap_with_slot(self, slot: SlotSwap, *runs: RunSwap | Unchanged) -> bool:
        match runs:
            case (RunSwap(run=Run(state=RunState.RUNNING) as run, seen=seen),):
                if not self.swap(run, seen=seen):
                    return False
                self._put_slot(slot.slot)
                return True
            case _:
                return super().swap_with_slot(slot, *runs)


class ChecksNoSlotBeside(WatchedLedger):
    """A slot that is only to be as it was seen is not asked."""

    def swap_with_slot(self, slot: SlotSwap, *runs: RunSwap | Unchanged) -> bool:
        if slot.changes:
            return super().swap_with_slot(slot, *runs)
        current = self.slot(slot.seen.key)
        as_now = SlotSwap(slot=replace(current, write_id=slot.slot.write_id), seen=current)
        return super().swap_with_slot(as_now, *runs)


class ChecksNoRowBeside(WatchedLedger):
    """A row that is only to be as it was seen is not asked."""

    def swap_with_slot(self, slot: SlotSwap, *runs: RunSwap | Unchanged) -> bool:
        return super().swap_with_slot(slot, *(run for run in runs if isinstance(run, RunSwap)))


class RecordsOverARequest(WatchedLedger):
    def _takes_outcome(self, row: Run | None, run: Run) -> bool:
        asked = None if row is None else replace(row, cancel_requested=False)
        return super()._takes_outcome(asked, run)


class EndsWithoutFreeing(WatchedLedger):
    def record_and_free(self, run: Run) -> bool:
        return self.record(run)


def judged_with_retries_beside_the_slot(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    if row is not None and not row.state.is_terminal:
        standing = replace(standing, occupancy=None)
    return judge(message, row, standing, now)


def judged_keeping_the_waiting_place(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    verdict = judge(message, row, standing, now)
    return replace(verdict, slot=None) if isinstance(verdict, Drop | Forget) else verdict


def judged_with_holders_behind_waiters(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    occupancy = standing.occupancy
    if occupancy is not None and occupancy.slot.waiting is not None:
        slot = occupancy.slot.without(message.occurrence.id)
        if not standing.has_waiting(message):
            standing = replace(standing, occupancy=replace(occupancy, slot=slot))
    return judge(message, row, standing, now)


def judged_behind_voided_holders(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    verdict = judge(message, row, standing, now)
    if isinstance(verdict, EndHolder) and verdict.holder.run.reason.startswith("voided"):
        head = replace(standing.head, min_valid_version=0)
        return judge(message, row, replace(standing, head=head), now)
    return verdict


def judged_behind_voided_waiters(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    verdict = judge(message, row, standing, now)
    if isinstance(verdict, Claim | Wait):
        head = replace(standing.head, min_valid_version=0)
        return judge(message, row, replace(standing, head=head), now)
    return verdict


def judged_with_waiting_ones_late(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    verdict = judge(message, row, standing, now)
    if row is None and standing.has_waiting(message) and isinstance(verdict, Claim | Wait | Park):
        late = judge(message, row, replace(standing, occupancy=None), now)
        if isinstance(late, End):
            assert standing.occupancy is not None
            slot = standing.occupancy.slot
            left = SlotSwap(slot=slot.without(message.occurrence.id), seen=slot)
            return replace(late, slot=left)
    return verdict


SLOTS: dict[str, Variant] = {
    "claims beside the slot": Variant(
        rule="E7",
        parts=Parts(ledger=ClaimsBesideTheSlot),
        shows=frozenset({"OVERLAP"}),
        scenario=two_claims_of_one_slot,
    ),
    "checks no slot beside": Variant(
        rule="E7",
        parts=Parts(ledger=ChecksNoSlotBeside),
        shows=frozenset({"SKIPPED BEHIND NOBODY"}),
        scenario=a_skip_behind_a_run_that_has_ended,
    ),
    "checks no row beside": Variant(
        rule="E7",
        parts=Parts(ledger=ChecksNoRowBeside),
        shows=frozenset({"WAITS FOR EVER"}),
        scenario=a_duplicate_that_waits_for_what_has_ended,
    ),
    "records over a request": Variant(
        rule="E7",
        parts=Parts(ledger=RecordsOverARequest),
        shows=frozenset({"REQUEST TO END FORGOTTEN"}),
        scenario=a_request_to_end_that_meets_a_backoff,
    ),
    "retries beside the slot": Variant(
        rule="E7",
        parts=Parts(judge_by_head=judged_with_retries_beside_the_slot),
        shows=frozenset({"SLOT HELD FOR EVER", "OVERLAP"}),
        seeds=(19, 24, 26),
    ),
    "ends without freeing": Variant(
        rule="E7",
        parts=Parts(ledger=EndsWithoutFreeing),
        shows=frozenset({"SLOT HELD FOR EVER"}),
        seeds=(0, 1, 4),
    ),
    "keeps the waiting place": Variant(
        rule="E7",
        parts=Parts(judge_by_head=judged_keeping_the_waiting_place),
        shows=frozenset({"WAITS FOR EVER"}),
        scenario=a_waiting_one_that_is_superseded,
    ),
    "holders behind waiters": Variant(
        rule="E7",
        parts=Parts(judge_by_head=judged_with_holders_behind_waiters),
        shows=frozenset({"HOLDER SKIPPED"}),
        seeds=(4, 12, 25),
    ),
    "behind voided holders": Variant(
        rule="E7",
        parts=Parts(judge_by_head=judged_behind_voided_holders),
        shows=frozenset({"SKIPPED BEHIND A VOIDED RUN"}),
        scenario=a_voided_run_in_its_backoff,
    ),
    "behind voided waiters": Variant(
        rule="E7",
        parts=Parts(judge_by_head=judged_behind_voided_waiters),
        shows=frozenset({"SKIPPED BEHIND A VOIDED RUN"}),
        scenario=a_voided_one_that_waits,
    ),
    "waiting ones late": Variant(
        rule="E7",
        parts=Parts(judge_by_head=judged_with_waiting_ones_late),
        shows=frozenset({"WAITING ONE MISSED"}),
        seeds=(1, 12, 25),
    ),
}
