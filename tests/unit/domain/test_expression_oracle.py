"""The engine against a clock that is watched minute by minute; the two share no code."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from random import Random
from zoneinfo import ZoneInfo

import pytest

from puntual.domain.expression import Fold, Gap, Rule

MINUTE = timedelta(minutes=1)
MARGIN = timedelta(hours=26)
TUPLES_PER_TRANSITION = 14

TRANSITIONS = {
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
}


@dataclass(frozen=True)
class Field:
    text: str
    values: frozenset[int]


@dataclass(frozen=True)
class Cron:
    minute: Field
    hour: Field
    day: Field
    weekday: Field

    @property
    def text(self) -> str:
        return f"{self.minute.text} {self.hour.text} {self.day.text} * {self.weekday.text}"

    def names(self, wall: datetime) -> bool:
        day = wall.day in self.day.values
        weekday = wall.isoweekday() % 7 in self.weekday.values
        either = self.day.text != "*" and self.weekday.text != "*"
        return (
            wall.minute in self.minute.values
            and wall.hour in self.hour.values
            and ((day or weekday) if either else (day and weekday))
        )


def a_field(chance: Random, low: int, high: int) -> Field:
    if chance.random() < 0.5:
        values = chance.sample(range(low, high + 1), chance.randint(1, 3))
        return Field(",".join(map(str, values)), frozenset(values))
    first, last = sorted(chance.sample(range(low, high + 1), 2))
    return Field(f"{first}-{last}", frozenset(range(first, last + 1)))


def a_stepped_field(chance: Random, high: int) -> Field:
    step = chance.choice([1, 2, 3, 5, 7, 10, 15])
    text = "*" if step == 1 else f"*/{step}"
    return Field(text, frozenset(range(0, high + 1, step)))


def a_cron(chance: Random) -> Cron:
    day, weekday = Field("*", frozenset(range(1, 32))), Field("*", frozenset(range(7)))
    hours = [a_field(chance, 0, 23), a_field(chance, 0, 3), a_stepped_field(chance, 23)]
    return Cron(
        chance.choice([a_field(chance, 0, 59), a_stepped_field(chance, 59)]),
        chance.choice(hours),
        a_field(chance, 1, 31) if chance.random() < 0.2 else day,
        a_field(chance, 0, 6) if chance.random() < 0.2 else weekday,
    )


@cache
def watched(zone: str, around: datetime) -> list[tuple[datetime, datetime]]:
    """Pairs of instant and wall, minute by minute, as somebody in front of the clock sees them."""
    info, start = ZoneInfo(zone), around - 2 * MARGIN
    instants = [start + minute * MINUTE for minute in range(4 * MARGIN // MINUTE)]
    return [(instant, instant.astimezone(info).replace(tzinfo=None)) for instant in instants]


def fires_seen(
    cron: Cron, clock: list[tuple[datetime, datetime]], gap: Gap, fold: Fold
) -> list[datetime]:
    shown: dict[datetime, list[datetime]] = {}
    for instant, wall in clock:
        shown.setdefault(wall, []).append(instant)
    interval = len(cron.hour.values) == 24
    if fold is Fold.AUTO:
        fold = Fold.BOTH if interval else Fold.FIRST
    fires = set()
    for (_, before), (instant, wall) in pairwise(clock):
        if gap is Gap.FIRE_AFTER and not interval and wall > before + MINUTE:
            missing = range(1, (wall - before) // MINUTE)
            if any(cron.names(before + minute * MINUTE) for minute in missing):
                fires.add(instant)
        passes = {Fold.FIRST: shown[wall][:1], Fold.SECOND: shown[wall][-1:]}
        if cron.names(wall) and instant in passes.get(fold, shown[wall]):
            fires.add(instant)
    return sorted(fires)


@pytest.mark.parametrize("name", TRANSITIONS)
def test_a_rule_fires_when_a_watched_clock_shows_its_times(name: str) -> None:
    zone, text = TRANSITIONS[name]
    around = datetime.fromisoformat(text).replace(tzinfo=UTC)
    clock, chance = watched(zone, around), Random(name)
    for _ in range(TUPLES_PER_TRANSITION):
        cron, gap, fold = a_cron(chance), chance.choice([*Gap]), chance.choice([*Fold])
        rule = Rule(
            expression=cron.text, time_zone=zone, gap=gap, fold=fold, anchor=around - MARGIN
        )
        start = around + timedelta(seconds=chance.randint(-90_000, 14_400))
        end = around + MARGIN
        expected = [fire for fire in fires_seen(cron, clock, gap, fold) if start < fire <= end]
        case = f"{cron.text} in {zone} {gap} {fold} from {start}"
        assert list(rule.fires_between(start, end, limit=5_000)) == expected, case
        if expected:
            assert rule.last_fire(end) == expected[-1], case
