"""What each change of the clocks does to a rule: times that are skipped, moved, or come twice."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from zoneinfo import ZoneInfo

from puntual.domain.civil_time import (
    WALL_SPREAD_SECONDS,
    Stretch,
    stretch_at,
    stretches_between,
    zone_named,
)
from puntual.domain.cron_grammar import At, CronFields, Rate, parse
from puntual.domain.cron_search import CronClock, Passes, WallPattern
from puntual.domain.expression import Rule, fires_after_gap, passes_of, program_of
from puntual.domain.instant import (
    DAY,
    EPOCH,
    FIRST_INSTANT,
    LAST_INSTANT,
    SECOND,
    instant_at,
    near_calendar,
    seconds_of,
)

STRETCHES_LOOKED_AT_MAX = 1024
"""A century and more, whatever the rule, though a stretch seems to end with each period of the
zone's history; what lies beyond is left out, and the answer says so."""

FIRES_OF_A_CHANGE_MAX = 24


class ChangeKind(StrEnum):
    """The first two are of clocks that jump ahead, the others of clocks that go back."""

    SKIPPED = "skipped"
    SHIFTED = "shifted"
    COLLAPSED = "collapsed"
    DOUBLED = "doubled"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockChange:
    """The clocks change at `instant`: `count` times of the rule do not exist, or come twice.

    `first` and `last` of them are times on the wall. `fires` are the first few that they led to.
    `pace_unbroken` says that skipping them leaves the pace of a rule of every hour as it is.
    """

    kind: ChangeKind
    time_zone: str
    instant: datetime
    offset_before: timedelta
    offset_after: timedelta
    first: datetime
    last: datetime
    count: int
    fires: tuple[datetime, ...]
    pace_unbroken: bool = False

    @property
    def times(self) -> str:
        """The times on the wall in words: `02:30 on 2027-03-28`."""
        first, last = _clock(self.first), _clock(self.last)
        if self.count == 1:
            return f"{first} on {self.last.date()}"
        first_day = "" if self.first.date() == self.last.date() else f" on {self.first.date()}"
        return f"{self.count} times from {first}{first_day} to {last} on {self.last.date()}"

    @property
    def sentence(self) -> str:
        one, zone = self.count == 1, self.time_zone
        if self.kind in {ChangeKind.SKIPPED, ChangeKind.SHIFTED}:
            what = f"{self.times} {'does' if one else 'do'} not exist in {zone}"
        else:
            what = f"{self.times} {'comes' if one else 'come'} twice in {zone}"
        it = "it fires" if one else "each fires"
        match self.kind:
            case ChangeKind.SKIPPED if self.pace_unbroken:
                outcome = "its pace goes on unbroken"
            case ChangeKind.SKIPPED:
                outcome = f"{'that fire is' if one else 'those fires are'} skipped"
            case ChangeKind.SHIFTED:
                end = _clock((self.instant + self.offset_after).replace(tzinfo=None))
                outcome = f"{'it fires' if one else 'they become one fire,'} at {end}"
            case ChangeKind.COLLAPSED:
                which = "second" if self.fires[0] >= self.instant else "first"
                outcome = f"{it} once, in the {which} pass"
            case ChangeKind.DOUBLED:
                outcome = f"{it} in both passes"
        return f"{what}: {outcome}."


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockChanges:
    """The changes that touch a rule, all of them up to and including `through`."""

    changes: tuple[ClockChange, ...]
    through: datetime


class FireNoteKind(StrEnum):
    SHIFTED = "shifted"
    FIRST = "first_pass"
    SECOND = "second_pass"


@dataclass(frozen=True, slots=True, kw_only=True)
class FireNote:
    kind: FireNoteKind
    sentence: str


type _Between = Callable[[int, int], list[int]]
"""Gives the times of low <= wall < high."""


class _Times(NamedTuple):
    """The times on the wall that a rule names, and what becomes of the odd ones."""

    between: _Between
    moved_out_of_gaps: bool
    passes: Passes
    state_a_pace: bool


def clock_changes_of(rule: Rule, *, after: datetime, through: datetime) -> ClockChanges:
    """Give what the clock changes of after < instant <= through do to a rule.

    A change whose second pass is not over at `after` is among them. rate() has none, since it
    counts elapsed time. Where the way is too long, the answer says how far it reaches.
    """
    times, parsed, program = _times_of(rule), parse(rule.expression), program_of(rule)
    if times is None:
        return ClockChanges(changes=(), through=through)
    zone = zone_named(rule.time_zone)
    if isinstance(program, CronClock):
        # What clocks do before the first fire does nothing to the rule.
        start = max(after, (rule.start_at or FIRST_INSTANT) - DAY, FIRST_INSTANT)
        end = seconds_of(min(through, LAST_INSTANT))
        stretches, reached = _stretches_near(program.pattern, zone, seconds_of(start), end)
        through = through if reached >= end else instant_at(reached)
    else:
        assert isinstance(parsed, At)
        wall = seconds_of(parsed.wall.replace(tzinfo=UTC))
        stretches = stretches_between(zone, wall - WALL_SPREAD_SECONDS, wall + WALL_SPREAD_SECONDS)
    changes = [_change(rule, times, stretch) for stretch in stretches]
    return ClockChanges(
        changes=tuple(
            change
            for change in changes
            if change is not None and _is_ahead(change, after) and change.instant <= through
        ),
        through=through,
    )


