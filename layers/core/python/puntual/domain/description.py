"""Says in one English sentence when a rule fires.

It speaks of what was parsed, never of the text, so `0-23` and `*` read the same. A library such as
cron-descriptor would read the text once more, by a grammar of its own (numbers of weekdays,
either-or of the day fields, ranges that wrap), and might describe another rule than the one that
fires. Nothing is cut: rules of the same sentence mean the same.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import assert_never

from puntual.domain.cron_grammar import (
    DAYS_OF_A_WEEK,
    HOURS_OF_A_DAY,
    At,
    CronFields,
    Parsed,
    Rate,
)
from puntual.domain.instant import DAY, HOUR_MINUTES, MINUTE, brief_text_of

WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
# fmt: off
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)
# fmt: on
ORDINALS = {"1": "first", "2": "second", "3": "third", "4": "fourth", "5": "fifth", "L": "last"}

TIMES_LISTED_MAX = 4
"""Times of a day that are listed even where they could be told as a pace."""

RANGE_LENGTH_MIN = 3
STEPS_MIN = 5
"""Members that a range, or a range in steps, has at least; fewer are listed."""


def sentence_of(
    parsed: Parsed,
    *,
    time_zone: str,
    anchor: datetime,
    start_at: datetime | None,
    end_at: datetime | None,
) -> str:
    match parsed:
        case CronFields():
            words = f"{_cron(parsed)}, in {time_zone}"
        case Rate():
            words = f"{_every(parsed.interval)}, counted from {brief_text_of(anchor)}"
        case At():
            words = f"once, at {parsed.wall.isoformat(sep=' ')} in {time_zone}"
        case _:
            assert_never(parsed)
    words += _bounds(start_at, end_at)
    return f"{words[0].upper()}{words[1:]}."


def listed(words: Sequence[str], conjunction: str = "and") -> str:
    """Join words as a sentence does: `1`, `1 and 2`, `1, 2 and 3`."""
    if len(words) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} {conjunction} {words[-1]}"


def ordinal_of(ordinal: str) -> tuple[str, str]:
    """Give which one, and the weekday, of `2#1` (the first Tuesday) or `L5` (the last Friday)."""
    if ordinal[0] == "L":
        return ORDINALS["L"], WEEKDAYS[int(ordinal[1])]
    return ORDINALS[ordinal[2]], WEEKDAYS[int(ordinal[0])]


def _bounds(start_at: datetime | None, end_at: datetime | None) -> str:
    until = "" if end_at is None else f" until {brief_text_of(end_at)}"
    if start_at is None:
        return f",{until}" if until else ""
    return f", from {brief_text_of(start_at)}{until or ' on'}"


def _cron(fields: CronFields) -> str:
    parts = [_times(fields.minutes, fields.hours), _days(fields)]
    if fields.years is not None:
        parts.append(f"in the {_counted('year', fields.years, steps=True)}")
    return " ".join(part for part in parts if part)


def _times(minutes: frozenset[int], hours: frozenset[int]) -> str:
    if len(hours) == HOURS_OF_A_DAY:
        return _of_every_hour(minutes)
    times = sorted(hour * HOUR_MINUTES + minute for hour in hours for minute in minutes)
    pace = _step(times)
    if len(times) > TIMES_LISTED_MAX and pace is not None:
        every = _every(pace * MINUTE)
        return f"{every} from {_clock(times[0])} through {_clock(times[-1])}"
    if len(times) <= TIMES_LISTED_MAX or len(minutes) == 1:
        return f"at {listed([_clock(time) for time in times])}"
    of_hours = _counted("hour", hours)
    if len(minutes) == HOUR_MINUTES:
        return f"every minute of {of_hours}"
    return f"at {_counted('minute', minutes, steps=True)} of {of_hours}"


def _of_every_hour(minutes: frozenset[int]) -> str:
    step = HOUR_MINUTES // len(minutes)
    if len(minutes) > 1 and minutes == frozenset(range(0, HOUR_MINUTES, step)):
        return _every(step * MINUTE)
    return f"every hour at {_counted('minute', minutes, steps=True)}"


def _days(fields: CronFields) -> str:
    every_month, months = len(fields.months) == len(MONTHS), _months(fields.months)
    if fields.names_every_day_of_its_months:
        if not every_month:
            return f"on every day of {months}"
        return "" if fields.is_interval else "every day"
    either = []
    if not fields.any_day and not fields.names_whole_months:
        either.append(f"{_days_of_month(fields)} of {months}")
    if fields.ordinal_weekdays:
        either.append(f"{_ordinal_weekdays(fields.ordinal_weekdays)} of {months}")
    elif not fields.any_weekday and not fields.names_whole_weeks:
        either.append(_weekdays(fields.weekdays) + ("" if every_month else f" in {months}"))
    return " or ".join(either)


def _days_of_month(fields: CronFields) -> str:
    if fields.nearest_weekday is not None:
        return f"on the weekday nearest to day {fields.nearest_weekday}"
    parts = [f"on {_counted('day', fields.days)}"] if fields.days else []
    if fields.last_day:
        parts.append("on the last day")
    return " and ".join(parts)


def _weekdays(weekdays: frozenset[int]) -> str:
    round_the_week = _cyclic_range(weekdays, range(DAYS_OF_A_WEEK))
    if round_the_week is not None:
        first, last = round_the_week
        return f"from {WEEKDAYS[first]} to {WEEKDAYS[last]}"
    from_monday = sorted(weekdays, key=lambda day: (day - 1) % DAYS_OF_A_WEEK)
    return f"on {listed([WEEKDAYS[day] for day in from_monday])}"


def _ordinal_weekdays(ordinals: Collection[str]) -> str:
    order, found = [*ORDINALS.values()], {ordinal_of(ordinal) for ordinal in ordinals}
    by_place = sorted(found, key=lambda each: (order.index(each[0]), WEEKDAYS.index(each[1])))
    return f"on {listed([f'the {which} {weekday}' for which, weekday in by_place])}"


def _months(months: frozenset[int]) -> str:
    if len(months) == len(MONTHS):
        return "every month"
    round_the_year = _cyclic_range(months, range(1, len(MONTHS) + 1))
    if round_the_year is not None:
        first, last = round_the_year
        return f"every month from {MONTHS[first - 1]} to {MONTHS[last - 1]}"
    return listed([MONTHS[month - 1] for month in sorted(months)])


def _every(interval: timedelta) -> str:
    hours, minutes = divmod(interval // MINUTE, HOUR_MINUTES)
    days = interval // DAY
    if days > 1 and interval == days * DAY:
        return f"every {days} days of 24 hours"
    if minutes == 0:
        return "every hour" if hours == 1 else f"every {hours} hours"
    total = interval // MINUTE
    return "every minute" if total == 1 else f"every {total} minutes"


def _clock(minute_of_day: int) -> str:
    hour, minute = divmod(minute_of_day, HOUR_MINUTES)
    return f"{hour:02}:{minute:02}"


def _counted(noun: str, numbers: frozenset[int], *, steps: bool = False) -> str:
    """Give `day 1`, `days 1, 2 and 5`, `days 1 to 7 and 15` or `minutes 1 to 9 in steps of 2`."""
    ordered = sorted(numbers)
    if len(ordered) == 1:
        return f"{noun} {ordered[0]}"
    step = _step(ordered)
    if steps and step is not None and step > 1 and len(ordered) >= STEPS_MIN:
        return f"{noun}s {ordered[0]} to {ordered[-1]} in steps of {step}"
    return f"{noun}s {listed(_with_ranges(ordered))}"


def _with_ranges(ordered: Sequence[int]) -> list[str]:
    words: list[str] = []
    start = 0
    for end in range(1, len(ordered) + 1):
        if end < len(ordered) and ordered[end] == ordered[end - 1] + 1:
            continue
        run = ordered[start:end]
        if len(run) >= RANGE_LENGTH_MIN:
            words.append(f"{run[0]} to {run[-1]}")
        else:
            words += [str(number) for number in run]
        start = end
    return words


def _step(ordered: Sequence[int]) -> int | None:
    """Give the distance that all neighbours have, None where there is no such."""
    distances = {later - sooner for sooner, later in pairwise(ordered)}
    return distances.pop() if len(distances) == 1 else None


def _cyclic_range(numbers: frozenset[int], whole: range) -> tuple[int, int] | None:
    """Give first and last of the one range, wrapped or not, that the numbers are, if it is long."""
    firsts = [number for number in numbers if _neighbour(number, -1, whole) not in numbers]
    lasts = [number for number in numbers if _neighbour(number, 1, whole) not in numbers]
    if len(firsts) != 1 or len(numbers) < RANGE_LENGTH_MIN:
        return None
    return firsts[0], lasts[0]


def _neighbour(number: int, distance: int, whole: range) -> int:
    return whole.start + (number - whole.start + distance) % len(whole)
