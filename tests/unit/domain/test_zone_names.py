from datetime import UTC, datetime, timedelta
from importlib.resources import files
from zoneinfo import ZoneInfo

import pytest

from puntual.domain.civil_time import UnknownTimeZone, check_time_zone, zone_named
from puntual.domain.zone_names import canonical_zone, is_zone_name, spelling_of, zone_names

ALIASES = [name for name in zone_names() if canonical_zone(name) != name]
SAMPLES = [
    datetime(1900, 1, 1, tzinfo=UTC) + timedelta(days=97 * n, hours=5 * n) for n in range(760)
]
"""Over two centuries, at all times of the year and the day."""


def test_the_names_are_those_that_the_package_lists() -> None:
    listed = (files("tzdata") / "zones").read_text().split()
    assert list(zone_names()) == sorted(set(listed) - {"Factory"})
    assert len(ALIASES) > 200


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("US/Eastern", "America/New_York"),
        ("Asia/Calcutta", "Asia/Kolkata"),
        ("Europe/Kiev", "Europe/Kyiv"),
        ("Europe/Berlin", "Europe/Berlin"),
        ("UTC", "UTC"),
        ("Etc/UTC", "UTC"),
        ("Zulu", "UTC"),
        ("GMT", "Etc/GMT"),
        ("Etc/GMT+5", "Etc/GMT+5"),
        ("Mars/Phobos", "Mars/Phobos"),
    ],
)
def test_a_name_stands_for_a_zone(name: str, canonical: str) -> None:
    assert canonical_zone(name) == canonical


def test_what_a_name_stands_for_is_no_alias() -> None:
    assert {canonical_zone(name) for name in zone_names()} == set(zone_names()) - set(ALIASES)


def test_every_alias_shows_what_its_zone_shows() -> None:
    for alias in ALIASES:
        spelt, zone = ZoneInfo(alias), ZoneInfo(canonical_zone(alias))
        for instant in SAMPLES:
            assert instant.astimezone(spelt).utcoffset() == instant.astimezone(zone).utcoffset(), (
                alias
            )


def test_aliases_share_what_is_worked_out_for_their_zone() -> None:
    assert zone_named("Asia/Calcutta").key == "Asia/Kolkata"


@pytest.mark.parametrize(
    ("careless", "meant"),
    [
        ("europe/berlin", "Europe/Berlin"),
        ("AMERICA/NEW_YORK", "America/New_York"),
        ("America/New York", "America/New_York"),
        (" utc ", "UTC"),
        ("us/eastern", "US/Eastern"),
    ],
)
def test_a_name_in_a_careless_spelling_is_refused_with_the_right_one(
    careless: str, meant: str
) -> None:
    with pytest.raises(UnknownTimeZone) as caught:
        check_time_zone(careless)
    assert caught.value.allowed.endswith(f"which is {meant}")
    assert caught.value.value == careless


def test_no_spelling_is_meant_by_what_is_no_name() -> None:
    assert spelling_of("Europe/Brlin") is None
    assert not is_zone_name("Factory")
    assert spelling_of("factory") is None


def test_careless_spellings_tell_all_names_apart() -> None:
    assert all(spelling_of(name.upper()) == name for name in zone_names())
