"""Instants are aware UTC datetimes; their text form sorts as they do."""

from datetime import UTC, datetime, timedelta

MILLISECOND = timedelta(milliseconds=1)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)

TEXT_LENGTH = len("2026-11-30T09:00:00.000Z")


def text_of(instant: datetime) -> str:
    """Give the sortable text of an instant, in milliseconds: `2026-11-30T09:00:00.000Z`."""
    utc = instant.astimezone(UTC)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"


def instant_of(text: str) -> datetime:
    """Read what `text_of` wrote; raises ValueError for anything that is not a UTC instant."""
    instant = datetime.fromisoformat(text)
    if instant.utcoffset() != timedelta(0):
        raise ValueError(f"{text!r} is not a UTC instant")
    return instant.astimezone(UTC)


def truncated_to_millisecond(instant: datetime) -> datetime:
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def minute_of(instant: datetime) -> datetime:
    """Give the UTC minute that an instant lies in: its bucket."""
    return instant.replace(second=0, microsecond=0)
