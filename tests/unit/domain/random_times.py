"""Random expressions together with what they say, in a reading of their own.

The text and its meaning are made at once, term by term, so nothing here parses, and nothing is
shared with the engine. Values crowd around a given wall time, so that the rules have something to
say about a change of the clocks there.
"""

from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from random import Random

from tests.unit.domain.watched_clock import Times

type Days = Callable[[date], bool]

# fmt: off
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
# fmt: on
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
NICKNAMES: dict[str, tuple[set[int], Days]] = {
    "@hourly": (set(range(24)), lambda _: True),
    "@daily": ({0}, lambda _: True),
    "@midnight": ({0}, lambda _: True),
    "@weekly": ({0}, lambda day: weekday_of(day) == 0),
    "@monthly": ({0}, lambda day: day.day == 1),
    "@yearly": ({0}, lambda day: (day.month, day.day) == (1, 1)),
    "@annually": ({0}, lambda day: (day.month, day.day) == (1, 1)),
}


def weekday_of(day: date) -> int:
    """Count from Sunday = 0, as unix cron does."""
    return day.isoweekday() % 7


def _any(_: date) -> bool:
    return True


EVERY_DAY: Days = _any


@dataclass(frozen=True, kw_only=True)
class Field:
    """The numbers of a field, the forms that its terms may take, and the number to crowd around."""

    low: int
    high: int
    near: int
    star_high: int
    forms: tuple[str, ...] = ("value", "range", "wrap", "a-b/n", "a/n", "*/n")
    names: tuple[str, ...] = ()

    def terms(self, chance: Random) -> tuple[str, set[int]]:
        """Give the text of one to three terms, and the numbers they stand for."""
        terms = [self._term(chance) for _ in range(chance.choice([1, 1, 1, 2, 3]))]
        return ",".join(text for text, _ in terms), set().union(*(values for _, values in terms))

    def without(self, *forms: str) -> "Field":
        return replace(self, forms=tuple(form for form in self.forms if form not in forms))

    def value(self, chance: Random) -> int:
        if chance.random() < 0.6:
            close = self.near + chance.choice([-1, 0, 0, 0, 1])
            return min(max(close, self.low), self.high)
        return chance.randint(self.low, self.high)

    def _term(self, chance: Random) -> tuple[str, set[int]]:
        step = chance.choice([1, 2, 3, 5, 7, 15, 100])
        first, last = sorted((self.value(chance), self.value(chance)))
        match chance.choice(self.forms):
            case "range":
                return f"{self._shown(first, chance)}-{self._shown(last, chance)}", set(
                    range(first, last + 1)
                )
            case "wrap" if first < last:
                text = f"{self._shown(last, chance)}-{self._shown(first, chance)}"
                return text, self._walked(last, first)
            case "a-b/n":
                text = f"{self._shown(first, chance)}-{self._shown(last, chance)}/{step}"
                return text, self._paced(first, last, step)
            case "a/n":
                return f"{self._shown(first, chance)}/{step}", self._paced(first, self.high, step)
            case "*/n":
                return f"*/{step}", self._paced(self.low, self.star_high, step)
            case _:
                return self._shown(first, chance), {first}

    def _paced(self, first: int, last: int, step: int) -> set[int]:
        return {value for value in range(first, last + 1) if (value - first) % step == 0}

    def _walked(self, first: int, last: int) -> set[int]:
        """Walk from one number up to another past the end of the field."""
        value, walked = first, {first}
        while value != last:
            value = self.low if value >= self.star_high else value + 1
            walked.add(value)
        return walked

    def _shown(self, value: int, chance: Random) -> str:
        if value - self.low < len(self.names) and chance.random() < 0.5:
            name = self.names[value - self.low]
            return chance.choice([name, name.lower(), name.title()])
        return f"{value:02}" if chance.random() < 0.1 else str(value)


def random_times(chance: Random, near: datetime) -> Times:
    """Make any expression that a clock on the wall decides."""
    makers = [a_unix_cron] * 8 + [an_eventbridge_cron] * 6 + [a_nickname] + [an_at] * 2
    return chance.choice(makers)(chance, near)


def a_nickname(chance: Random, _: datetime) -> Times:
    text = chance.choice([*NICKNAMES])
    hours, names_day = NICKNAMES[text]
    return Times(
        text=chance.choice([text, text.upper()]),
        times=frozenset((hour, 0) for hour in hours),
        names_day=names_day,
    )


def an_at(chance: Random, near: datetime) -> Times:
    wall = near + timedelta(seconds=chance.randint(-7_200, 7_200))
    if chance.random() < 0.8:
        wall = wall.replace(second=0)
    return Times(
        text=f"at({wall:%Y-%m-%dT%H:%M:%S})",
        times=frozenset({(wall.hour, wall.minute)}),
        names_day=lambda day: day == wall.date(),
        second=wall.second,
        once=True,
    )


def a_unix_cron(chance: Random, near: datetime) -> Times:
    minute, hour, times = _times_of_day(chance, near)
    month, in_month = _months(chance, near)
    both = chance.random() < 0.2
    day, on_day = "*", EVERY_DAY
    weekday, on_weekday = "*", EVERY_DAY
    if both or chance.random() < 0.25:
        day, on_day = _days(chance, near, stars=not both, nearest=not both)
    if both or (day == "*" and chance.random() < 0.35):
        weekday, on_weekday = _unix_weekdays(chance, near, plain=both)

    def names_day(date_: date) -> bool:
        if both:
            return in_month(date_) and (on_day(date_) or on_weekday(date_))
        return in_month(date_) and on_day(date_) and on_weekday(date_)

    text = chance.choice([" ", " ", "  ", "\t"]).join((minute, hour, day, month, weekday))
    return Times(text=text, times=times, names_day=names_day)


