"""How the slot changes what is done with a message: E7, and E5 and E6 where they touch it."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from puntual.domain.judgement import (
    SLOT_WAIT,
    AskAgain,
    Claim,
    Drop,
    End,
    EndHolder,
    Forget,
    Park,
    Standing,
    Verdict,
    Wait,
    before_head,
    judge,
    overlapped,
)
from puntual.domain.policies import Misfire, MisfirePolicy, Overlap, Policies
from puntual.domain.run import RUN_AGE_MAX, Run, RunState, RunSwap
from puntual.domain.slot import Occupancy, Slot, SlotSwap
from tests.builders import (
    NINE,
    a_message,
    a_place,
    a_run,
    a_schedule,
    a_slot,
    a_version,
    an_occurrence,
)

SECOND = timedelta(seconds=1)
OTHER = an_occurrence(scheduled_for=NINE)
MINE = an_occurrence(scheduled_for=NINE + timedelta(minutes=5))
SOON = MINE.scheduled_for + SECOND
LIVE = replace(a_run(OTHER), lease_until=SOON + timedelta(minutes=9))
BACKOFF = a_run(OTHER, state=RunState.RETRY_WAIT)
LEFT = a_slot(running=OTHER)
WAITING = a_slot(running=OTHER, waiting=MINE)


def verdict(
    slot: Slot,
    row: Run | None = None,
    holder: Run | None = None,
    *,
    overlap: Overlap = Overlap.QUEUE_ONE,
    misfire: MisfirePolicy | None = None,
    min_valid_version: int = 0,
    until: datetime | None = None,
    now: datetime = SOON,
) -> Verdict:
    policies = Policies(overlap=overlap, misfire=misfire or MisfirePolicy())
    own = a_version(policies=policies, until=until)
    standing = Standing(
        asked_at=now,
        head=a_schedule(own, min_valid_version=min_valid_version),
        version=own,
        until=until,
        occupancy=Occupancy(slot=slot, holder=holder),
    )
    return judge(a_message(MINE), row, standing, now)


def ended(found: Verdict) -> tuple[RunState, str, SlotSwap | None]:
    assert isinstance(found, End), found
    return found.run.state, found.run.reason, found.slot


@pytest.mark.parametrize(
    "row", [None, a_run(MINE, state=RunState.RETRY_WAIT), a_run(MINE, attempt=2)]
)
def test_every_claim_of_whichever_attempt_is_made_with_the_slot(row: Run | None) -> None:
    slot = a_slot(running=MINE) if row else a_slot()
    found = verdict(slot, row, now=SOON + timedelta(seconds=40))
    assert isinstance(found, Claim)
    assert found.slot == SlotSwap(slot=a_slot(running=MINE), seen=slot)


def test_the_slot_is_not_asked_for_under_allow() -> None:
    own = a_version()
    standing = Standing(asked_at=SOON, head=a_schedule(own), version=own, until=None)
    found = judge(a_message(MINE), None, standing, SOON)
    assert isinstance(found, Claim)
    assert found.slot is None


def test_it_waits_by_a_write_and_looks_again_without_one() -> None:
    found = verdict(LEFT, holder=LIVE)
    swap = SlotSwap(slot=WAITING, seen=LEFT)
    why, until = "waits for the slot", SOON + SLOT_WAIT
    assert found == Wait(slot=swap, asked=None, until=until, why=why)
    assert verdict(WAITING, holder=LIVE) == Park(until=until, why=why)


def test_the_request_to_end_goes_with_the_waiting_place() -> None:
    found = verdict(LEFT, holder=LIVE, overlap=Overlap.CANCEL_RUNNING)
    assert isinstance(found, Wait)
    assert found.asked == RunSwap(run=replace(LIVE, cancel_requested=True), seen=LIVE)


def test_a_row_that_was_asked_to_end_is_canceled_before_its_backoff_is_over() -> None:
    row = replace(
        a_run(MINE, state=RunState.RETRY_WAIT, attempt=2),
        cancel_requested=True,
        not_before=SOON + timedelta(hours=1),
    )
    slot = a_slot(running=MINE, waiting=OTHER)
    left = SlotSwap(slot=a_slot(waiting=OTHER), seen=slot)
    assert ended(verdict(slot, row)) == (RunState.CANCELED, "overlap after attempt 2", left)


def test_a_row_that_was_asked_to_end_and_lost_its_lease_is_canceled() -> None:
    row = replace(a_run(MINE, attempt=2), cancel_requested=True)
    found = verdict(a_slot(running=MINE), row, now=SOON + timedelta(minutes=2))
    assert ended(found)[:2] == (RunState.CANCELED, "overlap after attempt 2")


@pytest.mark.parametrize(
    ("overlap", "min_valid_version", "reason"),
    [
        (Overlap.CANCEL_RUNNING, 0, "overlap after attempt 1"),
        (Overlap.QUEUE_ONE, 1, "voided after attempt 1"),
    ],
)
def test_a_holder_without_a_right_is_ended_and_leaves_the_slot(
    overlap: Overlap, min_valid_version: int, reason: str
) -> None:
    other = an_occurrence(version=0, scheduled_for=NINE)
    holder = replace(BACKOFF, occurrence=other)
    slot = a_slot(running=other)
    found = verdict(slot, holder=holder, overlap=overlap, min_valid_version=min_valid_version)
    assert isinstance(found, EndHolder)
    assert found.slot == SlotSwap(slot=a_slot(), seen=slot)
    assert found.holder.seen == holder
    assert (found.holder.run.state, found.holder.run.reason) == (RunState.CANCELED, reason)
    assert found.holder.run.not_before is None


def test_a_skip_stands_on_the_slot_that_it_was_judged_by() -> None:
    unchanged = SlotSwap(slot=LEFT, seen=LEFT)
    found = verdict(LEFT, holder=LIVE, overlap=Overlap.SKIP_IF_RUNNING)
    reason = "2026-11-30T09:00:00.000Z was running"
    assert ended(found) == (RunState.SKIPPED_OVERLAP, reason, unchanged)


def test_a_replayed_row_that_holds_no_slot_may_be_skipped() -> None:
    row = a_run(MINE, state=RunState.RETRY_WAIT, attempt=0)
    found = verdict(LEFT, row, LIVE, overlap=Overlap.SKIP_IF_RUNNING)
    assert ended(found)[0] is RunState.SKIPPED_OVERLAP


def test_what_moved_since_it_was_read_is_asked_again() -> None:
    other = replace(MINE, version=2)
    live = replace(LIVE, occurrence=other)
    assert verdict(a_slot(running=other), holder=live) == AskAgain()


SKIP = MisfirePolicy(policy=Misfire.SKIP)
BOUNDED = MisfirePolicy(policy=Misfire.SKIP, max_lateness=timedelta(minutes=10))
LATE = MINE.scheduled_for + timedelta(minutes=9)


@pytest.mark.parametrize("misfire", [SKIP, MisfirePolicy(), BOUNDED])
def test_e5_the_one_that_waits_is_not_late(misfire: MisfirePolicy) -> None:
    assert isinstance(verdict(WAITING, holder=LIVE, misfire=misfire, now=LATE), Park)
    assert isinstance(verdict(a_slot(waiting=MINE), misfire=misfire, now=LATE), Claim)


def test_e5_but_for_max_lateness_and_what_the_ledger_remembers() -> None:
    left = SlotSwap(slot=LEFT, seen=WAITING)
    found = verdict(WAITING, holder=LIVE, misfire=BOUNDED, now=LATE + timedelta(minutes=2))
    assert ended(found) == (RunState.MISSED, "max_lateness", left)
    found = verdict(WAITING, holder=LIVE, now=MINE.scheduled_for + RUN_AGE_MAX + SECOND)
    assert ended(found) == (RunState.MISSED, "older than the ledger remembers", left)


def test_e5_a_miss_stands_on_the_slot_in_which_it_was_not_waiting() -> None:
    found = verdict(LEFT, holder=LIVE, misfire=SKIP, now=LATE)
    assert ended(found) == (RunState.MISSED, "skip", SlotSwap(slot=LEFT, seen=LEFT))


def test_a_voided_message_leaves_its_waiting_place_with_the_row_that_says_so() -> None:
    found = verdict(WAITING, min_valid_version=2, until=SOON, holder=LIVE)
    left = SlotSwap(slot=LEFT, seen=WAITING)
    assert ended(found) == (RunState.CANCELED, "voided", left)


def test_a_dropped_message_first_gives_its_waiting_place_back() -> None:
    left = SlotSwap(slot=LEFT, seen=WAITING)
    superseded = verdict(WAITING, until=MINE.scheduled_for, holder=LIVE)
    assert superseded == Drop(note=None, why="superseded", slot=left)
    voided = verdict(WAITING, min_valid_version=2, until=MINE.scheduled_for, holder=LIVE)
    assert isinstance(voided, Drop)
    assert (voided.note is not None, voided.slot) == (True, left)
    assert verdict(LEFT, until=MINE.scheduled_for) == Drop(note=None, why="superseded")


def test_a_message_that_meets_anothers_end_gives_its_waiting_place_back() -> None:
    row = a_run(replace(MINE, version=2), state=RunState.SUCCEEDED)
    assert before_head(a_message(MINE), row, SOON) is None, "the head tells of the slot"
    assert verdict(WAITING, row) == Forget(slot=SlotSwap(slot=LEFT, seen=WAITING))
    assert verdict(LEFT, row) == Forget()


def test_attempts_used_up_free_the_slot() -> None:
    slot = a_slot(running=MINE, waiting=OTHER)
    row = a_run(MINE, state=RunState.RETRY_WAIT, attempt=5)
    left = SlotSwap(slot=a_slot(waiting=OTHER), seen=slot)
    assert ended(verdict(slot, row)) == (RunState.DEAD, "attempts used up", left)


def test_a_later_authority_is_kept_in_the_place() -> None:
    row = replace(a_run(MINE, state=RunState.RETRY_WAIT), authorised_version=4)
    found = verdict(a_slot(), row)
    assert isinstance(found, Claim)
    assert found.slot is not None
    assert found.slot.slot.running == a_place(MINE, judged_version=4)


def test_a_retry_of_a_run_that_was_asked_to_end_becomes_its_end() -> None:
    retry = replace(a_run(MINE, state=RunState.RETRY_WAIT, attempt=3), reason="HTTP 503")
    run = overlapped(retry)
    assert (run.state, run.reason) == (RunState.CANCELED, "overlap after attempt 3")
    assert (run.not_before, run.cancel_requested) == (None, True)
