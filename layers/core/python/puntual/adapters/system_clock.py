"""The function's own clock."""

from datetime import UTC, datetime

from puntual.domain.instant import truncated_to_millisecond


class SystemClock:
    def now(self) -> datetime:
        return truncated_to_millisecond(datetime.now(UTC))
