"""How many fires each minute of the coming day will bring, and who makes the herds among them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import nlargest
from typing import NamedTuple

from puntual.domain.errors import Rejected
from puntual.domain.expression import Rule
from puntual.domain.fire_minutes import EVERY_MINUTE, FireMinutes
from puntual.domain.instant import DAY, DAY_MINUTES, HOUR_MINUTES, MINUTE, minute_of

BUSIEST_SHOWN_MAX = 10
HERDS_SHOWN_MAX = 5
EXPRESSIONS_SHOWN_MAX = 20

MINUTE_0_SHARE_HIGH = 0.1
"""Six times an even spread: what `*/6` makes by itself."""

_UNIX_FIELD_COUNT = 5
_UNHASHED = "0"
_UNHASHED_STEP = "*/"


class RuleCount(NamedTuple):
    """A rule, and how many schedules have it; the anchor of one that is not paced is any."""

    rule: Rule
    schedules: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePage:
    """The rules of some active schedules of a tenant, chosen by nothing that they say.

    `share` is about how much of all of them it is, in (0, 1]; pages do not overlap. `unreadable`
    are the schedules whose rules are not among `counts`, since they could not be read;
    `unreadable_rule` is the text of one of these.
    """

    counts: tuple[RuleCount, ...]
    share: float
    unreadable: int = 0
    unreadable_rule: str | None = None

    @property
    def schedules(self) -> int:
        return sum(count.schedules for count in self.counts) + self.unreadable


class ZonedExpression(NamedTuple):
    """What a rule's author wrote of it."""

    expression: str
    time_zone: str


