"""Directed scenarios of runs that are asked for."""

from tests.simulation.stage import Stage, each_minute
from tests.simulation.world import Parts, Verdict


def a_backfill_of_what_a_pause_has_ended(parts: Parts) -> Verdict:
    """P3. It is asked for after the pause, so only its authorised_version lets it run."""
    stage = Stage(parts)
    stage.create(0, each_minute(0, 600))
    stage.pause(130)
    stage.resume(131)
    stage.backfill(140, 30, 125)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_backfill_while_fires_go_on(parts: Parts) -> Verdict:
    """ADR 0018. It leaves the schedule's own cursor alone: its instants' buckets are closed."""
    stage = Stage(parts)
    stage.create(0, each_minute(0, 1500))
    stage.backfill(515, 30, 125)
    stage.ticks_each_minute(30)
    return stage.finish()


def two_backfills_at_once(parts: Parts) -> Verdict:
    """ADR 0018. Each reserves its share of the rate."""
    stage = Stage(parts)
    stage.create(0, each_minute(0, 600))
    for at in (215, 216):
        stage.backfill(at, 30, 185)
    stage.ticks_each_minute(30)
    return stage.finish()


REQUESTS = (
    a_backfill_of_what_a_pause_has_ended,
    a_backfill_while_fires_go_on,
    two_backfills_at_once,
)
