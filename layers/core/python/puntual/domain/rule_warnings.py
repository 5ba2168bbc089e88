"""Sentences for whoever made a rule, about fires that they may not expect or may miss."""

from datetime import datetime

from puntual.domain.clock_changes import ChangeKind, clock_changes_of
from puntual.domain.cron_grammar import (
    FEBRUARY,
    At,
    CronFields,
    OversizedStep,
    oversized_steps,
    parse,
)
from puntual.domain.description import ORDINALS, listed, ordinal_of
from puntual.domain.expression import Fold, Rule
from puntual.domain.instant import LAST_INSTANT, YEAR

LEAP_DAY = 29
LONGEST_MONTH = 31
SHORT_MONTHS = frozenset({2, 4, 6, 9, 11})
RATE_UNITS = {"minute": "minutes", "hour": "hours", "day-of-month": "days"}

COUNTS_FROM_SAVE = (
    "It counts from when it is saved, so these fires are only those of a rule saved at this "
    "moment; give start_at."
)


def warnings_of(rule: Rule, *, now: datetime) -> tuple[str, ...]:
    """Give what to know of the rule and of the clock changes of its next 366 days."""
    parsed = parse(rule.expression)
    if isinstance(parsed, At):
        changes = clock_changes_of(rule, after=now, through=LAST_INSTANT).changes
        return tuple(change.sentence for change in changes)
    if not isinstance(parsed, CronFields):
        return ()
    warnings = [
        *map(_step_warning, oversized_steps(rule.expression)),
        *_calendar_warnings(parsed),
    ]
    if not parsed.is_interval:
        return (*warnings, *_gap_warnings(rule, now))
    if rule.fold is Fold.FIRST:
        warnings.append(
            "It fires in every hour, but fold is first: it pauses through the second pass of a "
            "repeated hour; auto keeps its pace."
        )
    return tuple(warnings)


def unsaved_warnings(rule: Rule) -> tuple[str, ...]:
    """Give what to know of the fires of a rule whose anchor is the moment of asking."""
    return (COUNTS_FROM_SAVE,) if rule.is_paced and rule.start_at is None else ()


def _step_warning(oversized: OversizedStep) -> str:
    what = f"{oversized.term} steps out of the {oversized.field} field: only {oversized.first} is"
    unit = RATE_UNITS.get(oversized.field)
    hint = "" if unit is None else f"; rate({oversized.step} {unit}) keeps that distance"
    return f"{what} left of it{hint}."


def _calendar_warnings(fields: CronFields) -> list[str]:
    if not fields.any_day and not fields.any_weekday:
        both = "Both day fields are set: it fires on the days of the month and also on the days"
        return [f"{both} of the week."]
    warnings = []
    days = fields.days if fields.nearest_weekday is None else {fields.nearest_weekday}
    # Whoever names the day before too means the end of the month, which every month has.
    ends = {day for day in days if day - 1 not in days} if not fields.last_day else set()
    if LEAP_DAY in ends and FEBRUARY in fields.months:
        warnings.append("29 February exists only in leap years: it does not fire in other years.")
    if LEAP_DAY + 1 in ends and FEBRUARY in fields.months:
        warnings.append("February has no day 30: there is no fire on it in February.")
    if LONGEST_MONTH in ends and fields.months & SHORT_MONTHS:
        warnings.append("Not every month has a day 31: there is no fire on it in the other months.")
    fifth = [
        f"a fifth {weekday}"
        for which, weekday in dict.fromkeys(map(ordinal_of, fields.ordinal_weekdays))
        if which == ORDINALS["5"]
    ]
    if fifth:
        warnings.append(
            f"Not every month has {listed(fifth, 'or')}: there is no fire on it in the others."
        )
    return warnings


def _gap_warnings(rule: Rule, now: datetime) -> list[str]:
    start = max(now, rule.start_at or now)
    changes = clock_changes_of(rule, after=now, through=start + YEAR).changes
    return [
        change.sentence
        for change in changes
        if change.kind in {ChangeKind.SKIPPED, ChangeKind.SHIFTED}
    ]
