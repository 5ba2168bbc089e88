"""When a schedule fires: the rule as a value, its fires, and what is refused at create.

The contract in a sentence: cron runs on the wall clock of an IANA zone, rate() counts elapsed time
from its anchor, at() is one wall time, and fires are strictly increasing instants in UTC.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from zoneinfo import ZoneInfo

from puntual.domain.civil_time import (
    UnknownTimeZone,
    check_time_zone,
    end_of_gap,
    instants_of,
    zone_named,
)
from puntual.domain.cron_grammar import (
    At,
    CronFields,
    InvalidExpression,
    Rate,
    check_text,
    expand_hashes,
    parse,
)
from puntual.domain.cron_search import CronClock, Passes
from puntual.domain.description import sentence_of
from puntual.domain.errors import Rejected
from puntual.domain.instant import (
    DAY,
    FIRST_INSTANT,
    INSTANT_STEP,
    LAST_INSTANT,
    in_calendar,
    instant_at,
    near_calendar,
    seconds_of,
    text_of,
)

__all__ = [
    "AtInThePast",
    "Fold",
    "Gap",
    "InvalidExpression",
    "NeverFires",
    "NextFire",
    "Rule",
    "UnknownTimeZone",
    "program_of",
    "rule_of",
]

PROGRAMS_KEPT_MAX = 4096
LOOK_BACK_FIRST = timedelta(minutes=1)
LOOK_BACK_FACTOR = 8
LOOK_BACK_STEPS_MAX = 10
"""The last step goes back 255 years: further than any two fires lie apart."""

HALVINGS_MAX = 64
"""Halves 255 years of microseconds down to one."""

type NextFireAfter = Callable[[datetime], datetime | None]
"""Finds the first fire strictly after an instant."""

type Program = CronClock | Rate | datetime | None
"""What evaluates a rule; for at() the one instant, None if the clocks jump over it."""


class Gap(StrEnum):
    """What becomes of a wall time that the clocks jump over."""

    SKIP = "skip"
    FIRE_AFTER = "fire_after"


class Fold(StrEnum):
    """Which pass of a repeated wall time fires.

    AUTO: both for an expression that fires in every hour of the day, since it states a pace; the
    first for any other, since it states times.
    """

    AUTO = "auto"
    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


_PASSES = {
    Fold.FIRST: Passes(first=True, second=False),
    Fold.SECOND: Passes(first=False, second=True),
    Fold.BOTH: Passes(first=True, second=True),
}


class NeverFires(Rejected):
    """The text is a rule, but no fire is left for it."""


class AtInThePast(NeverFires):
    """A one-time rule came too late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule that was once checked by `rule_of`; built again from stored data without a check.

    `start_at` and `end_at` are inclusive. rate() fires at anchor + k x interval, k >= 1.
    """

    expression: str
    time_zone: str
    gap: Gap = Gap.SKIP
    fold: Fold = Fold.AUTO
    anchor: datetime
    start_at: datetime | None = None
    end_at: datetime | None = None

    @property
    def is_one_off(self) -> bool:
        return isinstance(parse(self.expression), At)

    @property
    def is_paced(self) -> bool:
        """Whether its fires count from the anchor."""
        return isinstance(parse(self.expression), Rate)

    def next_fire(self, after: datetime) -> datetime | None:
        """Find the first fire strictly after `after`."""
        return self._next_of(program_of(self), after)

    def next_fire_by(self, zone: ZoneInfo) -> NextFireAfter:
        """Give `next_fire` as it is where the clocks go by `zone`, not by their pinned rules."""
        program = _built(self.expression, zone, self.gap, self.fold)
        return lambda after: self._next_of(program, after)

    def _next_of(self, program: Program, after: datetime) -> datetime | None:
        if self.start_at is not None and after < self.start_at:
            after = self.start_at - INSTANT_STEP
        if after >= LAST_INSTANT:
            return None
        after = max(after, FIRST_INSTANT)
        fire: datetime | None
        if isinstance(program, CronClock):
            # Whole seconds suffice: a cron never fires within one.
            instant = program.next_after(seconds_of(after))
            fire = None if instant is None else instant_at(instant)
        elif isinstance(program, Rate):
            fire = _next_step(program, self.anchor, after)
        else:
            fire = program if program is not None and program > after else None
        if fire is None or fire > LAST_INSTANT or (self.end_at is not None and fire > self.end_at):
            return None
        return fire

    def last_fire(self, before: datetime) -> datetime | None:
        """Find the last fire at or before `before`, looking back in growing steps."""
        if self.end_at is not None:
            before = min(before, self.end_at)
        before = min(before, LAST_INSTANT)
        if before <= FIRST_INSTANT:
            return None
        span = LOOK_BACK_FIRST
        for _ in range(LOOK_BACK_STEPS_MAX):
            start = max(before - span, FIRST_INSTANT)
            fire = self.next_fire(start)
            if fire is not None and fire <= before:
                return self._last_of(fire, before)
            if start == FIRST_INSTANT or (self.start_at is not None and start < self.start_at):
                return None
            span *= LOOK_BACK_FACTOR
        return None

    def fires_between(self, start: datetime, end: datetime, *, limit: int) -> tuple[datetime, ...]:
        """List the fires with start < fire <= end, the earliest `limit` of them."""
        fires: list[datetime] = []
        fire = self.next_fire(start) if limit > 0 else None
        while fire is not None and fire <= end:
            fires.append(fire)
            fire = self.next_fire(fire) if len(fires) < limit else None
        return tuple(fires)

    def describe(self) -> str:
        """Say in a sentence when it fires, but for what gap and fold make of clock changes."""
        return sentence_of(
            parse(self.expression),
            time_zone=self.time_zone,
            anchor=self.anchor,
            start_at=self.start_at,
            end_at=self.end_at,
        )

    def _last_of(self, fire: datetime, before: datetime) -> datetime:
        """Find the last fire of fire <= it <= before, by halving the rest in which one may lie."""
        quiet_after = before
        for _ in range(HALVINGS_MAX):
            following = self.next_fire(fire)
            if following is None or following > quiet_after:
                break
            fire = following
            middle = fire + (quiet_after - fire) / 2
            beyond = self.next_fire(middle)
            if beyond is None or beyond > quiet_after:
                quiet_after = middle
            else:
                fire = beyond
        return fire


def _next_step(rate: Rate, anchor: datetime, after: datetime) -> datetime | None:
    elapsed = max((after - anchor) // rate.interval, 0)
    try:
        return anchor + (elapsed + 1) * rate.interval
    except OverflowError:
        return None


NextFire = Callable[[Rule, datetime], datetime | None]
"""`Rule.next_fire`, or a memo of it: many schedules share a rule and an instant."""


def rule_of(  # noqa: PLR0913 - a rule has this many parts, all but the first by keyword
    expression: object,
    *,
    time_zone: object,
    gap: Gap = Gap.SKIP,
    fold: Fold = Fold.AUTO,
    anchor: datetime,
    now: datetime,
    start_at: datetime | None = None,
    end_at: datetime | None = None,
    hash_key: str = "",
) -> Rule:
    """Check a rule at create; raise Rejected for the first thing wrong with it.

    `hash_key` decides what H stands for, so it is the same for the same schedule for ever. The
    rule that comes back has numbers in the place of H.
    """
    text = check_text(expression)
    zone = check_time_zone(time_zone)
    _check_instant("start_at", start_at)
    _check_instant("end_at", end_at)
    _check_instant("anchor", anchor)
    if start_at is not None and end_at is not None and end_at <= start_at:
        raise Rejected("end_at", _shown(end_at), f"later than start_at, {_shown(start_at)}")
    parse(expanded := expand_hashes(text, hash_key))
    rule = Rule(
        expression=expanded,
        time_zone=zone,
        gap=gap,
        fold=fold,
        anchor=anchor.astimezone(UTC),
        start_at=None if start_at is None else start_at.astimezone(UTC),
        end_at=None if end_at is None else end_at.astimezone(UTC),
    )
    # Without its end, so that a refusal need not search again for what lies behind it.
    first = replace(rule, end_at=None).next_fire(now)
    if first is None or (rule.end_at is not None and first > rule.end_at):
        raise _no_fire(rule, first, now)
    return rule


def _check_instant(field: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise Rejected(field, value, "an instant with its offset from UTC")
    in_calendar(field, value)


def _no_fire(rule: Rule, first: datetime | None, now: datetime) -> NeverFires:
    """Say why nothing is left: the bounds, the past, a gap, or the calendar.

    `first` is the first fire that the rule would have if it did not end.
    """
    if first is not None:
        return NeverFires(
            "end_at", _shown(rule.end_at), f"not before the first fire, {_shown(first)}"
        )
    open_ended = replace(rule, start_at=None, end_at=None)
    if rule.start_at is not None and open_ended.next_fire(now) is not None:
        return NeverFires("start_at", _shown(rule.start_at), "not after the rule's last fire")
    parsed = parse(rule.expression)
    if isinstance(parsed, At):
        return _no_single_fire(rule, parsed, now)
    between = f"after {_shown(now)} and before {_shown(LAST_INSTANT)}"
    allowed = f"a rule with a fire {between}{_why_never(rule, parsed, now)}"
    return NeverFires("expression", rule.expression, allowed)


def _no_single_fire(rule: Rule, at: At, now: datetime) -> NeverFires:
    fire, wall = program_of(rule), at.wall.replace(tzinfo=UTC)
    if fire is None and near_calendar(wall):
        return NeverFires(
            "expression",
            rule.expression,
            f"a time that the clocks of {rule.time_zone} show: they jump over this one, which "
            "only the gap policy fire_after accepts",
        )
    if wall > LAST_INSTANT - DAY:
        allowed = f"a time before {_shown(LAST_INSTANT)}"
        return NeverFires("expression", rule.expression, allowed)
    return AtInThePast("expression", rule.expression, f"a time after {_shown(now)}")


def _why_never(rule: Rule, parsed: CronFields | Rate, now: datetime) -> str:
    """Say why a rule has no fire left where that takes no search; else nothing."""
    if not isinstance(parsed, CronFields):
        return ""
    if parsed.calendar_for_croniter is None:
        return ": no month that it names has such a day"
    if parsed.years is not None and max(parsed.years) < now.year:
        return f": its last year, {max(parsed.years)}, has passed"
    if replace(rule, gap=Gap.FIRE_AFTER).next_fire(now) is not None:
        return (
            f": the clocks of {rule.time_zone} jump over each of its times, which only the gap "
            "policy fire_after accepts"
        )
    return ""


def _shown(instant: datetime | None) -> str:
    return "" if instant is None else text_of(instant)


def program_of(rule: Rule) -> Program:
    """Give what evaluates a rule; for at() the one instant, None if the clocks jump over it."""
    return _program(rule.expression, rule.time_zone, rule.gap, rule.fold)


@lru_cache(maxsize=PROGRAMS_KEPT_MAX)
def _program(expression: str, time_zone: str, gap: Gap, fold: Fold) -> Program:
    return _built(expression, zone_named(time_zone), gap, fold)


def _built(expression: str, zone: ZoneInfo, gap: Gap, fold: Fold) -> Program:
    parsed = parse(expression)
    if isinstance(parsed, Rate):
        return parsed
    if isinstance(parsed, At):
        return _instant_of(parsed, zone, gap, fold)
    return CronClock(
        parsed,
        zone,
        fire_after_gap=fires_after_gap(parsed, gap),
        passes=passes_of(parsed, fold),
    )


def fires_after_gap(parsed: CronFields | At, gap: Gap) -> bool:
    """Whether a gap's missing fires are made up for; a pace is not owed those of a lost hour."""
    return gap is Gap.FIRE_AFTER and not (isinstance(parsed, CronFields) and parsed.is_interval)


def passes_of(parsed: CronFields | At, fold: Fold) -> Passes:
    """Tell which passes of a repeated wall time fire; a one-time rule takes one of them."""
    if isinstance(parsed, At):
        fold = Fold.SECOND if fold is Fold.SECOND else Fold.FIRST
    elif fold is Fold.AUTO:
        fold = Fold.BOTH if parsed.is_interval else Fold.FIRST
    return _PASSES[fold]


def _instant_of(at: At, zone: ZoneInfo, gap: Gap, fold: Fold) -> datetime | None:
    if not near_calendar(at.wall.replace(tzinfo=UTC)):
        return None
    wall = seconds_of(at.wall.replace(tzinfo=UTC))
    instants = instants_of(zone, wall)
    if instants:
        instant: int | None = instants[-1 if fold is Fold.SECOND else 0]
    else:
        instant = end_of_gap(zone, wall) if gap is Gap.FIRE_AFTER else None
    return None if instant is None else instant_at(instant)
