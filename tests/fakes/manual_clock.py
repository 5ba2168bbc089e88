"""Clocks that stand still until a test moves them."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from puntual.application.ports import Clock
from puntual.domain.instant import truncated_to_millisecond


class ManualClock:
    def __init__(self, now: datetime) -> None:
        self._now = truncated_to_millisecond(now)

    def now(self) -> datetime:
        return self._now

    def advance(self, by: timedelta) -> None:
        assert by >= timedelta(0), "time only rises"
        self._now = truncated_to_millisecond(self._now + by)

    def advance_to(self, instant: datetime) -> None:
        """Move to an instant; one that has passed changes nothing."""
        self._now = max(self._now, truncated_to_millisecond(instant))


@dataclass(frozen=True, slots=True, kw_only=True)
class SkewedClock:
    """Another function's clock: the true one, off by a fixed amount."""

    true: Clock
    offset: timedelta

    def now(self) -> datetime:
        return truncated_to_millisecond(self.true.now() + self.offset)
