"""Two sequences of fires, side by side."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from puntual.domain.expression import NextFireAfter


class Beside(NamedTuple):
    """An instant at which one of two sequences has a fire, or both have."""

    fire: datetime
    in_old: bool
    in_new: bool


def fires_after(next_fire: NextFireAfter, after: datetime) -> Iterator[datetime]:
    """Give every fire after an instant; whoever takes them bounds them."""
    fire = next_fire(after)
    while fire is not None:
        yield fire
        fire = next_fire(fire)


def side_by_side(old: Iterator[datetime], new: Iterator[datetime]) -> Iterator[Beside]:
    """Give the instants of two rising sequences in order, none asked for further than need be."""
    was, will = next(old, None), next(new, None)
    while was is not None or will is not None:
        fire = min(each for each in (was, will) if each is not None)
        yield (beside := Beside(fire, in_old=was == fire, in_new=will == fire))
        was = next(old, None) if beside.in_old else was
        will = next(new, None) if beside.in_new else will
