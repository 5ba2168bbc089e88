"""The directed scenarios pass where every rule holds."""

import pytest

from tests.simulation.scenarios import SCENARIOS, Scenario
from tests.simulation.world import Parts


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_nothing_goes_wrong_in(scenario: Scenario) -> None:
    assert scenario(Parts()).failures == ()
