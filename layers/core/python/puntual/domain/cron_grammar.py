"""Reads the two dialects of a rule: what the text says, in sets of numbers, before any clock.

Every field is expanded here, so that the cron library only ever sees plain lists of numbers: its
own readings of equal ranges, hashes, random tokens and steps never come into play.
"""

import re
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType

from puntual.domain.errors import Rejected

EXPRESSION_LENGTH_MAX = 256
RATE_DIGITS_MAX = 9
PARSED_KEPT_MAX = 4096
TERMS_KEPT_MAX = 4096
"""Terms are fewer than expressions: 100,000 daily ones are made of 60 minutes and 24 hours."""

HOURS_OF_A_DAY = 24
DAYS_OF_A_WEEK = 7
ALL_DAYS = frozenset(range(1, 32))
SATURDAY, SUNDAY = 6, 7
FEBRUARY = 2
MONTH_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

FORMS = (
    "five unix cron fields (minute, hour, day of month, month, day of week), one of "
    "@hourly @daily @midnight @weekly @monthly @yearly @annually, "
    "cron(six fields), rate(value unit) or at(yyyy-mm-ddThh:mm:ss)"
)


class InvalidExpression(Rejected):
    """The text is not a rule; the message says where and what is allowed there."""

    def __init__(self, value: object, allowed: str) -> None:
        super().__init__("expression", value, allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class CronFields:
    """A cron expression as sets of numbers; weekdays count from Sunday = 0."""

    minutes: frozenset[int]
    hours: frozenset[int]
    months: frozenset[int]
    years: frozenset[int] | None  # None is every year
    days: frozenset[int]
    any_day: bool  # written as * or ?, not merely covering every day
    last_day: bool
    nearest_weekday: int | None  # the n of nW
    weekdays: frozenset[int]
    any_weekday: bool
    ordinal_weekdays: tuple[str, ...]  # "2#1" is the first Tuesday, "L5" the last Friday

    @property
    def is_interval(self) -> bool:
        """Whether it states a pace (every hour of the day) rather than fixed times."""
        return len(self.hours) == HOURS_OF_A_DAY

    @property
    def names_whole_months(self) -> bool:
        """Whether the day-of-month field names every day, however it is written."""
        return len(self.days | ({max(ALL_DAYS)} if self.last_day else set())) == len(ALL_DAYS)

    @property
    def names_whole_weeks(self) -> bool:
        return len(self.weekdays) == DAYS_OF_A_WEEK

    @property
    def names_every_day_of_its_months(self) -> bool:
        """Whether no day of them is left out; both day fields set mean either-or."""
        if self.any_day or self.any_weekday:
            return self.names_whole_months and self.names_whole_weeks
        return self.names_whole_months or self.names_whole_weeks

    @property
    def names_every_day(self) -> bool:
        every_month = len(self.months) == len(MONTH_LENGTHS)
        return every_month and self.years is None and self.names_every_day_of_its_months

    def names(self, day: date) -> bool:
        """Whether `day` is one of its days; what the cron library finds by searching."""
        if self.names_every_day:
            return True
        if day.month not in self.months or (self.years is not None and day.year not in self.years):
            return False
        if self.any_weekday:
            return self.any_day or self._names_day_of_month(day)
        if self.any_day:
            return self._names_weekday(day)
        return self._names_day_of_month(day) or self._names_weekday(day)

    def _names_day_of_month(self, day: date) -> bool:
        length = monthrange(day.year, day.month)[1]
        if self.nearest_weekday is not None:
            return _nearest_weekday_of(day, self.nearest_weekday, length) == day.day
        return day.day in self.days or (self.last_day and day.day == length)

    def _names_weekday(self, day: date) -> bool:
        weekday = day.isoweekday() % DAYS_OF_A_WEEK
        if not self.ordinal_weekdays:
            return weekday in self.weekdays
        nth = (day.day - 1) // DAYS_OF_A_WEEK + 1
        if f"{weekday}#{nth}" in self.ordinal_weekdays:
            return True
        is_last = day.day + DAYS_OF_A_WEEK > monthrange(day.year, day.month)[1]
        return is_last and f"L{weekday}" in self.ordinal_weekdays

    @property
    def day_named_only_as_last(self) -> int | None:
        """The one day of the month that is not named, where the last day is: 30 in 1-29,31,L.

        The cron library counts thirty days and L as every day.
        """
        others = ALL_DAYS - self.days
        return min(others) if self.last_day and self.any_weekday and len(others) == 1 else None

    @property
    def calendar_for_croniter(self) -> str | None:
        """The days at midnight, as the cron library spells them; None if no month has the day.

        The years, a February too short for 29W and a day named only as the last are not in it.
        """
        days = _list(self.days) + ["L"] * self.last_day
        months = self.months
        if self.nearest_weekday is not None:
            days = [f"{self.nearest_weekday}W"]
        if self.any_weekday and not self.last_day:
            # The library would move 31W of a short month to its last day, and would look for a
            # day 31 of short months for decades.
            first_day = self.nearest_weekday or min(self.days)
            months = frozenset(m for m in months if MONTH_LENGTHS[m - 1] >= first_day)
        if not months:
            return None
        weekdays = list(self.ordinal_weekdays) or _list(self.weekdays)
        day = "*" if self.any_day else ",".join(days)
        weekday = "*" if self.any_weekday else ",".join(weekdays)
        return f"0 0 {day} {','.join(_list(months))} {weekday}"


def _nearest_weekday_of(day: date, wanted: int, length: int) -> int | None:
    """Find the day that nW names in the month of `day`: it never leaves the month."""
    if wanted > length:
        return None
    weekday = day.replace(day=wanted).isoweekday()
    if weekday == SATURDAY:
        return wanted - 1 if wanted > 1 else wanted + 2
    if weekday == SUNDAY:
        return wanted + 1 if wanted < length else wanted - 2
    return wanted


@dataclass(frozen=True, slots=True)
class Rate:
    interval: timedelta


@dataclass(frozen=True, slots=True)
class At:
    wall: datetime  # naive: a time on the wall of the rule's zone


type Parsed = CronFields | Rate | At


@dataclass(frozen=True, slots=True, kw_only=True)
class OversizedStep:
    """A step that its field has no room for: only `first` is left of `term`."""

    term: str
    field: str
    first: int
    step: int


@dataclass(frozen=True, slots=True, eq=False)
class _Field:
    """A field of a dialect; compared by identity, so that terms are remembered by it."""

    name: str
    low: int
    high: int
    allowed: str
    names: Mapping[str, int] = MappingProxyType({})
    star_high: int | None = None  # where * ends, if not at `high` (7 is a second Sunday)
    wraps: bool = True
    start_step: bool = True  # n/step
    steps: bool = True

    @property
    def last_of_star(self) -> int:
        return self.star_high or self.high

    @property
    def size(self) -> int:
        return self.last_of_star - self.low + 1

    def refuse(self, value: str, because: str = "") -> InvalidExpression:
        hint = f" ({because})" if because else ""
        return InvalidExpression(value, f"in the {self.name} field {self.allowed}{hint}")


# fmt: off
_MONTHS = (
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
)
# fmt: on
_DAY_NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")

_MINUTE = _Field("minute", 0, 59, "0-59 with , - * /")
_HOUR = _Field("hour", 0, 23, "0-23 with , - * /")
_DAY = _Field("day-of-month", 1, 31, "1-31 with , - * /, L, or nW alone")
_EVENTBRIDGE_DAY = replace(_DAY, allowed="1-31 with , - * /, L, nW alone, or ?")
_MONTH = _Field(
    "month",
    1,
    12,
    "1-12 or JAN-DEC with , - * /",
    {name: number for number, name in enumerate(_MONTHS, 1)},
)
_WEEKDAY = _Field(
    "day-of-week",
    0,
    7,
    "0-7 (0 and 7 are Sunday) or SUN-SAT with , - and steps over * or a range, n#1 to n#5, "
    "L0 to L7 (L5 is the last Friday)",
    {name: number for number, name in enumerate(_DAY_NAMES)},
    star_high=6,
    start_step=False,
)
_EVENTBRIDGE_WEEKDAY = _Field(
    "day-of-week",
    1,
    7,
    "1-7 (1 is Sunday) or SUN-SAT with , - *, ?, or one of L, nL (6L is the last Friday), n#1 to "
    "n#5 alone",
    {name: number for number, name in enumerate(_DAY_NAMES, 1)},
    steps=False,
)
_YEAR = _Field("year", 1970, 2199, "1970-2199 with , - * /", wraps=False)

_UNIX_FIELDS = (_MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)
_EVENTBRIDGE_FIELD_COUNT = 6

_NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

_WRAPPED = re.compile(r"(cron|rate|at)\((.*)\)")
_ITEM = re.compile(r"(?:(\*)|([A-Z0-9]+)(?:-([A-Z0-9]+))?)(?:/([0-9]+))?")
_NEAREST = re.compile(r"([0-9]+)W")
_ORDINAL = re.compile(r"([A-Z0-9]+)#([0-9]+)")
_LAST_WEEKDAY = re.compile(r"L[0-7]")
_EVENTBRIDGE_LAST_WEEKDAY = re.compile(r"[1-7]L")
_HASH = re.compile(r"H(?:\(([0-9]+)-([0-9]+)\))?(?:/([0-9]+))?")
_RATE = re.compile(r"\s*([0-9]+)\s+(minute|hour|day)s?\s*")
_AT = re.compile(r"\s*([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})\s*")
_TEXT = re.compile(r"[\t\x20-\x7e]*")

_HASHED_DAY_MAX = 28
"""H never picks a day of the month that some months lack."""


@lru_cache(maxsize=PARSED_KEPT_MAX)
def parse(expression: str) -> Parsed:
    text = expression.strip(" \t")
    wrapped = _WRAPPED.fullmatch(text)
    if wrapped is None:
        return _unix(_NICKNAMES.get(text.lower(), text))
    form, inner = wrapped.groups()
    if form == "rate":
        return _rate(inner)
    if form == "at":
        return _at(inner)
    return _eventbridge(inner)


def check_text(expression: object) -> str:
    if not isinstance(expression, str):
        raise InvalidExpression(expression, FORMS)
    if len(expression) > EXPRESSION_LENGTH_MAX:
        raise InvalidExpression(expression, f"at most {EXPRESSION_LENGTH_MAX} characters")
    if not _TEXT.fullmatch(expression):
        raise InvalidExpression(expression, "printable ASCII characters, blanks and tabs")
    return expression


def oversized_steps(expression: str) -> tuple[OversizedStep, ...]:
    """Find the steps of a checked expression that are longer than their field."""
    wrapped = _WRAPPED.fullmatch(expression.strip(" \t"))
    text = expression if wrapped is None else wrapped[2]
    # The year of cron(…) has no room for a step that anyone would write.
    terms = (
        (_ITEM.fullmatch(term), field)
        for terms, field in zip(text.upper().split(), _UNIX_FIELDS, strict=False)
        for term in terms.split(",")
    )
    return tuple(
        OversizedStep(
            term=matched[0],
            field=field.name,
            first=field.low if matched[1] else _number(matched[2], field),
            step=int(matched[4]),
        )
        for matched, field in terms
        if matched is not None and matched[4] is not None and int(matched[4]) > field.size
    )


def expand_hashes(expression: str, hash_key: str) -> str:
    """Put a number that `hash_key` decides for each H of a unix expression; else unchanged."""
    fields = expression.split()
    if _WRAPPED.fullmatch(expression.strip()) or len(fields) != len(_UNIX_FIELDS):
        return expression
    expanded = [
        [_hashed(item, field, hash_key) for item in text.upper().split(",")]
        for text, field in zip(fields, _UNIX_FIELDS, strict=True)
    ]
    if [",".join(items) for items in expanded] == [text.upper() for text in fields]:
        return expression
    # H stands for the same number wherever it is in a field, so a list may say it twice.
    written = " ".join(",".join(dict.fromkeys(items)) for items in expanded)
    if len(written) > EXPRESSION_LENGTH_MAX:
        allowed = f"at most {EXPRESSION_LENGTH_MAX} characters with numbers in the place of H"
        raise InvalidExpression(expression, allowed)
    return written


def _hashed(item: str, field: _Field, hash_key: str) -> str:
    matched = _HASH.fullmatch(item)
    if matched is None:
        return item
    if not hash_key:
        raise field.refuse(item, "H needs the id of a schedule")
    first, last, step_text = matched.groups()
    low, high = field.low, field.last_of_star
    if first is not None:
        low, high = _number(first, field), _number(last, field)
        if low > high:
            raise field.refuse(item, "the range of H ascends")
    elif field is _DAY:
        high = _HASHED_DAY_MAX
    digest = sha256(f"{hash_key}\n{field.name}".encode()).digest()
    chosen = int.from_bytes(digest[:8])
    size = high - low + 1
    step = size if step_text is None else int(step_text)
    if step == 0:
        raise field.refuse(item, "a step is at least 1")
    start = low + chosen % min(step, size)
    return str(start) if start + step > high else f"{start}-{high}/{step}"


def _rate(inner: str) -> Rate:
    matched = _RATE.fullmatch(inner)
    allowed = "in rate(value unit) a whole number from 1 and minute(s), hour(s) or day(s)"
    if matched is None:
        raise InvalidExpression(inner, allowed)
    value, unit = matched.groups()
    if len(value) > RATE_DIGITS_MAX or int(value) == 0:
        raise InvalidExpression(inner, f"{allowed}, of at most {RATE_DIGITS_MAX} digits")
    return Rate(timedelta(**{f"{unit}s": int(value)}))


def _at(inner: str) -> At:
    matched = _AT.fullmatch(inner)
    allowed = "in at(…) a date and time that exist, as yyyy-mm-ddThh:mm:ss, without an offset"
    if matched is None:
        raise InvalidExpression(inner, allowed)
    try:
        return At(datetime.fromisoformat(matched[1]))
    except ValueError as error:
        raise InvalidExpression(inner, allowed) from error


def _unix(text: str) -> CronFields:
    fields = text.upper().split()
    if len(fields) == _EVENTBRIDGE_FIELD_COUNT:
        raise InvalidExpression(
            text, "five unix cron fields: seconds are not supported; cron(six fields) takes six"
        )
    if len(fields) != len(_UNIX_FIELDS):
        raise InvalidExpression(text, FORMS)
    minute, hour, day, month, weekday = fields
    days, last_day, nearest = _days(day, _DAY)
    weekdays, ordinals = _unix_weekdays(weekday)
    parsed = CronFields(
        minutes=_set(minute, _MINUTE),
        hours=_set(hour, _HOUR),
        months=_set(month, _MONTH),
        years=None,
        days=days,
        any_day=day == "*",
        last_day=last_day,
        nearest_weekday=nearest,
        weekdays=weekdays,
        any_weekday=weekday == "*",
        ordinal_weekdays=ordinals,
    )
    if not parsed.any_day and not parsed.any_weekday:
        _check_both_days(day, weekday, parsed)
    return parsed


def _check_both_days(day: str, weekday: str, parsed: CronFields) -> None:
    """Refuses the pairs of day fields that crons read in different ways: as OR, or as AND."""
    for text, field in ((day, _DAY), (weekday, _WEEKDAY)):
        if any(item.startswith("*") for item in text.split(",")):
            raise field.refuse(
                text,
                "while the other day field is set too, write the days out for either-or, as in "
                f"{_spelt_out(text, field)}, or write * for no condition on this field",
            )
    if parsed.nearest_weekday is not None:
        raise _DAY.refuse(day, "nW only while the day-of-week field is *")
    if parsed.ordinal_weekdays:
        raise _WEEKDAY.refuse(weekday, "# and L only while the day-of-month field is *")


def _spelt_out(text: str, field: _Field) -> str:
    return text.replace("*", f"{field.low}-{field.last_of_star}")


def _eventbridge(inner: str) -> CronFields:
    fields = inner.upper().split()
    if len(fields) != _EVENTBRIDGE_FIELD_COUNT:
        raise InvalidExpression(
            inner, "in cron(…) six fields: minute hour day-of-month month day-of-week year"
        )
    minute, hour, day, month, weekday, year = fields
    minutes, hours, months = _set(minute, _MINUTE), _set(hour, _HOUR), _set(month, _MONTH)
    years = None if year == "*" else _set(year, _YEAR)
    if (day == "?") == (weekday == "?"):
        raise InvalidExpression(
            f"{day} and {weekday}",
            "exactly one of the day-of-month field and the day-of-week field is ?",
        )
    days, last_day, nearest = _days("*" if day == "?" else day, _EVENTBRIDGE_DAY)
    weekdays, ordinals = _eventbridge_weekdays("*" if weekday == "?" else weekday)
    return CronFields(
        minutes=minutes,
        hours=hours,
        months=months,
        years=years,
        days=days,
        any_day=day in ("*", "?"),
        last_day=last_day,
        nearest_weekday=nearest,
        weekdays=weekdays,
        any_weekday=weekday in ("*", "?"),
        ordinal_weekdays=ordinals,
    )


@lru_cache(maxsize=TERMS_KEPT_MAX)
def _days(text: str, field: _Field) -> tuple[frozenset[int], bool, int | None]:
    """Give the days, whether the last day is one of them, and the n of nW."""
    matched = _NEAREST.fullmatch(text)
    if matched is not None:
        return frozenset(), False, _number(matched[1], field)
    items = text.split(",")
    numbers = [item for item in items if item != "L"]
    for item in numbers:
        if "L" in item:
            raise field.refuse(item, "L stands alone in a term: L-n and LW are not supported")
    days: frozenset[int] = frozenset().union(*(_expand(item, field) for item in numbers))
    return days, len(numbers) < len(items), None


@lru_cache(maxsize=TERMS_KEPT_MAX)
def _unix_weekdays(text: str) -> tuple[frozenset[int], tuple[str, ...]]:
    items = text.split(",")
    ordinals = [_unix_ordinal(item) for item in items]
    if all(ordinals):
        return frozenset(), tuple(ordinal for ordinal in ordinals if ordinal)
    if any(ordinals):
        raise _WEEKDAY.refuse(text, "a list is either plain days or all of # and L")
    return frozenset(day % DAYS_OF_A_WEEK for day in _set(text, _WEEKDAY)), ()


def _unix_ordinal(item: str) -> str | None:
    if _LAST_WEEKDAY.fullmatch(item):
        return f"L{int(item[1:]) % DAYS_OF_A_WEEK}"
    return _nth_weekday(item, _WEEKDAY, sunday=0)


def _eventbridge_weekdays(text: str) -> tuple[frozenset[int], tuple[str, ...]]:
    field = _EVENTBRIDGE_WEEKDAY
    if text == "L":
        return frozenset({DAYS_OF_A_WEEK - 1}), ()
    if _EVENTBRIDGE_LAST_WEEKDAY.fullmatch(text):
        return frozenset(), (f"L{int(text[0]) - 1}",)
    ordinal = _nth_weekday(text, field, sunday=1)
    if ordinal is not None:
        return frozenset(), (ordinal,)
    return frozenset(day - 1 for day in _set(text, field)), ()


def _nth_weekday(item: str, field: _Field, *, sunday: int) -> str | None:
    matched = _ORDINAL.fullmatch(item)
    if matched is None:
        return None
    day, nth = matched.groups()
    if nth not in ("1", "2", "3", "4", "5"):
        raise field.refuse(item)
    return f"{(_number(day, field) - sunday) % DAYS_OF_A_WEEK}#{nth}"


def _set(text: str, field: _Field) -> frozenset[int]:
    if "," not in text:
        return _expand(text, field)
    return frozenset().union(*(_expand(item, field) for item in text.split(",")))


@lru_cache(maxsize=TERMS_KEPT_MAX)
def _expand(item: str, field: _Field) -> frozenset[int]:
    """One term of a list: a value, a range, either with a step, or *."""
    matched = _ITEM.fullmatch(item)
    if matched is None:
        raise field.refuse(item)
    star, first_text, last_text, step_text = matched.groups()
    step = 1 if step_text is None else int(step_text)
    if step == 0 or (step_text is not None and not field.steps):
        raise field.refuse(item, "a step is at least 1" if field.steps else "no steps here")
    star_high = field.last_of_star
    if star is not None:
        return frozenset(range(field.low, star_high + 1, step))
    first = _number(first_text, field)
    if last_text is None:
        if step_text is None:
            return frozenset({first})
        if not field.start_step:
            raise field.refuse(item, "a step needs a range here, as in 1-5/2")
        return frozenset(range(first, field.high + 1, step))
    last = _number(last_text, field)
    if first <= last:
        return frozenset(range(first, last + 1, step))
    if step_text is not None or not field.wraps:
        raise field.refuse(item, "a range that is stepped ascends; write it as two terms")
    return frozenset((*range(first, star_high + 1), *range(field.low, last + 1)))


def _number(text: str, field: _Field) -> int:
    number = int(text) if text.isdecimal() else field.names.get(text)
    if number is None or not field.low <= number <= field.high:
        raise field.refuse(text)
    return number


def _list(numbers: frozenset[int]) -> list[str]:
    return [str(number) for number in sorted(numbers)]
