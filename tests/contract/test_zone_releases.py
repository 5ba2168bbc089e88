"""The releases of zone data: a row that changes by comparison, and rules that stay."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bench.meter import bytes_of_item
from puntual.application.ports import ZoneReleases
from puntual.domain.errors import Unavailable
from puntual.domain.zone_releases import ReleasesInUse
from tests.builders import NINE
from tests.contract.conftest import Aws, World
from tests.contract.sdk import refusing, repeating
from tests.zone_data import DEPLOYED, FORMER, NO_SUMMER_TIME, pinned_rules, rules_with_berlin

FIRST = ReleasesInUse(current=FORMER, since=NINE)
SECOND = ReleasesInUse(
    current=DEPLOYED,
    since=NINE + timedelta(milliseconds=1),
    former=frozenset({FORMER, "2026.4"}),
)


@pytest.fixture
def releases(world: World) -> ZoneReleases:
    return world.zone_releases


def test_nothing_is_in_use_that_nobody_noted(releases: ZoneReleases) -> None:
    assert releases.in_use() is None
    assert releases.rules(FORMER) is None


def test_what_is_in_use_is_read_as_it_was_put(releases: ZoneReleases) -> None:
    assert releases.swap(FIRST, seen=None)
    assert releases.in_use() == FIRST
    assert releases.swap(SECOND, seen=FIRST)
    assert releases.in_use() == SECOND


@pytest.mark.parametrize("seen", [None, FIRST, replace(SECOND, former=frozenset())])
def test_who_saw_something_else_changes_nothing(
    releases: ZoneReleases, seen: ReleasesInUse | None
) -> None:
    assert releases.swap(SECOND, seen=None)
    assert not releases.swap(replace(SECOND, current="2027.1"), seen=seen)
    assert releases.in_use() == SECOND


def test_nothing_is_put_in_the_place_of_what_is_not_there(releases: ZoneReleases) -> None:
    assert not releases.swap(SECOND, seen=FIRST)
    assert releases.in_use() is None


def test_p9_what_was_to_be_put_and_stands_there_counts_as_put(releases: ZoneReleases) -> None:
    assert releases.swap(FIRST, seen=None)
    assert releases.swap(FIRST, seen=None)
    assert releases.swap(SECOND, seen=FIRST)
    assert releases.swap(SECOND, seen=FIRST)


def test_p9_a_write_that_the_sdk_repeats_is_our_own(aws: Aws) -> None:
    with repeating(aws.dynamodb, "PutItem"):
        assert aws.world.zone_releases.swap(FIRST, seen=None)


def test_rules_are_read_as_they_were_kept_and_stay(releases: ZoneReleases) -> None:
    former = rules_with_berlin(NO_SUMMER_TIME)
    releases.keep(former)
    releases.keep(replace(former, data={}))
    releases.keep(pinned_rules())
    assert releases.rules(FORMER) == former
    assert releases.rules(DEPLOYED) == pinned_rules()


def test_the_rules_of_all_zones_fit_a_row_several_times_over(aws: Aws) -> None:
    aws.world.zone_releases.keep(pinned_rules())
    [item] = aws.dynamodb.scan(TableName="zone_releases")["Items"]
    assert bytes_of_item(item) < 100_000


def test_a_throttle_is_unavailable(aws: Aws) -> None:
    with refusing(aws.dynamodb, "PutItem", "Oops", status=503), pytest.raises(Unavailable):
        aws.world.zone_releases.swap(FIRST, seen=None)
    with refusing(aws.dynamodb, "GetItem", "Oops", status=503), pytest.raises(Unavailable):
        aws.world.zone_releases.in_use()
