"""Directed scenarios of replays."""

from datetime import timedelta

from puntual.domain.lane import Lane
from puntual.domain.message import Message
from puntual.domain.occurrence import Occurrence
from puntual.domain.policies import Overlap, RetryPolicy
from tests.simulation.io import Cue
from tests.simulation.scheduler import SECOND, FunctionKind, instant_at
from tests.simulation.stage import KEY, Stage, once, one_at_a_time
from tests.simulation.world import Parts, Verdict


def a_replay_of_one_that_died(parts: Parts) -> Verdict:
    """E2. It died at once; its target has been mended since."""
    stage = Stage(parts)
    stage.create(0, once(60))
    stage.calls_are_answered(400)
    stage.replay(120, of=60)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_replay_that_is_asked_for_twice(parts: Parts) -> Verdict:
    """E2. The client heard nothing; meanwhile the round has been had."""
    stage = Stage(parts)
    stage.create(0, once(60))
    stage.calls_are_answered(400, 400)
    stage.replay(120, of=60, request="again")
    stage.replay(200, of=60, request="again")
    stage.ticks_each_minute(30)
    return stage.finish()


def a_replay_after_a_cancel(parts: Parts) -> Verdict:
    """E2. It is refused."""
    stage = Stage(parts)
    stage.create(0, once(60))
    stage.calls_are_answered(400)
    stage.cancel(90)
    stage.replay(120, of=60)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_replay_beyond_the_last_attempt(parts: Parts) -> Verdict:
    """E2. It is refused, once the breaker has let all twenty go."""
    second = timedelta(seconds=1)
    stage = Stage(parts)
    stage.create(0, once(60, retry=RetryPolicy(max_attempts=20, base=second, cap=second)))
    stage.calls_are_answered(*(503 for _ in range(20)))
    stage.replay(9000, of=60)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_page_that_is_deleted_late(parts: Parts) -> Verdict:
    """E2. It was sent, its round is over and the next one is opened before it is deleted."""
    stage = Stage(parts, Cue(kind=FunctionKind.RELAY, io="outbox.delete", skip=1, wait=20 * SECOND))
    stage.create(0, once(60))
    stage.calls_are_answered(400, 400)
    # Well within a minute, by all clocks: a page's place has the minute in it.
    stage.replay(130, of=60)
    stage.replay(136, of=60)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_dead_letter_of_an_earlier_round(parts: Parts) -> Verdict:
    """E2. A duplicate was received too often; the message of the new round is on its way."""
    stage = Stage(parts, Cue(kind=FunctionKind.RELAY, io="lanes.send", skip=1, wait=30 * SECOND))
    stage.create(0, once(60))
    stage.calls_are_answered(400)
    stage.replay(120, of=60)
    occurrence = Occurrence(
        tenant=KEY.tenant, schedule=KEY.schedule, version=1, scheduled_for=instant_at(60 * SECOND)
    )
    duplicate = Message(
        occurrence=occurrence, available_at=occurrence.scheduled_for, lane=Lane.STRICT
    )
    stage.at(123, lambda: stage.queues.bury(duplicate))
    stage.ticks_each_minute(30)
    return stage.finish()


def a_cancel_that_is_older_than_its_replay(parts: Parts) -> Verdict:
    """E2. Judged voided by one executor, ended by another, resumed and replayed, all meanwhile."""
    stage = Stage(
        parts,
        Cue(kind=FunctionKind.EXECUTOR, io="ledger.swap", skip=1, wait=40 * SECOND),
        Cue(kind=FunctionKind.RELAY, io="lanes.send", skip=1, wait=60 * SECOND),
    )
    stage.create(0, once(60))
    stage.first_call_fails()
    stage.pause(61)
    stage.at(80, stage.queues.send_again)
    stage.resume(85)
    stage.replay(90, of=60)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_replay_in_its_backoff(parts: Parts) -> Verdict:
    """E2. It holds the slot, its own version is voided, and another one of the schedule comes."""
    stage = Stage(parts)
    stage.create(0, one_at_a_time(130, Overlap.QUEUE_ONE))
    stage.calls_are_answered(400, 503)
    stage.pause(70)
    stage.resume(75)
    stage.replay(80, of=60)
    stage.ticks_each_minute(30)
    return stage.finish()


REPLAYS = (
    a_replay_of_one_that_died,
    a_replay_that_is_asked_for_twice,
    a_replay_after_a_cancel,
    a_replay_beyond_the_last_attempt,
    a_page_that_is_deleted_late,
    a_dead_letter_of_an_earlier_round,
    a_cancel_that_is_older_than_its_replay,
    a_replay_in_its_backoff,
)
