"""Instants are aware UTC datetimes; their text form sorts as they do."""

from datetime import UTC, datetime, timedelta

from puntual.domain.errors import Rejected

INSTANT_STEP = timedelta(microseconds=1)
"""No two instants are nearer to each other."""

MILLISECOND = timedelta(milliseconds=1)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
YEAR = timedelta(days=366)
"""The longest: twelve months, wherever they begin."""

HOUR_MINUTES = 60
DAY_MINUTES = 24 * HOUR_MINUTES
DAY_SECONDS = DAY_MINUTES * 60

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_INSTANT = datetime(1900, 1, 1, tzinfo=UTC)
LAST_INSTANT = datetime(2400, 1, 1, tzinfo=UTC)
"""No fire is looked for outside; inside, no zone and no step leaves the calendar."""

TEXT_LENGTH = len("2026-11-30T09:00:00.000Z")


def text_of(instant: datetime) -> str:
    """Give the sortable text of an instant, in milliseconds: `2026-11-30T09:00:00.000Z`."""
    # Not by strftime: its %Y leaves the zeros of years before 1000 out on Linux.
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def brief_text_of(instant: datetime) -> str:
    """Give an instant for people, no digit more than it has: `2026-11-30T09:00:00Z`."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def instant_of(text: str) -> datetime:
    """Read what `text_of` wrote; raises ValueError for anything that is not a UTC instant."""
    instant = datetime.fromisoformat(text)
    if instant.utcoffset() != timedelta(0):
        raise ValueError(f"{text!r} is not a UTC instant")
    return instant.astimezone(UTC)


def in_calendar(field: str, instant: datetime) -> datetime:
    """Give an instant that a caller named back; raises `Rejected` where nothing can fire."""
    if not FIRST_INSTANT <= instant <= LAST_INSTANT:
        allowed = f"an instant from {text_of(FIRST_INSTANT)} to {text_of(LAST_INSTANT)}"
        raise Rejected(field, instant.isoformat(), allowed)
    return instant


def near_calendar(wall: datetime) -> bool:
    """Tell whether a wall time, as if of UTC, may be an instant that can fire, in some zone."""
    return FIRST_INSTANT - DAY <= wall <= LAST_INSTANT + DAY


def truncated_to_millisecond(instant: datetime) -> datetime:
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def rounded_to_millisecond(instant: datetime) -> datetime:
    """Round up to what rows and messages can hold, so that nothing is due before its time."""
    return instant + (EPOCH - instant) % MILLISECOND


def minute_of(instant: datetime) -> datetime:
    """Give the UTC minute that an instant lies in: its bucket."""
    return instant.replace(second=0, microsecond=0)


def seconds_of(instant: datetime) -> int:
    """Give the whole seconds from 1970 to an instant, which are what clocks are computed with."""
    return (instant - EPOCH) // SECOND


def instant_at(seconds: int) -> datetime:
    return EPOCH + timedelta(seconds=seconds)
