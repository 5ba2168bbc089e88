"""Directed scenarios of runs that end by a callback."""

from puntual.domain.policies import Overlap
from tests.simulation.io import Cue
from tests.simulation.scheduler import SECOND, FunctionKind
from tests.simulation.stage import TIMEOUT, Stage, by_callback, once, one_at_a_time
from tests.simulation.world import Parts, Verdict


def a_complete_before_the_answer_is_recorded(parts: Parts) -> Verdict:
    """E1. The target is done before our record of its 202, which hangs."""
    stage = Stage(parts, Cue(kind=FunctionKind.EXECUTOR, io="ledger.swap", skip=1, wait=9 * SECOND))
    stage.create(0, by_callback(once(60)))
    stage.first_calls_are_accepted()
    stage.calls_back(63, "complete", fire=60)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_heartbeat_that_meets_the_end(parts: Parts) -> Verdict:
    """E1. It has read a row that runs; the complete comes before it writes."""
    stage = Stage(parts, Cue(kind=FunctionKind.CALLBACK, io="ledger.swap", wait=9 * SECOND))
    stage.create(0, by_callback(once(60)))
    stage.first_calls_are_accepted()
    stage.calls_back(70, "heartbeat", fire=60)
    stage.calls_back(73, "complete", fire=60)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_fail_that_meets_a_complete(parts: Parts) -> Verdict:
    """E1. A target says both; the first of them hangs before it is recorded."""
    stage = Stage(parts, Cue(kind=FunctionKind.CALLBACK, io="ledger.record", wait=9 * SECOND))
    stage.create(0, by_callback(once(60)))
    stage.first_calls_are_accepted()
    stage.calls_back(70, "fail", fire=60, retry=False)
    stage.calls_back(73, "complete", fire=60)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_target_that_is_never_heard_of_again(parts: Parts) -> Verdict:
    """P7. Only the message that looks at the lease can start the next attempt."""
    stage = Stage(parts)
    stage.create(0, by_callback(once(60)))
    stage.first_calls_are_accepted()
    stage.ticks_each_minute(30)
    return stage.finish()


def a_complete_after_the_lease_is_lost(parts: Parts) -> Verdict:
    """E1. The second attempt runs when the target of the first one is done."""
    stage = Stage(parts)
    stage.create(0, by_callback(once(60)))
    stage.first_calls_are_accepted(2)
    stage.calls_back(150, "complete", fire=60, attempt=1)
    stage.calls_back(160, "complete", fire=60, attempt=2)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_target_that_is_asked_to_end(parts: Parts) -> Verdict:
    """E7. Its next heartbeat tells it, and it fails; then the one that waits may run."""
    stage = Stage(parts)
    stage.create(0, by_callback(one_at_a_time(130, Overlap.CANCEL_RUNNING, timeout=TIMEOUT)))
    stage.first_calls_are_accepted()
    stage.calls_back(100, "heartbeat", fire=60)
    stage.calls_back(140, "heartbeat", fire=60)
    stage.calls_back(150, "fail", fire=60)
    stage.ticks_each_minute(30)
    return stage.finish()


CALLBACKS = (
    a_complete_before_the_answer_is_recorded,
    a_heartbeat_that_meets_the_end,
    a_fail_that_meets_a_complete,
    a_target_that_is_never_heard_of_again,
    a_complete_after_the_lease_is_lost,
    a_target_that_is_asked_to_end,
)
