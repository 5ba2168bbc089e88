from datetime import UTC, datetime, timedelta

import pytest

from puntual.domain.zone_rules import ClockDifference, differing_zones
from tests.builders import NINE
from tests.zone_data import (
    BERLIN,
    HALF_AN_HOUR_AHEAD,
    NO_SUMMER_TIME,
    TWO_WEEKS_LATER,
    pinned_rules,
    rules_with,
    rules_with_berlin,
    tzif,
)

HOUR = 3600


def changes_from(rule: str, *, since: datetime = NINE) -> dict[str, ClockDifference]:
    return differing_zones(rules_with_berlin(rule), pinned_rules(), since=since)


def test_a_release_differs_nowhere_from_itself() -> None:
    pinned = pinned_rules()
    assert differing_zones(pinned, pinned, since=NINE) == {}


def test_a_name_that_changes_does_not_drag_its_zone_along() -> None:
    """A former alias may have got rules of its own."""
    former = rules_with({"Europe/Copenhagen": NO_SUMMER_TIME})
    assert set(differing_zones(former, pinned_rules(), since=NINE)) == {"Europe/Copenhagen"}


def test_every_name_of_a_zone_that_changes_is_found() -> None:
    assert set(changes_from(NO_SUMMER_TIME)) == set(BERLIN)


def test_the_instants_at_which_the_clocks_differ_are_those_of_summer_time() -> None:
    change = changes_from(NO_SUMMER_TIME)["Europe/Berlin"]
    assert change.spans[0] == (
        datetime(2027, 3, 28, 1, tzinfo=UTC),
        datetime(2027, 10, 31, 1, tzinfo=UTC),
    )
    assert len(change.spans) == 75
    assert change.shifts == {HOUR}


def test_a_change_two_weeks_later_differs_in_those_weeks_alone() -> None:
    change = changes_from(TWO_WEEKS_LATER)["Europe/Berlin"]
    assert change.spans[0] == (
        datetime(2027, 3, 28, 1, tzinfo=UTC),
        datetime(2027, 4, 11, 1, tzinfo=UTC),
    )


def test_a_zone_that_differs_now_does_so_from_now_on() -> None:
    change = changes_from(HALF_AN_HOUR_AHEAD)["Europe/Berlin"]
    assert change.spans[0][0] == NINE
    # Half an hour always, and more or less of it around the changes, which come sooner.
    assert change.shifts == {-1800, -1800 - HOUR, -1800 + HOUR}


def test_what_differed_in_the_past_alone_is_no_change() -> None:
    """The data of Berlin's real rule, but without the changes before 1996."""
    rule = "CET-1CEST,M3.5.0,M10.5.0/3"
    assert changes_from(rule) == {}
    assert changes_from(rule, since=datetime(1990, 1, 1, tzinfo=UTC)) != {}


def test_names_that_one_release_does_not_know_are_left_out() -> None:
    former = rules_with({"Mars/Phobos": NO_SUMMER_TIME})
    assert differing_zones(former, pinned_rules(), since=NINE) == {}


def test_the_data_of_a_release_are_read_as_zones() -> None:
    zone = rules_with({"Mars/Phobos": TWO_WEEKS_LATER}).zone("Mars/Phobos")
    assert (NINE + timedelta(days=150)).astimezone(zone).utcoffset() == timedelta(hours=2)
    with pytest.raises(KeyError):
        pinned_rules().zone("Mars/Phobos")
    assert tzif("<+0130>-1:30").startswith(b"TZif2")
