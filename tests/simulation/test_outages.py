"""What becomes of what an outage made late: exactly what each policy says, wherever it was."""

import pytest

from tests.simulation.outages import LENGTHS, RULES, Of, OutageStage

WITHOUT_BACKLOG = {Of.PLANNERS, Of.EXECUTORS}
"""Behind a relay or queue that was out for a day stand pages of all its fires. The simulated relay
takes one after the other, so that many would make late what comes due after the outage, too."""


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("of", Of)
def test_each_policy_makes_of_an_outage_what_it_says(of: Of, length: str) -> None:
    has_backlog = length == "a day" and of not in WITHOUT_BACKLOG
    rules = ("hourly",) if has_backlog else tuple(RULES)
    verdict = OutageStage(of, LENGTHS[length], rules=rules).judged()
    assert not verdict.failures, "\n".join(verdict.report())
