"""What gates hold, and until when."""

import pytest

from puntual.domain.gate import hold_of
from tests.builders import NINE


@pytest.mark.parametrize(
    ("holds", "chance", "seconds"),
    [(0, 0.0, 1), (0, 0.999, 2), (1, 0.5, 3), (4, 0.0, 16), (5, 0.5, 45), (10**6, 0.5, 45)],
)
def test_a_wait_grows_from_hold_to_hold_up_to_a_minute(
    holds: int, chance: float, seconds: float
) -> None:
    wait = (hold_of(NINE, holds=holds, chance=chance) - NINE).total_seconds()
    assert wait == pytest.approx(seconds, abs=0.01)
