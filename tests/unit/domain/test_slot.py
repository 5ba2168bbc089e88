"""Who may come into a slot: every policy, against whoever is in it and whoever waits (E7)."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from puntual.domain.occurrence import Kind, Occurrence
from puntual.domain.policies import Overlap, Policies
from puntual.domain.run import RUN_AGE_MAX, Run, RunState
from puntual.domain.slot import (
    Contest,
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
)
from tests.builders import NINE, a_place, a_run, a_slot, an_occurrence

MINUTE = timedelta(minutes=1)
FIRST = an_occurrence(scheduled_for=NINE)
SECOND = an_occurrence(scheduled_for=NINE + MINUTE)
MINE = an_occurrence(scheduled_for=NINE + 2 * MINUTE)
NOW = NINE + 2 * MINUTE

APART = [overlap for overlap in Overlap if overlap is not Overlap.ALLOW]
LIVE = replace(a_run(FIRST), lease_until=NOW + MINUTE)
EXPIRED = a_run(FIRST, attempt=3)
BACKOFF = a_run(FIRST, state=RunState.RETRY_WAIT, attempt=2)


def found(
    overlap: Overlap,
    slot: Slot,
    holder: Run | None = None,
    *,
    mine: Occurrence = MINE,
    min_valid_version: int = 0,
    now: datetime = NOW,
) -> Contest:
    return contest(
        a_place(mine),
        Occupancy(slot=slot, holder=holder),
        overlap=overlap,
        min_valid_version=min_valid_version,
        now=now,
    )


def entered(contested: Contest) -> tuple[Place | None, Place | None]:
    assert isinstance(contested, Enters), contested
    return contested.slot.running, contested.slot.waiting


def test_only_schedules_whose_runs_may_not_overlap_have_a_slot() -> None:
    assert {overlap for overlap in Overlap if Policies(overlap=overlap).has_slot} == {*APART}
    assert not Policies().has_slot


@pytest.mark.parametrize("overlap", APART)
def test_an_empty_slot_is_entered(overlap: Overlap) -> None:
    assert entered(found(overlap, a_slot())) == (a_place(MINE), None)


@pytest.mark.parametrize("overlap", APART)
def test_the_one_that_waited_enters_when_the_slot_is_empty(overlap: Overlap) -> None:
    assert entered(found(overlap, a_slot(waiting=MINE))) == (a_place(MINE), None)


@pytest.mark.parametrize("overlap", APART)
@pytest.mark.parametrize("waiting", [None, SECOND])
def test_the_holder_enters_again_whoever_waits(
    overlap: Overlap, waiting: Occurrence | None
) -> None:
    slot = a_slot(running=MINE, waiting=waiting)
    contested = found(overlap, slot)
    assert isinstance(contested, Enters)
    assert not SlotSwap(slot=contested.slot, seen=slot).changes


@pytest.mark.parametrize("holder", [LIVE, EXPIRED, BACKOFF], ids=["live", "expired", "backoff"])
def test_under_skip_if_running_it_is_skipped_by_name(holder: Run) -> None:
    assert found(Overlap.SKIP_IF_RUNNING, a_slot(running=FIRST), holder) == Skipped(
        reason="2026-11-30T09:00:00.000Z was running"
    )


def test_a_manual_run_is_named_by_its_ref() -> None:
    manual = an_occurrence(kind=Kind.MANUAL, request_id="r-1")
    skipped = found(Overlap.SKIP_IF_RUNNING, a_slot(running=manual), a_run(manual))
    assert skipped == Skipped(reason="2026-11-30T09:00:00.000Z~manual~r-1 was running")


@pytest.mark.parametrize("holder", [LIVE, EXPIRED, BACKOFF], ids=["live", "expired", "backoff"])
@pytest.mark.parametrize("waiting", [None, MINE])
def test_under_queue_one_it_waits_behind_a_run_that_has_not_ended(
    holder: Run, waiting: Occurrence | None
) -> None:
    slot = a_slot(running=FIRST, waiting=waiting)
    waits = found(Overlap.QUEUE_ONE, slot, holder)
    assert waits == Waits(slot=replace(slot, waiting=a_place(MINE)), asked=None)


@pytest.mark.parametrize("overlap", APART)
@pytest.mark.parametrize("holder", [LIVE, EXPIRED, BACKOFF], ids=["live", "expired", "backoff"])
def test_a_second_one_that_would_wait_is_skipped(overlap: Overlap, holder: Run) -> None:
    slot = a_slot(running=FIRST, waiting=SECOND)
    assert found(overlap, slot, holder) == Skipped(reason="2026-11-30T09:00:00.000Z was running")


@pytest.mark.parametrize("overlap", APART)
def test_nobody_comes_before_the_one_that_waits(overlap: Overlap) -> None:
    skipped = found(overlap, a_slot(waiting=SECOND))
    assert skipped == Skipped(reason="2026-11-30T09:01:00.000Z was waiting")


def test_under_cancel_running_a_live_run_is_asked_once() -> None:
    slot = a_slot(running=FIRST)
    waits = replace(slot, waiting=a_place(MINE))
    assert found(Overlap.CANCEL_RUNNING, slot, LIVE) == Waits(slot=waits, asked=LIVE)
    asked = replace(LIVE, cancel_requested=True)
    assert found(Overlap.CANCEL_RUNNING, slot, asked) == Waits(slot=waits, asked=None)


@pytest.mark.parametrize(("holder", "attempt"), [(EXPIRED, 3), (BACKOFF, 2)])
def test_under_cancel_running_a_run_without_a_live_lease_is_ended(
    holder: Run, attempt: int
) -> None:
    ends = EndsHolder(holder=holder, reason=f"overlap after attempt {attempt}")
    assert found(Overlap.CANCEL_RUNNING, a_slot(running=FIRST), holder) == ends


@pytest.mark.parametrize("overlap", APART)
@pytest.mark.parametrize(("holder", "attempt"), [(EXPIRED, 3), (BACKOFF, 2)])
def test_a_voided_holder_without_a_live_lease_is_ended_by_whoever_meets_it(
    overlap: Overlap, holder: Run, attempt: int
) -> None:
    mine = replace(MINE, version=3)
    ends = EndsHolder(holder=holder, reason=f"voided after attempt {attempt}")
    slot = a_slot(running=FIRST, waiting=SECOND)
    assert found(overlap, slot, holder, mine=mine, min_valid_version=2) == ends


@pytest.mark.parametrize("holder", [LIVE, replace(BACKOFF, authorised_version=2)])
def test_a_voided_holder_with_a_live_lease_or_one_authorised_since_holds_on(holder: Run) -> None:
    skipped = found(Overlap.SKIP_IF_RUNNING, a_slot(running=FIRST), holder, min_valid_version=2)
    assert isinstance(skipped, Skipped)


ENDED = [a_run(FIRST, state=state) for state in RunState if state.is_terminal]
OTHERS = a_run(replace(FIRST, version=2))


@pytest.mark.parametrize("holder", [None, OTHERS, *ENDED])
def test_a_holder_whose_row_is_gone_ended_or_anothers_counts_as_none(holder: Run | None) -> None:
    assert entered(found(Overlap.QUEUE_ONE, a_slot(running=FIRST), holder)) == (
        a_place(MINE),
        None,
    )


def test_a_voided_one_that_waits_counts_as_none() -> None:
    mine = replace(MINE, version=3)
    slot = a_slot(waiting=SECOND)
    entering = found(Overlap.QUEUE_ONE, slot, mine=mine, min_valid_version=2)
    assert entered(entering) == (a_place(mine), None)
    slot = a_slot(running=FIRST, waiting=SECOND)
    waits = found(Overlap.QUEUE_ONE, slot, LIVE, mine=mine, min_valid_version=2)
    assert waits == Waits(slot=replace(slot, waiting=a_place(mine)), asked=None)


def test_one_that_waits_by_a_later_authority_counts() -> None:
    slot = replace(a_slot(), waiting=a_place(SECOND, judged_version=2))
    assert isinstance(found(Overlap.QUEUE_ONE, slot, min_valid_version=2), Skipped)


def test_one_that_waits_at_an_instant_that_is_anothers_now_counts_as_none() -> None:
    before = replace(MINE, version=0)
    assert entered(found(Overlap.QUEUE_ONE, a_slot(waiting=before))) == (a_place(MINE), None)


def test_one_that_has_waited_for_longer_than_the_ledger_remembers_counts_as_none() -> None:
    slot = a_slot(waiting=SECOND)
    at_most = SECOND.scheduled_for + RUN_AGE_MAX
    assert isinstance(found(Overlap.QUEUE_ONE, slot, now=at_most), Skipped)
    assert isinstance(found(Overlap.QUEUE_ONE, slot, now=at_most + MINUTE), Enters)


def test_a_holder_at_the_same_key_came_since_the_row_was_read() -> None:
    other = replace(MINE, version=2)
    live = replace(a_run(other), lease_until=NOW + MINUTE)
    assert found(Overlap.CANCEL_RUNNING, a_slot(running=other), live) == Moved()


@pytest.mark.parametrize(
    ("slot", "left"),
    [
        (a_slot(running=MINE, waiting=SECOND), a_slot(waiting=SECOND)),
        (a_slot(running=FIRST, waiting=MINE), a_slot(running=FIRST)),
        (a_slot(running=FIRST, waiting=SECOND), a_slot(running=FIRST, waiting=SECOND)),
        (a_slot(), a_slot()),
    ],
)
def test_who_leaves_leaves_the_others_in(slot: Slot, left: Slot) -> None:
    assert slot.without(MINE.id) == left
