"""What is deployed: the package that every fire is computed with, and what tests give."""

from datetime import timedelta
from importlib.metadata import version

import pytest

from puntual.adapters.tzdata_zone_data import TzdataZoneData
from puntual.application.ports import ZoneData
from puntual.domain.civil_time import zone_named
from puntual.domain.zone_names import zone_names
from tests.builders import NINE
from tests.fakes.given_zone_data import GivenZoneData
from tests.zone_data import DEPLOYED, pinned_rules

IMPLEMENTATIONS = (TzdataZoneData(), GivenZoneData(pinned_rules()))


@pytest.mark.parametrize("zone_data", IMPLEMENTATIONS)
def test_the_rules_are_those_of_every_name_that_schedules_may_have(zone_data: ZoneData) -> None:
    rules = zone_data.rules()
    assert rules.release == zone_data.release
    assert sorted(rules.data) == list(zone_names())
    for name in ("Europe/Berlin", "Asia/Tokyo", "UTC"):
        for days in (0, 200):
            local = NINE + timedelta(days=days)
            assert local.astimezone(rules.zone(name)).utcoffset() == (
                local.astimezone(zone_named(name)).utcoffset()
            )


def test_the_release_is_the_version_of_the_package() -> None:
    assert TzdataZoneData().release == version("tzdata")
    assert GivenZoneData(pinned_rules()).release == DEPLOYED
