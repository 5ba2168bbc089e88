"""The engine against a clock that is watched minute by minute; the two share no code.

Every zone is watched around one of its changes, with a few random rules; the nightly profile takes
every change since 1901 instead.
"""

import os
import zoneinfo
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from zoneinfo import ZoneInfo

import pytest

from puntual.domain.expression import Fold, Gap, Rule
from tests.unit.domain.random_times import random_times
from tests.unit.domain.watched_clock import (
    DAY,
    DAYS_WALKED_MAX,
    JUDGED_SECONDS,
    Change,
    Watch,
    WatchedRule,
    changes_between,
    offset_of,
    watch_around,
)

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
FIRST_YEAR, LAST_YEAR = (1901, 2060) if NIGHTLY else (1970, 2040)
CHANGES_PER_ZONE_MAX = 10_000 if NIGHTLY else 1
TUPLES_PER_CHANGE = 2 if NIGHTLY else 5
TUPLES_PER_ODD_CHANGE = 100 if NIGHTLY else 14
TUPLES_MIN = 20_000 if NIGHTLY else 2_000
SEEN_FAR_SHARE = 0.15
FIRES_MAX = 150

STEP_SECONDS = DAY if NIGHTLY else 5 * DAY
"""No zone changes twice within a week, of which the nightly walk makes sure more finely."""

NO_ZONE = "Factory"
"""What a machine has before anybody tells it where it is; no rule can name it."""

ZONES = sorted(zoneinfo.available_timezones() - {NO_ZONE})
REST_YEAR = 2000
FAR_SEEN = timedelta(days=DAYS_WALKED_MAX - 2)

ODD_CHANGES = {
    "America/New_York spring": ("America/New_York", "2026-03-08T07:00"),
    "America/New_York autumn": ("America/New_York", "2026-11-01T06:00"),
    "Europe/Dublin negative": ("Europe/Dublin", "2025-10-26T01:00"),
    "Australia/Lord_Howe half hour back": ("Australia/Lord_Howe", "2025-04-05T15:00"),
    "Australia/Lord_Howe half hour on": ("Australia/Lord_Howe", "2025-10-04T15:30"),
    "Antarctica/Troll two hours on": ("Antarctica/Troll", "2025-03-30T01:00"),
    "Antarctica/Troll two hours back": ("Antarctica/Troll", "2025-10-26T01:00"),
    "Pacific/Apia lost day": ("Pacific/Apia", "2011-12-30T10:00"),
    "Pacific/Kwajalein repeated day": ("Pacific/Kwajalein", "1969-09-30T13:00"),
    "America/Sao_Paulo midnight": ("America/Sao_Paulo", "2018-11-04T03:00"),
    "America/Havana midnight twice": ("America/Havana", "2025-11-02T05:00"),
    "Africa/Cairo late evening": ("Africa/Cairo", "2024-10-31T21:00"),
    "America/Nuuk date changes": ("America/Nuuk", "2025-03-30T01:00"),
    "Africa/Casablanca Ramadan": ("Africa/Casablanca", "2025-02-23T02:00"),
    "America/Scoresbysund cancelling": ("America/Scoresbysund", "2024-03-31T01:00"),
    "Asia/Almaty leap day": ("Asia/Almaty", "2024-02-29T18:00"),
    "Asia/Kathmandu quarter hour": ("Asia/Kathmandu", "1985-12-31T18:30"),
    "America/Santiago back beside the edge of a period": ("America/Santiago", "1973-03-11T03:00"),
    "America/Santiago on beside the edge of a period": ("America/Santiago", "1999-10-10T04:00"),
    "America/New_York after 2037": ("America/New_York", "2050-11-06T06:00"),
    "Africa/Monrovia from part of a minute": ("Africa/Monrovia", "1972-01-07T00:44:30"),
    "Africa/Monrovia between parts of a minute": ("Africa/Monrovia", "1919-03-01T00:43:08"),
    "America/St_Johns on by part of a minute": ("America/St_Johns", "1919-05-06T02:30:52"),
    "America/St_Johns back by part of a minute": ("America/St_Johns", "1931-10-26T01:30:52"),
    "America/Paramaribo by twelve seconds": ("America/Paramaribo", "1911-01-01T03:40:40"),
}


def seconds_of(year: int) -> int:
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())


@cache
def changes_of(zone: str) -> list[Change]:
    start, end = seconds_of(FIRST_YEAR), seconds_of(LAST_YEAR + 1)
    return list(changes_between(ZoneInfo(zone), start, end, step=STEP_SECONDS))


