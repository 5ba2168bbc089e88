"""Payload templates: a fixed set of placeholders, replaced by values of the occurrence alone.

Replaced within the strings of the parsed payload and never in its text, so what comes out is JSON
whatever goes in. Names of members stay, and so does every `<word>` that is no placeholder.
"""

import json
import re
from collections.abc import Mapping
from zoneinfo import ZoneInfo

from puntual.domain.instant import text_of
from puntual.domain.occurrence import Occurrence
from puntual.domain.policies import ATTEMPTS_MAX

PLACEHOLDERS = ("scheduled_for", "occurrence_id", "attempt", "schedule_id", "local_time")

_PLACEHOLDER = re.compile(f"<({'|'.join(PLACEHOLDERS)})>")


def values_of(occurrence: Occurrence, *, attempt: int, time_zone: str) -> dict[str, str]:
    """Give each placeholder's value; the local time is RFC 3339 with the zone's offset."""
    local = occurrence.scheduled_for.astimezone(ZoneInfo(time_zone))
    return {
        "scheduled_for": text_of(occurrence.scheduled_for),
        "occurrence_id": occurrence.id,
        "attempt": str(attempt),
        "schedule_id": occurrence.schedule,
        "local_time": local.isoformat(timespec="seconds"),
    }


def longest_values_of(occurrence: Occurrence) -> dict[str, str]:
    """Give values as long as any occurrence of this schedule can have."""
    return values_of(occurrence, attempt=ATTEMPTS_MAX, time_zone="UTC")


def rendered(payload: str, values: Mapping[str, str]) -> str:
    """Give a payload, compact JSON text, with its placeholders replaced."""
    if not _PLACEHOLDER.search(payload):
        return payload
    filled = _filled(json.loads(payload), values)
    return json.dumps(filled, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _filled(value: object, values: Mapping[str, str]) -> object:
    """Recursion is bounded by the depth that a payload may have."""
    match value:
        case str():
            return _PLACEHOLDER.sub(lambda found: values[found[1]], value)
        case list():
            return [_filled(each, values) for each in value]
        case dict():
            return {name: _filled(each, values) for name, each in value.items()}
        case _:
            return value
