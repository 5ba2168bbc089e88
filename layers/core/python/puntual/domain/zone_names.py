"""The names of time zones, as the pinned tz database has them: which are aliases of which."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

ZONE_LINE, LINK_LINE = "Z", "L"
NO_ZONE = "Factory"
"""What a machine has before anybody tells it where it is."""

PREFERRED = MappingProxyType({"Etc/UTC": "UTC"})
"""Where the database's own name is not the one that people write."""


def canonical_zone(name: str) -> str:
    """Give the zone that a name stands for: itself, or what it is an alias of.

    A name that the database does not know stands for itself.
    """
    return _canonical_names().get(name, name)


def is_zone_name(name: str) -> bool:
    """Tell whether the database has a zone or an alias of just this spelling."""
    return name in _canonical_names()


def zone_names() -> tuple[str, ...]:
    """Every zone and every alias, in order."""
    return tuple(sorted(_canonical_names()))


def spelling_of(name: str) -> str | None:
    """Give the name that somebody meant who took no care of case and spaces."""
    return _spellings().get(_careless(name))


@cache
def _canonical_names() -> Mapping[str, str]:
    """Read the Z and L lines of tzdata.zi, the database's text form (zic(8)); once, as they stay.

    `L TARGET NAME` makes a name an alias, whose target may be one as well.
    """
    text = (files("tzdata") / "zoneinfo" / "tzdata.zi").read_text(encoding="utf-8")
    targets: dict[str, str] = {}
    for line in text.splitlines():
        match line.split():
            case [kind, name, *_] if kind == ZONE_LINE:
                targets[name] = name
            case [kind, target, name] if kind == LINK_LINE:
                targets[name] = target
    del targets[NO_ZONE]
    return {name: _end_of_chain(name, targets) for name in targets}


def _end_of_chain(name: str, targets: Mapping[str, str]) -> str:
    for _ in targets:
        if targets[name] == name:
            break
        name = targets[name]
    return PREFERRED.get(name, name)


@cache
def _spellings() -> Mapping[str, str]:
    return {_careless(name): name for name in _canonical_names()}


def _careless(name: str) -> str:
    return name.strip().replace(" ", "_").casefold()
