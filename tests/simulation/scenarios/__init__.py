"""Directed scenarios, for rules whose loss the seeds meet too rarely to rely on."""

from collections.abc import Callable

from tests.simulation.outages import (
    a_pause_in_the_middle_of_a_recovery,
    a_planner_that_dies_before_its_recovery_cursor,
    an_edit_in_the_middle_of_a_recovery,
    executors_that_are_out_for_three_hours,
    planners_that_are_out_for_three_hours,
)
from tests.simulation.scenarios.callbacks import CALLBACKS
from tests.simulation.scenarios.claims import CLAIMS
from tests.simulation.scenarios.limits import LIMITS
from tests.simulation.scenarios.planning import PLANNING
from tests.simulation.scenarios.replays import REPLAYS
from tests.simulation.scenarios.requests import REQUESTS
from tests.simulation.scenarios.slots import SLOTS
from tests.simulation.scenarios.zone_releases import ZONE_RELEASES
from tests.simulation.world import Parts, Verdict

Scenario = Callable[[Parts], Verdict]

SCENARIOS: tuple[Scenario, ...] = (
    *PLANNING,
    *CLAIMS,
    *SLOTS,
    *REQUESTS,
    *CALLBACKS,
    *REPLAYS,
    *ZONE_RELEASES,
    *LIMITS,
    planners_that_are_out_for_three_hours,
    executors_that_are_out_for_three_hours,
    an_edit_in_the_middle_of_a_recovery,
    a_pause_in_the_middle_of_a_recovery,
    a_planner_that_dies_before_its_recovery_cursor,
)