def an_eventbridge_cron(chance: Random, near: datetime) -> Times:
    minute, hour, times = _times_of_day(chance, near)
    month, in_month = _months(chance, near)
    year, in_year = _years(chance, near)
    day, weekday, on_day = chance.choice(["*", "?"]), "?", EVERY_DAY
    if day == "?":
        weekday = "*"
    if chance.random() < 0.5:
        if weekday == "?":
            day, on_day = _days(chance, near, stars=True, nearest=True)
        else:
            weekday, on_day = _eventbridge_weekdays(chance, near)
    return Times(
        text=f"cron({minute} {hour} {day} {month} {weekday} {year})",
        times=times,
        names_day=lambda date_: in_year(date_) and in_month(date_) and on_day(date_),
    )


def _times_of_day(chance: Random, near: datetime) -> tuple[str, str, frozenset[tuple[int, int]]]:
    minute, minutes = "*", set(range(60))
    hour, hours = "*", set(range(24))
    if chance.random() < 0.9:
        minute, minutes = Field(low=0, high=59, near=near.minute, star_high=59).terms(chance)
    if chance.random() < 0.85:
        hour, hours = Field(low=0, high=23, near=near.hour, star_high=23).terms(chance)
    return minute, hour, frozenset((h, m) for h in hours for m in minutes)


def _months(chance: Random, near: datetime) -> tuple[str, Days]:
    if chance.random() < 0.75:
        return "*", EVERY_DAY
    field = Field(low=1, high=12, near=near.month, star_high=12, names=MONTHS)
    text, months = field.terms(chance)
    return text, lambda day: day.month in months


def _years(chance: Random, near: datetime) -> tuple[str, Days]:
    if chance.random() < 0.6:
        return "*", EVERY_DAY
    near_year = min(max(near.year, 1970), 2199)
    field = Field(low=1970, high=2199, near=near_year, star_high=2199).without("wrap")
    text, years = field.terms(chance)
    return text, lambda day: day.year in years


def _days(chance: Random, near: datetime, *, stars: bool, nearest: bool) -> tuple[str, Days]:
    """Days of the month: numbers with L among them, or nW alone."""
    field = Field(low=1, high=31, near=near.day, star_high=31)
    if nearest and chance.random() < 0.25:
        number = field.value(chance)
        return f"{number}{chance.choice('Ww')}", lambda day: day == _nearest_weekday(day, number)
    if chance.random() < 0.15:
        return chance.choice("Ll"), _is_last_day
    text, days = (field if stars else field.without("*/n")).terms(chance)
    if chance.random() < 0.15:
        return f"{text},L", lambda day: day.day in days or _is_last_day(day)
    return text, lambda day: day.day in days


def _unix_weekdays(chance: Random, near: datetime, *, plain: bool) -> tuple[str, Days]:
    field = Field(low=0, high=7, near=weekday_of(near), star_high=6, names=WEEKDAYS).without("a/n")
    if not plain and chance.random() < 0.4:
        texts, terms = [], list[Days]()
        for _ in range(chance.choice([1, 1, 2])):
            number = field.value(chance)
            nth = chance.choice([0, 1, 2, 3, 4, 5])
            terms.append(_nth_weekday(number % 7, nth))
            texts.append(f"{number}#{nth}" if nth else f"L{number}")
        return ",".join(texts), lambda day: any(term(day) for term in terms)
    text, numbers = (field.without("*/n") if plain else field).terms(chance)
    weekdays = {number % 7 for number in numbers}
    return text, lambda day: weekday_of(day) in weekdays


def _eventbridge_weekdays(chance: Random, near: datetime) -> tuple[str, Days]:
    field = Field(low=1, high=7, near=weekday_of(near) + 1, star_high=7, names=WEEKDAYS)
    number, nth = field.value(chance), chance.choice([1, 2, 3, 4, 5])
    match chance.choice(["L", "nL", "n#k", "plain", "plain"]):
        case "L":
            return "L", lambda day: weekday_of(day) == 6
        case "nL":
            return f"{number}L", _nth_weekday(number - 1, 0)
        case "n#k":
            text = chance.choice([str(number), WEEKDAYS[number - 1]])
            return f"{text}#{nth}", _nth_weekday(number - 1, nth)
        case _:
            text, numbers = field.without("a/n", "a-b/n", "*/n").terms(chance)
            return text, lambda day: weekday_of(day) + 1 in numbers


def _nth_weekday(weekday: int, nth: int) -> Days:
    """The nth of a weekday in its month; the 0th is the last."""

    def is_nth(day: date) -> bool:
        if weekday_of(day) != weekday:
            return False
        if nth == 0:
            return (day + timedelta(days=7)).month != day.month
        return day.day - 7 * (nth - 1) in range(1, 8)

    return is_nth


def _is_last_day(day: date) -> bool:
    return (day + timedelta(days=1)).month != day.month


def _nearest_weekday(within: date, number: int) -> date | None:
    """Give the weekday of a month that is nearest to its day `number`, if it has such a day."""
    length = monthrange(within.year, within.month)[1]
    if number > length:
        return None
    for away in (0, -1, 1, -2, 2):
        if 1 <= number + away <= length:
            candidate = date(within.year, within.month, number + away)
            if weekday_of(candidate) not in (0, 6):
                return candidate
    raise AssertionError("every month has a weekday near each of its days")
