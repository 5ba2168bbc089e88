"""Directed scenarios of limits: what waits at a gate, and what must not wait for it."""

from dataclasses import replace
from datetime import timedelta

from puntual.domain.policies import Misfire, Policies
from puntual.domain.schedule import ScheduleKey
from puntual.domain.tenant import Quotas, ScheduleId, Tenant
from tests.simulation.io import Cue
from tests.simulation.scheduler import SECOND, FunctionKind
from tests.simulation.stage import NEVER_LATE, Stage, aimed, by_callback, each_minute, once
from tests.simulation.workload import TENANT
from tests.simulation.world import Parts, Verdict

DEAD_ORIGIN = "https://dead.example"
DEAD_TIMEOUT = timedelta(seconds=60)
DEAD_SCHEDULES = 8
DEAD_UNTIL = 1800
RUNNING = 4
DEAD_SECONDS_MAX = RUNNING * DEAD_UNTIL // 3
"""A third of what all attempts at once have of those thirty minutes."""

SCHEDULES = 12


def _key(number: int) -> ScheduleKey:
    return ScheduleKey(tenant=TENANT, schedule=ScheduleId(f"s{number}"))


def a_dead_target_beside_one_that_lives(parts: Parts) -> Verdict:
    """Four attempts at once are all that the tenant has; each to the dead one takes a minute."""
    stage = Stage(parts)
    stage.limit(Tenant(tenant=TENANT, quotas=Quotas(running_max=RUNNING)))
    stage.receivers.hangs = frozenset({DEAD_ORIGIN})
    lives = replace(each_minute(0, DEAD_UNTIL), policies=Policies(misfire=NEVER_LATE))
    for number in range(DEAD_SCHEDULES):
        stage.create(0, aimed(lives, DEAD_ORIGIN, timeout=DEAD_TIMEOUT), _key(number))
    stage.create(0, lives, _key(DEAD_SCHEDULES))
    stage.at(DEAD_UNTIL + 60, lambda: _look_around(stage))
    stage.ticks_each_minute(30)
    return stage.finish()


def _look_around(stage: Stage) -> None:
    ran = sum(key.schedule == f"s{DEAD_SCHEDULES}" for key in stage.record.effects)
    if ran < DEAD_UNTIL // 60:
        stage.record.fail("THE LIVING WAIT FOR THE DEAD", f"{ran} ran", stage.scheduler.now)
    seconds = stage.receivers.hung_for[DEAD_ORIGIN] / SECOND
    if seconds > DEAD_SECONDS_MAX:
        stage.record.fail("DEAD TARGET EATS CAPACITY", f"{seconds} s", stage.scheduler.now)


def an_executor_that_dies_with_its_share(parts: Parts) -> Verdict:
    """It had the only one there is; the others wait until it has run out."""
    stage = Stage(parts, Cue(kind=FunctionKind.EXECUTOR, io="ledger.swap", after=True))
    stage.limit(Tenant(tenant=TENANT, quotas=Quotas(running_max=1)))
    stage.create(0, each_minute(0, 250))
    stage.ticks_each_minute(30)
    return stage.finish()


def more_at_once_than_may_run(parts: Parts) -> Verdict:
    """Twelve are due together and take their time; one may run."""
    stage = Stage(parts)
    stage.limit(Tenant(tenant=TENANT, quotas=Quotas(running_max=1)))
    stage.receivers.takes = 3 * SECOND
    for number in range(SCHEDULES):
        stage.create(0, once(60), _key(number))
    stage.ticks_each_minute(30)
    return stage.finish()


def more_fires_than_the_rate_allows(parts: Parts) -> Verdict:
    """Twelve are due together, and would be missed if their wait counted; six a minute may go."""
    stage = Stage(parts)
    stage.limit(Tenant(tenant=TENANT, quotas=Quotas(fires_per_minute_max=6)))
    for number in range(SCHEDULES):
        stage.create(0, once(60, misfire=Misfire.SKIP), _key(number))
    stage.ticks_each_minute(30)
    return stage.finish()


def a_run_by_callback_beside_one_that_waits(parts: Parts) -> Verdict:
    """One may run; its target has taken it, and works on it for two minutes."""
    stage = Stage(parts)
    stage.limit(Tenant(tenant=TENANT, quotas=Quotas(running_max=1)))
    stage.create(0, by_callback(once(60)))
    stage.create(0, once(90), _key(1))
    stage.first_calls_are_accepted()
    for at in (100, 140):
        stage.calls_back(at, "heartbeat", fire=60)
    stage.calls_back(180, "complete", fire=60)
    stage.ticks_each_minute(30)
    return stage.finish()


LIMITS = (
    a_run_by_callback_beside_one_that_waits,
    a_dead_target_beside_one_that_lives,
    an_executor_that_dies_with_its_share,
    more_at_once_than_may_run,
    more_fires_than_the_rate_allows,
)
