"""Directed scenarios of planners and of those who write beside them."""

from puntual.domain.policies import Misfire
from puntual.domain.schedule import ScheduleKey
from puntual.domain.tenant import ScheduleId
from tests.simulation.io import Cue
from tests.simulation.scheduler import SECOND, FunctionKind
from tests.simulation.stage import Stage, each_hour_in_its_window, each_minute, once
from tests.simulation.workload import TENANT
from tests.simulation.world import Parts, Verdict

OTHER = ScheduleKey(tenant=TENANT, schedule=ScheduleId("s4"))
"""Lies in the same shard as KEY."""

FLEXIBLE_SCHEDULES = 24
"""So many that the jitter of some would put two of their fires the wrong way round."""


def a_create_that_meets_a_planner_after_an_outage(parts: Parts) -> Verdict:
    """P1. The announcement is old; the writer stops before its transaction, a whole pass runs."""
    stage = Stage(
        parts,
        Cue(kind=FunctionKind.API, io="schedules.create", skip=1, wait=15 * SECOND),
    )
    stage.create(0, once(300), OTHER)
    stage.create(1200, once(1240))
    stage.ticks(1201)
    stage.ticks_each_minute(1300)
    return stage.finish()


def a_planner_that_meets_a_create_after_an_outage(parts: Parts) -> Verdict:
    """P1. The planner has read every bucket and stops; a writer comes and goes."""
    stage = Stage(
        parts,
        Cue(kind=FunctionKind.PLANNER, io="shards.close", wait=30 * SECOND),
    )
    stage.create(0, once(300), OTHER)
    stage.ticks(1195)
    stage.create(1210, once(1250))
    stage.ticks_each_minute(1300)
    return stage.finish()


def a_relay_that_dies_at_each_send(parts: Parts) -> Verdict:
    """P7. The stream gives up on the page; the planner finds it in the outbox."""
    stage = Stage(parts, Cue(kind=FunctionKind.RELAY, io="lanes.send", times=9))
    stage.create(0, once(600))
    stage.ticks_each_minute(30)
    return stage.finish()


def clocks_that_go_forward_under_windows(parts: Parts) -> Verdict:
    """P10. Fires come nearer to each other than their windows are long."""
    stage = Stage(parts)
    for number in range(FLEXIBLE_SCHEDULES):
        key = ScheduleKey(tenant=TENANT, schedule=ScheduleId(f"s{number}"))
        stage.create(0, each_hour_in_its_window(5400), key)
    stage.ticks_each_minute(30)
    return stage.finish()


def a_planner_that_dies_after_it_deleted(parts: Parts) -> Verdict:
    """E8, E11. Fires were missed while nobody planned; the one who finds them dies at the end."""
    stage = Stage(
        parts,
        Cue(kind=FunctionKind.API, io="schedules.create", after=True),
        Cue(kind=FunctionKind.PLANNER, io="agenda.delete", after=True),
    )
    stage.create(0, each_minute(0, 290, misfire=Misfire.SKIP))
    stage.explain_misses(until=900)
    stage.ticks_each_minute(900)
    return stage.finish()


def a_writer_that_dies_after_its_transaction(parts: Parts) -> Verdict:
    """E10. It was the first of its shard."""
    stage = Stage(parts, Cue(kind=FunctionKind.API, io="schedules.create", after=True))
    stage.create(0, once(300))
    stage.ticks_each_minute(30)
    return stage.finish()


PLANNING = (
    a_create_that_meets_a_planner_after_an_outage,
    a_planner_that_meets_a_create_after_an_outage,
    a_relay_that_dies_at_each_send,
    clocks_that_go_forward_under_windows,
    a_planner_that_dies_after_it_deleted,
    a_writer_that_dies_after_its_transaction,
)