class Herd(NamedTuple):
    """Schedules of one expression and zone that fire together."""

    zoned: ZonedExpression
    fires: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionForecast:
    """What the schedules of one expression and zone make of the day together."""

    zoned: ZonedExpression
    schedules: int
    fires: int
    minute_0_fires: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyMinute:
    """A minute with its fires, and who makes most of them."""

    start: datetime
    fires: int
    herds: tuple[Herd, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Of the 1,440 minutes from `start` on, by scheduled time.

    `share` is that of the active schedules that were read, in (0, 1]; below 1, all numbers but
    `schedules_read`, `unreadable` and `distinct_expressions` are estimates for all of them.
    `unreadable_rule` is an example of the unreadable ones, for whoever runs Puntual.
    """

    start: datetime
    minutes: tuple[int, ...]
    fires: int
    minute_0_fires: int
    minute_0_herds: tuple[Herd, ...]
    busiest: tuple[BusyMinute, ...]
    expressions: tuple[ExpressionForecast, ...]
    distinct_expressions: int
    schedules: int
    schedules_read: int
    unreadable: int
    unreadable_rule: str | None
    share: float

    @property
    def end(self) -> datetime:
        """The first instant that is not in it."""
        return self.start + DAY

    @property
    def is_sampled(self) -> bool:
        return self.share < 1

    @property
    def minute_0_share(self) -> float | None:
        """The share of fires in the first minute of an hour of UTC; None without fires."""
        return self.minute_0_fires / self.fires if self.fires else None

    @property
    def hints(self) -> tuple[str, ...]:
        """Sentences for whoever could spread the fires."""
        share = self.minute_0_share
        if share is None or share < MINUTE_0_SHARE_HIGH:
            return ()
        hint = (
            f"{share:.0%} of the fires fall on minute 0 of an hour, where an even spread has "
            f"{1 / HOUR_MINUTES:.0%}: H in the minute field of a unix expression gives each "
            "schedule a minute of its own."
        )
        zoned, fires = self.minute_0_herds[0]
        spread = spread_by_hash(zoned.expression)
        if spread is None:
            return (hint,)
        herd = f"{fires} of them come from {zoned.expression} in {zoned.time_zone}"
        return (hint, f"{herd}; {spread} would spread them.")


class _ExpressionMinutes(NamedTuple):
    """An expression: how many of its schedules fire in which minutes, as bits, and all of them."""

    zoned: ZonedExpression
    rules: Mapping[int, int]
    schedules: int

    def fires_in(self, minutes: int) -> int:
        return sum(
            schedules * (bits & minutes).bit_count() for bits, schedules in self.rules.items()
        )


@dataclass(slots=True)
class _Read:
    """What pages came to."""

    by_text: dict[ZonedExpression, dict[int, int]] = field(default_factory=dict)
    share: float = 0.0
    unreadable: int = 0
    unreadable_rule: str | None = None

    def take(self, page: RulePage, minutes_of: Callable[[Rule], int]) -> None:
        self.share += page.share
        self.unreadable += page.unreadable
        self.unreadable_rule = self.unreadable_rule or page.unreadable_rule
        for rule, schedules in page.counts:
            try:
                bits = minutes_of(rule)
            except Rejected:
                self.unreadable += schedules
                self.unreadable_rule = self.unreadable_rule or rule.expression
                continue
            rules = self.by_text.setdefault(ZonedExpression(rule.expression, rule.time_zone), {})
            rules[bits] = rules.get(bits, 0) + schedules

    def expressions(self) -> list[_ExpressionMinutes]:
        """Give the expressions, those with most schedules first."""
        expressions = [
            _ExpressionMinutes(zoned, rules, sum(rules.values()))
            for zoned, rules in self.by_text.items()
        ]
        expressions.sort(key=lambda expression: -expression.schedules)
        return expressions


def first_minute(now: datetime) -> datetime:
    """Give the first minute that has not begun before `now`."""
    minute = minute_of(now)
    return minute if minute == now else minute + MINUTE


def forecast_of(pages: Iterable[RulePage], *, now: datetime) -> Forecast:
    """Forecast the fires of active schedules; those of a part of them if `pages` are no more.

    The work is bounded by the number of rules, whatever they fire: some ten microseconds each.
    """
    start = first_minute(now)
    minute_0 = _minute_0(start)
    read = _Read()
    minutes_of = FireMinutes(start).of
    for page in pages:
        read.take(page, minutes_of)
    assert read.share > 0, "a forecast is of something"
    share, expressions = read.share, read.expressions()
    schedules = sum(expression.schedules for expression in expressions) + read.unreadable
    minutes = _tally(expressions, schedules)
    return Forecast(
        start=start,
        minutes=tuple(_scaled(fires, share) for fires in minutes),
        fires=_scaled(sum(minutes), share),
        minute_0_fires=_scaled(sum(minutes[-start.minute % HOUR_MINUTES :: HOUR_MINUTES]), share),
        minute_0_herds=_herds(minute_0, expressions, share),
        busiest=_busiest(start, minutes, expressions, share),
        expressions=_expressions(minute_0, expressions, share),
        distinct_expressions=len(expressions),
        schedules=_scaled(schedules, share),
        schedules_read=schedules,
        unreadable=read.unreadable,
        unreadable_rule=read.unreadable_rule,
        share=share,
    )


def spread_by_hash(expression: str) -> str | None:
    """Write a unix expression that fires on minute 0 with H instead; None for any other."""
    fields = expression.split()
    if len(fields) != _UNIX_FIELD_COUNT:
        return None
    minute, *others = fields
    if minute == _UNHASHED:
        return " ".join(["H", *others])
    if minute.startswith(_UNHASHED_STEP):
        return " ".join([f"H/{minute.removeprefix(_UNHASHED_STEP)}", *others])
    return None


def _tally(expressions: Iterable[_ExpressionMinutes], schedules: int) -> list[int]:
    """Add up how many fire in each minute.

    All 1,440 counters are one pile of integers, of which the k-th holds everyone's binary digit k,
    and are added to side by side, with a carry from each to the next.
    """
    counts: dict[int, int] = {}
    for expression in expressions:
        for bits, count in expression.rules.items():
            counts[bits] = counts.get(bits, 0) + count
    digits = [0] * schedules.bit_length()
    for bits, count in counts.items():
        for lowest in range(count.bit_length()):
            place, carry = lowest, bits if count >> lowest & 1 else 0
            while carry:
                digits[place], carry = digits[place] ^ carry, digits[place] & carry
                place += 1
    return [
        sum((digit >> minute & 1) << place for place, digit in enumerate(digits))
        for minute in range(DAY_MINUTES)
    ]


def _busiest(
    start: datetime, minutes: Sequence[int], expressions: Sequence[_ExpressionMinutes], share: float
) -> tuple[BusyMinute, ...]:
    numbers = nlargest(
        BUSIEST_SHOWN_MAX,
        (number for number, fires in enumerate(minutes) if fires),
        key=lambda number: minutes[number],
    )
    return tuple(
        BusyMinute(
            start=start + number * MINUTE,
            fires=_scaled(minutes[number], share),
            herds=_herds(1 << number, expressions, share),
        )
        for number in numbers
    )


def _herds(
    minutes: int, expressions: Sequence[_ExpressionMinutes], share: float
) -> tuple[Herd, ...]:
    """Find who makes most fires of some minutes; expressions with most schedules come first."""
    most = minutes.bit_count()
    found: list[Herd] = []
    for expression in expressions:
        # Nobody who comes later has more to fire.
        if len(found) == HERDS_SHOWN_MAX and found[-1].fires >= expression.schedules * most:
            break
        fires = expression.fires_in(minutes)
        if fires:
            found.append(Herd(expression.zoned, fires))
            found.sort(key=lambda herd: -herd.fires)
            del found[HERDS_SHOWN_MAX:]
    return tuple(herd._replace(fires=_scaled(herd.fires, share)) for herd in found)


def _expressions(
    minute_0: int, expressions: Sequence[_ExpressionMinutes], share: float
) -> tuple[ExpressionForecast, ...]:
    return tuple(
        ExpressionForecast(
            zoned=expression.zoned,
            schedules=_scaled(expression.schedules, share),
            fires=_scaled(expression.fires_in(EVERY_MINUTE), share),
            minute_0_fires=_scaled(expression.fires_in(minute_0), share),
        )
        for expression in nlargest(
            EXPRESSIONS_SHOWN_MAX,
            expressions,
            key=lambda expression: expression.fires_in(EVERY_MINUTE),
        )
    )


def _minute_0(start: datetime) -> int:
    """Give the first minutes of the hours of UTC, as bits."""
    first = -start.minute % HOUR_MINUTES
    return sum(1 << minute for minute in range(first, DAY_MINUTES, HOUR_MINUTES))


def _scaled(number: int, share: float) -> int:
    return round(number / share)
