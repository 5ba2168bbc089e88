"""What becomes of what an outage made late: exactly what each policy says, wherever it was."""

import pytest

from tests.simulation.outages import LENGTHS, Of, OutageStage


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("of", Of)
def test_each_policy_makes_of_an_outage_what_it_says(of: Of, length: str) -> None:
    verdict = OutageStage(of, LENGTHS[length]).judged()
    assert not verdict.failures, "\n".join(verdict.report())