def watched_changes_of(zone: str) -> list[Change]:
    """Choose changes, or a moment of rest in a zone that has none."""
    changes = changes_of(zone)
    if not changes:
        offset = offset_of(ZoneInfo(zone), seconds_of(REST_YEAR))
        return [Change(seconds_of(REST_YEAR), offset, offset)]
    return Random(zone).sample(changes, min(len(changes), CHANGES_PER_ZONE_MAX))


def judge(zone: str, change: Change, *, tuples: int) -> None:
    """Compare engine and oracle on random rules from random starts around one change."""
    watch, chance = watch_around(zone, change), Random(f"{zone} {change}")
    for _ in range(tuples):
        judge_one(chance, watch, zone, change)


def judge_one(chance: Random, watch: Watch, zone: str, change: Change) -> None:
    wall = datetime.fromtimestamp(
        change.instant
        + chance.choice([change.before, change.after])
        + chance.randint(-3_600, 3_600),
        UTC,
    )
    times = random_times(chance, wall.replace(tzinfo=None))
    gap, fold = chance.choice([*Gap]), chance.choice([*Fold])
    around = datetime.fromtimestamp(change.instant, UTC)
    first = around - timedelta(seconds=JUDGED_SECONDS)
    end = around + timedelta(seconds=JUDGED_SECONDS)
    start = first + (end - first) * chance.random() ** 2
    rule = Rule(expression=times.text, time_zone=zone, gap=gap, fold=fold, anchor=first)
    case = f"{times.text!r} in {zone} {gap} {fold} from {start} around {around}"

    fires = watch.fires(times, gap, fold)
    later = [fire for fire in fires if start < fire <= end]
    earlier = [fire for fire in fires if first <= fire <= start]
    assert list(rule.fires_between(start, end, limit=FIRES_MAX)) == later[:FIRES_MAX], case
    following, last = rule.next_fire(start), rule.last_fire(start)
    if later:
        assert following == later[0], case
        assert rule.last_fire(end) == later[-1], case
    else:
        assert following is None or following > end, case
    if earlier:
        assert last == earlier[-1], case
    else:
        assert last is None or last < first, case
    if chance.random() < SEEN_FAR_SHARE:
        far = WatchedRule(times=times, zone=zone, gap=gap, fold=fold)
        if not later:
            assert seen_from(start, following) == seen_from(start, far.next_seen(start)), case
        if not earlier:
            assert seen_from(start, last) == seen_from(start, far.last_seen(start)), case


def seen_from(start: datetime, fire: datetime | None) -> datetime | None:
    """Give a fire that is near enough for the oracle to look there."""
    return None if fire is None or abs(fire - start) > FAR_SEEN else fire


@pytest.mark.parametrize("zone", ZONES)
def test_a_rule_fires_when_a_watched_clock_shows_its_times(zone: str) -> None:
    for change in watched_changes_of(zone):
        judge(zone, change, tuples=TUPLES_PER_CHANGE)


@pytest.mark.parametrize("name", ODD_CHANGES)
def test_a_rule_fires_when_a_clock_shows_its_times_around_an_odd_change(name: str) -> None:
    zone, text = ODD_CHANGES[name]
    around = int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
    info = ZoneInfo(zone)
    change = Change(around, offset_of(info, around - 1), offset_of(info, around))
    judge(zone, change, tuples=TUPLES_PER_ODD_CHANGE)


@pytest.mark.parametrize("seed", range(200 if NIGHTLY else 20))
def test_a_rate_fires_as_often_as_it_says_after_its_anchor(seed: int) -> None:
    chance = Random(seed)
    anchor = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=chance.randint(0, 10_000_000))
    value, unit = chance.randint(1, 300), chance.choice(["minute", "hour", "day"])
    interval = value * {"minute": 60, "hour": 3_600, "day": 86_400}[unit]
    walked = [anchor + timedelta(seconds=interval * number) for number in range(1, 60)]
    text = f"rate({value} {unit}{chance.choice(['', 's'])})"
    rule = Rule(expression=text, time_zone=chance.choice(ZONES), anchor=anchor)
    start = anchor + (walked[-1] - anchor) * chance.random() - timedelta(seconds=interval * 2)
    end = walked[-1]
    expected = [fire for fire in walked if start < fire]
    assert list(rule.fires_between(start, end, limit=1_000)) == expected, text
    earlier = [fire for fire in walked if fire <= start]
    assert rule.last_fire(start) == (earlier[-1] if earlier else None), text


def test_enough_is_watched() -> None:
    changing = [zone for zone in ZONES if changes_of(zone)]
    watched = sum(len(watched_changes_of(zone)) for zone in changing) * TUPLES_PER_CHANGE
    assert len(changing) > 400
    assert all(watched_changes_of(zone) for zone in changing)
    assert watched >= TUPLES_MIN
