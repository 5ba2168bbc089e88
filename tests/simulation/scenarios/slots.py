"""Directed scenarios of the slot."""

from datetime import timedelta

from puntual.domain.policies import Misfire, MisfirePolicy, Overlap
from tests.simulation.io import Cue
from tests.simulation.scheduler import SECOND, FunctionKind
from tests.simulation.stage import TIMEOUT, Stage, once, one_at_a_time
from tests.simulation.world import Parts, Verdict

SLOT_WRITE = "ledger.swap_with_slot"


def two_claims_of_one_slot(parts: Parts) -> Verdict:
    """E7. Both saw it free; the first hangs until the second has claimed, and died."""
    stage = Stage(
        parts,
        Cue(kind=FunctionKind.EXECUTOR, io=SLOT_WRITE, wait=65 * SECOND),
        Cue(kind=FunctionKind.EXECUTOR, io=SLOT_WRITE, after=True),
    )
    stage.create(0, one_at_a_time(130, Overlap.QUEUE_ONE))
    stage.ticks_each_minute(30)
    return stage.finish()


def a_skip_behind_a_run_that_has_ended(parts: Parts) -> Verdict:
    """E7. It ended between the reading of the slot and the writing of the skip."""
    stage = Stage(
        parts,
        Cue(kind=FunctionKind.EXECUTOR, io="ledger.record_and_free", wait=70 * SECOND),
        Cue(kind=FunctionKind.EXECUTOR, io=SLOT_WRITE, skip=1, wait=30 * SECOND),
    )
    stage.create(0, one_at_a_time(130, Overlap.SKIP_IF_RUNNING))
    stage.ticks_each_minute(30)
    return stage.finish()


def a_duplicate_that_waits_for_what_has_ended(parts: Parts) -> Verdict:
    """E7. One copy hangs before it takes the waiting place; to the other it is late by then."""
    stage = Stage(
        parts,
        Cue(kind=FunctionKind.EXECUTOR, io=SLOT_WRITE, after=True),
        Cue(kind=FunctionKind.EXECUTOR, io=SLOT_WRITE, skip=1, wait=80 * SECOND),
    )
    skip = MisfirePolicy(policy=Misfire.SKIP)
    stage.create(0, one_at_a_time(130, Overlap.QUEUE_ONE, misfire=skip))
    stage.explain_misses(until=900)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_waiting_one_that_is_superseded(parts: Parts) -> Verdict:
    """E7. It waits behind a run that died; an edit that began before it takes its instant away."""
    stage = Stage(
        parts,
        Cue(kind=FunctionKind.EXECUTOR, io=SLOT_WRITE, after=True),
        Cue(kind=FunctionKind.API, io="schedules.advance", wait=8 * SECOND),
    )
    stage.create(0, one_at_a_time(130, Overlap.QUEUE_ONE))
    stage.edit(118, once(1200))
    stage.ticks_each_minute(30)
    return stage.finish()


def a_voided_run_in_its_backoff(parts: Parts) -> Verdict:
    """E7. Its own message comes after the backoff only; others come before."""
    stage = Stage(parts)
    stage.create(0, one_at_a_time(250, Overlap.SKIP_IF_RUNNING, timeout=TIMEOUT))
    stage.first_call_fails()
    stage.pause(100)
    stage.resume(101)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_voided_one_that_waits(parts: Parts) -> Verdict:
    """E7. The run before it is voided too, and gone; its own message has not come yet."""
    stage = Stage(parts, Cue(kind=FunctionKind.EXECUTOR, io=SLOT_WRITE, after=True))
    lease = timedelta(seconds=60)
    stage.create(0, one_at_a_time(130, Overlap.QUEUE_ONE, timeout=lease))
    stage.pause(128)
    stage.resume(129)
    stage.edit(130, once(147, overlap=Overlap.QUEUE_ONE), seen=3)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_request_to_end_that_meets_a_backoff(parts: Parts) -> Verdict:
    """E7. An attempt has failed; before that is recorded, the run is asked to end."""
    stage = Stage(parts, Cue(kind=FunctionKind.EXECUTOR, io="ledger.record", wait=80 * SECOND))
    stage.create(0, one_at_a_time(130, Overlap.CANCEL_RUNNING))
    stage.first_call_fails()
    stage.ticks_each_minute(30)
    return stage.finish()


SLOTS = (
    two_claims_of_one_slot,
    a_skip_behind_a_run_that_has_ended,
    a_duplicate_that_waits_for_what_has_ended,
    a_waiting_one_that_is_superseded,
    a_voided_run_in_its_backoff,
    a_voided_one_that_waits,
    a_request_to_end_that_meets_a_backoff,
)
