"""Directed scenarios of new zone data."""

from tests.simulation.io import Cue
from tests.simulation.releases import ReleaseStage, twice_around_the_change
from tests.simulation.scheduler import SECOND, FunctionKind
from tests.simulation.world import Parts, Verdict
from tests.zone_data import DEPLOYED, FORMER


def a_former_planner_that_outlives_its_release(parts: Parts) -> Verdict:
    """ADR 0013. It moves on what the replanner has just written, by the rules of its own release.

    The replanner dies after it has written a version, and before it plans its fire inline.
    """
    stage = ReleaseStage(
        parts,
        Cue(kind=FunctionKind.PLANNER, io="agenda.due", wait=120 * SECOND),
        Cue(kind=FunctionKind.REPLANNER, io="shards.get"),
    )
    stage.starts_with(FORMER)
    stage.create(0, twice_around_the_change())
    stage.former_planners(30)
    stage.notes(60, DEPLOYED)
    stage.replans(120, 1000, 1100)
    stage.ticks_each_minute(300)
    return stage.finish()


def a_release_that_is_deployed_for_two_minutes(parts: Parts) -> Verdict:
    """ADR 0013. Its planners move a schedule on, and then the one before it is deployed again."""
    stage = ReleaseStage(parts)
    stage.starts_with(DEPLOYED)
    stage.create(0, twice_around_the_change())
    stage.notes(20, FORMER)
    stage.former_planners(30)
    stage.notes(140, DEPLOYED)
    stage.replans(1100)
    stage.ticks_each_minute(140)
    return stage.finish()


def a_deployment_at_the_end_of_a_run(parts: Parts) -> Verdict:
    """ADR 0013. The replanner stops before it says that all is done; another release comes by."""
    stage = ReleaseStage(
        parts, Cue(kind=FunctionKind.REPLANNER, io="zone_releases.swap", wait=90 * SECOND)
    )
    stage.starts_with(DEPLOYED, FORMER)
    stage.create(0, twice_around_the_change())
    stage.replans(5)
    stage.notes(20, FORMER)
    stage.former_planners(30)
    stage.notes(140, DEPLOYED)
    stage.replans(1100)
    stage.ticks_each_minute(140)
    return stage.finish()


ZONE_RELEASES = (
    a_former_planner_that_outlives_its_release,
    a_release_that_is_deployed_for_two_minutes,
    a_deployment_at_the_end_of_a_run,
)
