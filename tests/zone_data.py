"""Zone data that no release has, made for tests."""

import re
import struct
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from puntual.adapters.tzdata_zone_data import TzdataZoneData
from puntual.domain.zone_rules import ZoneRules

DEPLOYED, FORMER = "2026.6", "2026.5"

BERLIN = ("Europe/Berlin", "Europe/Copenhagen", "Arctic/Longyearbyen")
"""A zone and two of its aliases."""

TWO_WEEKS_LATER = "CET-1CEST,M4.2.0,M10.5.0/3"
NO_SUMMER_TIME = "CET-1"
NO_WINTER_TIME = "CEST-2"
HALF_AN_HOUR_AHEAD = "<+0130>-1:30<+0230>,M3.5.0,M10.5.0/3"


@cache
def pinned_rules() -> ZoneRules:
    """Give what is deployed, under the name that tests give it."""
    return replace(TzdataZoneData().rules(), release=DEPLOYED)


def tzif(rule: str) -> bytes:
    """Give TZif data (RFC 8536) that have gone by one POSIX rule for ever."""
    name = re.match(r"<[^>]+>|[A-Za-z]+", rule)
    assert name is not None
    text = name[0].strip("<>").encode() + b"\0"
    version_1 = _header(types=1, characters=1) + bytes(7)
    version_2 = _header(types=1, characters=len(text)) + struct.pack(">lBB", 0, 0, 0) + text
    return version_1 + version_2 + b"\n" + rule.encode() + b"\n"


def rules_with(zones: Mapping[str, str], *, release: str = FORMER) -> ZoneRules:
    """Give a release like the pinned one, but for some names that go by other POSIX rules."""
    pinned = pinned_rules().data
    return ZoneRules(
        release=release, data={**pinned, **{name: tzif(rule) for name, rule in zones.items()}}
    )


def rules_with_berlin(rule: str, *, release: str = FORMER) -> ZoneRules:
    return rules_with(dict.fromkeys(BERLIN, rule), release=release)


def _header(*, types: int, characters: int) -> bytes:
    return b"TZif2" + bytes(15) + struct.pack(">6l", 0, 0, 0, 0, types, characters)
