"""Directed scenarios of one message and its row."""

from datetime import timedelta

from puntual.domain.lane import Lane
from puntual.domain.message import Message
from puntual.domain.occurrence import Occurrence
from puntual.domain.policies import Misfire, RetryPolicy
from tests.simulation.io import Cue
from tests.simulation.scheduler import SECOND, SKEW_MAX, FunctionKind, instant_at
from tests.simulation.stage import KEY, Stage, each_minute, once
from tests.simulation.world import Parts, Verdict


def a_lease_that_ends_later_than_it_says(parts: Parts) -> Verdict:
    """P5. Its holder's clock is two seconds slow, and those of the others two seconds fast."""
    stage = Stage(parts, Cue(kind=FunctionKind.EXECUTOR, io="ledger.swap", after=True))
    stage.scheduler.executor_skews = [-SKEW_MAX, -SKEW_MAX, SKEW_MAX, SKEW_MAX]
    stage.create(0, once(60))
    stage.at(66, stage.queues.send_again)
    stage.ticks_each_minute(30)
    return stage.finish()


def an_outcome_that_comes_too_late(parts: Parts) -> Verdict:
    """E1. The first executor hangs past its lease, the second one dies with the same message."""
    verdicts = []
    for seed in range(6):  # Whether a stale receipt still deletes is the queue's to choose.
        stage = Stage(
            parts,
            Cue(kind=FunctionKind.EXECUTOR, io="ledger.record", wait=75 * SECOND),
            Cue(kind=FunctionKind.EXECUTOR, io="ledger.swap", after=True, skip=1),
            seed=seed,
        )
        stage.create(0, once(60))
        stage.ticks_each_minute(30)
        verdicts.append(stage.finish())
    failed = [verdict for verdict in verdicts if verdict.failures]
    return (failed or verdicts)[0]


def a_dead_letter_of_a_run_that_lives(parts: Parts) -> Verdict:
    """E4. A duplicate is dead-lettered while its run is under way."""
    stage = Stage(parts, Cue(kind=FunctionKind.EXECUTOR, io="ledger.record", wait=4 * SECOND))
    stage.create(0, once(60))
    occurrence = Occurrence(
        tenant=KEY.tenant, schedule=KEY.schedule, version=1, scheduled_for=instant_at(60 * SECOND)
    )
    duplicate = Message(
        occurrence=occurrence, available_at=occurrence.scheduled_for, lane=Lane.STRICT
    )
    stage.at(63, lambda: stage.queues.bury(duplicate))
    stage.ticks_each_minute(30)
    return stage.finish()


def a_claim_that_is_still_on_its_way(parts: Parts) -> Verdict:
    """E6. A claim was checked, then an edit took its instant away; the message comes again."""
    stage = Stage(
        parts,
        Cue(kind=FunctionKind.API, io="schedules.advance", wait=8 * SECOND),
        Cue(kind=FunctionKind.EXECUTOR, io="ledger.swap", wait=100 * SECOND),
        Cue(kind=FunctionKind.EXECUTOR, io="ledger.swap", after=True),
    )
    stage.create(0, each_minute(0, 70))
    stage.edit(54, once(1200))
    stage.ticks_each_minute(30)
    return stage.finish()


def a_verdict_that_is_older_than_its_clock(parts: Parts) -> Verdict:
    """E5. An executor stops with the head just read; an edit then takes its instant over.

    Its own version would call the run missed by now, and the next one has it still to run.
    """
    stage = Stage(
        parts,
        Cue(kind=FunctionKind.API, io="schedules.advance", wait=10 * SECOND),
        Cue(kind=FunctionKind.EXECUTOR, io="schedules.head", after=True, wait=70 * SECOND),
        Cue(kind=FunctionKind.RELAY, io="lanes.send", skip=1, wait=100 * SECOND),
    )
    stage.create(0, each_minute(0, 3600, misfire=Misfire.SKIP))
    stage.edit(54, once(60))
    stage.ticks_each_minute(200)
    return stage.finish()


def an_executor_that_dies_after_the_last_outcome(parts: Parts) -> Verdict:
    """E11. Its message comes again and meets a terminal row."""
    cue = Cue(kind=FunctionKind.EXECUTOR, io="ledger.record", after=True)
    stage = Stage(parts, cue, seed=2)  # in which its receiver answers in time
    stage.create(0, once(60))
    stage.ticks_each_minute(30)
    return stage.finish()


def a_retry_that_is_due_in_time_and_comes_too_late(parts: Parts) -> Verdict:
    """ADR 0019. Its backoff ends before the deadline; who has its message hangs past it."""
    second = timedelta(seconds=1)
    retry = RetryPolicy(base=second, cap=second, deadline=30 * second)
    hangs = Cue(kind=FunctionKind.EXECUTOR, io="schedules.head", skip=1, wait=60 * SECOND)
    stage = Stage(parts, hangs)
    stage.create(0, once(60, retry=retry))
    stage.calls_are_answered(503)
    stage.ticks_each_minute(30)
    return stage.finish()


CLAIMS = (
    a_retry_that_is_due_in_time_and_comes_too_late,
    a_lease_that_ends_later_than_it_says,
    an_outcome_that_comes_too_late,
    a_dead_letter_of_a_run_that_lives,
    a_claim_that_is_still_on_its_way,
    a_verdict_that_is_older_than_its_clock,
    an_executor_that_dies_after_the_last_outcome,
)
