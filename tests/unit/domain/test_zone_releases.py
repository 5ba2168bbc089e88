from datetime import timedelta

from puntual.domain.zone_releases import ReleasesInUse, with_deployed
from tests.builders import NINE

LATER = NINE + timedelta(days=1)
FIRST = ReleasesInUse(current="2026.5", since=NINE)


def test_the_first_release_follows_on_nothing() -> None:
    noted = with_deployed(None, "2026.5", now=NINE)
    assert noted == FIRST
    assert not noted.is_behind("2026.5")


def test_a_release_that_stays_is_not_noted_again() -> None:
    assert with_deployed(FIRST, "2026.5", now=LATER) is FIRST


def test_a_new_release_leaves_the_old_one_to_be_followed_by_cursors() -> None:
    noted = with_deployed(FIRST, "2026.6", now=LATER)
    assert noted == ReleasesInUse(current="2026.6", since=LATER, former=frozenset({"2026.5"}))
    assert FIRST.is_behind("2026.6")
    assert noted.is_behind("2026.6")


def test_a_release_that_was_deployed_for_a_minute_has_moved_cursors_on() -> None:
    minute = LATER + timedelta(minutes=1)
    back = with_deployed(with_deployed(FIRST, "2026.6", now=LATER), "2026.5", now=minute)
    assert back == ReleasesInUse(current="2026.5", since=minute, former=frozenset({"2026.6"}))
    assert back.is_behind("2026.5")
