"""How near two fires of a rule lie at the least: the bound of a flexible window."""

from datetime import timedelta
from itertools import pairwise
from typing import assert_never

from puntual.domain.cron_grammar import (
    DAYS_OF_A_WEEK,
    FEBRUARY,
    MONTH_LENGTHS,
    At,
    CronFields,
    Rate,
    parse,
)
from puntual.domain.expression import Rule
from puntual.domain.instant import DAY_MINUTES


def smallest_interval(rule: Rule) -> timedelta | None:
    """Give the least time between two fires, None for a rule of one fire.

    A cron's is measured on the wall, as its author reads it: only clocks that change may bring two
    fires nearer. It is as far as they lie apart up to a day, and beyond that merely more than one.
    """
    parsed = parse(rule.expression)
    match parsed:
        case At():
            return None
        case Rate():
            return parsed.interval
        case CronFields():
            return _on_the_wall(parsed)
        case _:
            assert_never(parsed)


def _on_the_wall(fields: CronFields) -> timedelta:
    minutes = sorted(hour * 60 + minute for hour in fields.hours for minute in fields.minutes)
    days = 1 if _names_neighbouring_days(fields) else 2
    overnight = days * DAY_MINUTES + minutes[0] - minutes[-1]
    within_a_day = (later - earlier for earlier, later in pairwise(minutes))
    return timedelta(minutes=min([overnight, *within_a_day]))


def _names_neighbouring_days(fields: CronFields) -> bool:
    """Tell whether a day and its morrow may both be named; true where that is not worked out."""
    if fields.names_every_day_of_its_months:
        return True
    if fields.any_day:
        # Whether the first Monday and the second Tuesday are neighbours is not worked out.
        named = {int(text.strip("L")[0]) for text in fields.ordinal_weekdays}
        weekdays = fields.weekdays | named
        return any((weekday + 1) % DAYS_OF_A_WEEK in weekdays for weekday in weekdays)
    if not fields.any_weekday:
        return True  # Either-or: in some year a named date falls beside a named weekday.
    if fields.nearest_weekday is not None:
        return False  # One a month, and never beside that of the next month.
    return any(_neighbouring_dates(fields, month) for month in fields.months)


def _neighbouring_dates(fields: CronFields, month: int) -> bool:
    longest = MONTH_LENGTHS[month - 1]
    first_follows = 1 in fields.days and month % len(MONTH_LENGTHS) + 1 in fields.months
    for length in (longest - 1, longest) if month == FEBRUARY else (longest,):
        days = {day for day in fields.days if day <= length}
        if fields.last_day:
            days.add(length)
        if any(day + 1 in days for day in days) or (first_follows and length in days):
            return True
    return False
