"""The fires of a rule in a range, a bit for each minute: counted without walking them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from puntual.domain.expression import Rule
from puntual.domain.fire_minutes import FireMinutes
from puntual.domain.instant import DAY, DAY_MINUTES, INSTANT_STEP, MINUTE, YEAR, minute_of

RANGE_MAX = YEAR
"""The longest range that is ever counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FireBits:
    """Bit n is the fire n minutes after `start`: a rule has at most one in a minute."""

    rule: Rule
    start: datetime
    bits: int

    @property
    def count(self) -> int:
        return self.bits.bit_count()

    def fire(self, number: int) -> datetime | None:
        """Give the fire of a number, from 1; None where there are fewer."""
        assert number > 0
        minute = 0
        for day in self._days():
            here = day.bit_count()
            if number <= here:
                return self._instant(minute + _place_of(day, number))
            number, minute = number - here, minute + DAY_MINUTES
        return None

    def without(self, instant: datetime) -> "FireBits":
        """Leave out the fire of an instant's minute."""
        return self.without_range(instant, instant)

    def without_range(self, first: datetime, last: datetime) -> "FireBits":
        """Leave out the fires of both instants' minutes, and of those between."""
        low = max(0, (minute_of(first) - self.start) // MINUTE)
        high = (minute_of(last) - self.start) // MINUTE
        if high < low:
            return self
        return replace(self, bits=self.bits & ~(((1 << high - low + 1) - 1) << low))

    def _days(self) -> Iterator[int]:
        rest, of_a_day = self.bits, (1 << DAY_MINUTES) - 1
        while rest:
            yield rest & of_a_day
            rest >>= DAY_MINUTES

    def _instant(self, minute: int) -> datetime:
        fire = _fire_in(self.rule, self.start + minute * MINUTE)
        assert fire is not None
        return fire


def fire_bits(rule: Rule, first: datetime, last: datetime) -> FireBits:
    """Find the fires of a rule from `first` to `last`, both included."""
    assert last - first <= RANGE_MAX
    start, bits = minute_of(first), 0
    if last < first:
        return FireBits(rule=rule, start=start, bits=0)
    days = (last - start) // DAY + 1
    for day in range(days):
        bits |= FireMinutes(start + day * DAY).of(rule) << day * DAY_MINUTES
    bits &= (1 << (minute_of(last) - start) // MINUTE + 1) - 1
    found = FireBits(rule=rule, start=start, bits=bits)
    # Within its minute, the fire may lie on the other side of the range's end.
    for edge in (first, last):
        fire = _fire_in(rule, minute_of(edge))
        if fire is not None and not first <= fire <= last:
            found = found.without(edge)
    return found


def _fire_in(rule: Rule, minute: datetime) -> datetime | None:
    fire = rule.next_fire(minute - INSTANT_STEP)
    return fire if fire is not None and fire < minute + MINUTE else None


def _place_of(bits: int, number: int) -> int:
    """Give the place of the set bit of a number, from 1."""
    for _ in range(number - 1):
        bits &= bits - 1
    return (bits & -bits).bit_length() - 1