def fire_notes_of(rule: Rule, fire: datetime) -> tuple[FireNote, ...]:
    """Tell what is odd about one fire of a rule."""
    times = _times_of(rule)
    if times is None:
        return ()
    instant = seconds_of(fire)
    stretch = stretch_at(zone_named(rule.time_zone), instant)
    wall = instant + stretch.offset
    notes = []
    change = _change(rule, times, stretch) if stretch.start == instant else None
    if change is not None and change.kind is ChangeKind.SHIFTED:
        also = "also " if times.between(wall, wall + 1) else ""
        sentence = f"It {also}stands for {change.times}, which the clocks jump over."
        notes.append(FireNote(kind=FireNoteKind.SHIFTED, sentence=sentence))
    shown = instant_at(wall).replace(tzinfo=None)
    twice = f"{_clock(shown)} on {shown.date()} comes twice in {rule.time_zone}: this is the"
    if wall < stretch.start + stretch.offset_before:
        notes.append(FireNote(kind=FireNoteKind.SECOND, sentence=f"{twice} second pass."))
    if wall >= stretch.end + stretch.offset_after:
        notes.append(FireNote(kind=FireNoteKind.FIRST, sentence=f"{twice} first pass."))
    return tuple(notes)


def _times_of(rule: Rule) -> _Times | None:
    program, parsed = program_of(rule), parse(rule.expression)
    if isinstance(parsed, Rate):
        return None
    if isinstance(program, CronClock):
        between: _Between = program.pattern.walls_between
    elif isinstance(parsed, At) and near_calendar(parsed.wall.replace(tzinfo=UTC)):
        between = _between_of(seconds_of(parsed.wall.replace(tzinfo=UTC)))
    else:
        return None
    return _Times(
        between=between,
        moved_out_of_gaps=fires_after_gap(parsed, rule.gap),
        passes=passes_of(parsed, rule.fold),
        state_a_pace=isinstance(parsed, CronFields) and parsed.is_interval,
    )


def _between_of(only: int) -> _Between:
    return lambda low, high: [only] if low <= only < high else []


def _stretches_near(
    pattern: WallPattern, zone: ZoneInfo, start: int, end: int
) -> tuple[list[Stretch], int]:
    """List the stretches of start .. end that begin near a named time, and how far it looked."""
    found: list[Stretch] = []
    position = start
    for _ in range(STRETCHES_LOOKED_AT_MAX):
        stretch = stretch_at(zone, position)
        # At the edge of a period a stretch comes again.
        if not found or stretch.start > found[-1].start:
            found.append(stretch)
        named = pattern.first_from(stretch.end + min(stretch.offset, stretch.offset_after))
        if named is None:
            return found, end
        position = max(stretch.end, named - WALL_SPREAD_SECONDS)
        if position > end:
            return found, end
    return found, position - 1


def _change(rule: Rule, times: _Times, stretch: Stretch) -> ClockChange | None:
    """Tell what the change at the start of a stretch does; None if it does nothing."""
    start, before, after = stretch.start, stretch.offset_before, stretch.offset
    first, last = _bounds_of(rule)
    if after > before:
        inside = first <= start <= last
        walls = times.between(start + before, start + after) if inside else []
        kind = ChangeKind.SHIFTED if times.moved_out_of_gaps else ChangeKind.SKIPPED
        fires = [start] if times.moved_out_of_gaps else []
    else:
        # Only times of which the bounds hold both passes are owed both.
        walls = times.between(
            max(start + after, first + before), min(start + before, last + after + 1)
        )
        offsets = [before] * times.passes.first + [after] * times.passes.second
        kind = ChangeKind.DOUBLED if len(offsets) > 1 else ChangeKind.COLLAPSED
        fires = [wall - offset for offset in offsets for wall in walls]
    if not walls:
        return None
    return ClockChange(
        kind=kind,
        time_zone=rule.time_zone,
        instant=instant_at(start),
        offset_before=before * SECOND,
        offset_after=after * SECOND,
        first=instant_at(walls[0]).replace(tzinfo=None),
        last=instant_at(walls[-1]).replace(tzinfo=None),
        count=len(walls),
        fires=tuple(instant_at(fire) for fire in fires[:FIRES_OF_A_CHANGE_MAX]),
        pace_unbroken=kind is ChangeKind.SKIPPED and _follow_as_skipped(times, walls, stretch),
    )


def _follow_as_skipped(times: _Times, walls: list[int], stretch: Stretch) -> bool:
    """Whether as long after a gap as it is, the times are those that it skips."""
    gap, end = stretch.offset - stretch.offset_before, stretch.start + stretch.offset
    following = times.between(end, end + gap) if times.state_a_pace else []
    return following == [wall + gap for wall in walls]


def _bounds_of(rule: Rule) -> tuple[int, int]:
    """Give the first and the last whole second at which the rule may fire."""
    first = -((EPOCH - max(rule.start_at or FIRST_INSTANT, FIRST_INSTANT)) // SECOND)
    return first, seconds_of(min(rule.end_at or LAST_INSTANT, LAST_INSTANT))


def _is_ahead(change: ClockChange, after: datetime) -> bool:
    repeated = max(change.offset_before - change.offset_after, timedelta(0))
    return change.instant + repeated > after


def _clock(wall: datetime) -> str:
    """Give hours and minutes, and seconds where there are any."""
    return wall.time().isoformat("seconds" if wall.second else "minutes")
