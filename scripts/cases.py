"""Runs a file of cron cases through the time engine: `python -m scripts.cases FILE`.

The format is in CONTRIBUTING.md. Names in a case that nobody reads are told of at the end: one
that is spelt wrong would else look like a fault of the engine.

Exits with 0 if every case holds, with 1 if one fails, and with 2 if the file holds no cases.
"""

import json
import sys
import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from puntual.domain.errors import Rejected
from puntual.domain.expression import Fold, Gap, NeverFires, Rule, rule_of

type Case = Mapping[str, object]

NEVER_FIRES = "never_fires"
INVALID = "invalid"
NOTHING_ELSE = "nothing else"

READ = (
    "expression",
    "dialect",
    "time_zone",
    "gap_policy",
    "fold_policy",
    "start",
    "expected",
    "exhausted",
    "error",
)
FOR_PEOPLE = ("id", "why", "source", "note")
EVENTBRIDGE_FORMS = ("cron(", "rate(", "at(")


class NoCases(Exception):
    """What was named is no file of cases."""


class UnreadableCase(Exception):
    """A case does not say what to do, or what should come of it."""


def cases_in(path: Path) -> list[Case]:
    """Read a file; raises NoCases."""
    try:
        cases = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise NoCases(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise NoCases(f"{path}: no JSON: {error}") from error
    if not isinstance(cases, list) or not all(isinstance(case, dict) for case in cases):
        raise NoCases(f"{path}: not a list of objects")
    if not cases:
        raise NoCases(f"{path}: an empty list")
    return cases


def rule_in(case: Case, create: Callable[..., Rule] = rule_of) -> Rule:
    """Create the rule of a case at its start; raises Rejected, UnreadableCase."""
    start = _instant(case.get("start"), "start")
    return create(
        case.get("expression"),
        time_zone=case.get("time_zone", "UTC"),
        gap=_policy(Gap, case.get("gap_policy") or Gap.SKIP, "gap_policy"),
        fold=_policy(Fold, case.get("fold_policy") or Fold.AUTO, "fold_policy"),
        anchor=start,
        now=start,
    )


def failure_of(case: Case, *, place: int = 1, create: Callable[..., Rule] = rule_of) -> str | None:
    """Say what was expected of a case and what came instead; None if it holds.

    `place` tells a case without an id from the others of its file.
    """
    try:
        _check_dialect(case)
        wanted = _wanted(case)
        came = _answer(case, create)
    except UnreadableCase as error:
        wanted, came = "a case that says what to do", str(error)
    if came == wanted:
        return None
    name = _line(case.get("id", f"case {place}"))
    return f"{name}: {case.get('expression')!r}: expected {wanted}; came {came}"


def unread_in(cases: Sequence[Case]) -> list[str]:
    """Give the names that neither the engine nor people are meant to read, in order."""
    return sorted({_line(name) for case in cases for name in case} - {*READ, *FOR_PEOPLE})


def _check_dialect(case: Case) -> None:
    dialect = case.get("dialect")
    if dialect is None or case.get("error") is not None:
        return
    fits = str(case.get("expression")).lstrip().startswith(EVENTBRIDGE_FORMS)
    if dialect != ("eventbridge" if fits else "unix"):
        raise UnreadableCase(f"dialect {dialect!r} of another expression")


def _line(value: object) -> str:
    text = str(value)
    return text if text.isprintable() else repr(text)


def _wanted(case: Case) -> str:
    error, exhausted = case.get("error"), case.get("exhausted") is True
    if error is not None:
        return _line(error)
    expected = _expected(case)
    # A rule without any fire left cannot even be created.
    return NEVER_FIRES if exhausted and not expected else _text(expected, exhausted=exhausted)


def _answer(case: Case, create: Callable[..., Rule]) -> str:
    try:
        rule = rule_in(case, create)
        if case.get("error") is not None:
            return "a rule"
        return _fires(rule, case)
    except UnreadableCase:
        raise
    except NeverFires:
        return NEVER_FIRES
    except Rejected:
        return INVALID
    except Exception as error:  # noqa: BLE001 - a crash is the answer to this case, not to the rest
        return f"a crash: {error!r}"


def _fires(rule: Rule, case: Case) -> str:
    """Walk on from fire to fire, and look back at each."""
    after, wanted = _instant(case.get("start"), "start"), len(_expected(case))
    exhausted = case.get("exhausted") is True
    fires: list[datetime] = []
    while len(fires) < wanted + exhausted and (fire := rule.next_fire(after)) is not None:
        if (last := rule.last_fire(fire)) != fire:
            return f"{_text([last] if last else [])} as the last fire by {_text([fire])}"
        fires.append(fire)
        after = fire
    return _text(fires, exhausted=exhausted and len(fires) <= wanted)


def _expected(case: Case) -> list[datetime]:
    expected = case.get("expected")
    if not isinstance(expected, list):
        raise UnreadableCase("neither expected nor error")
    return [_instant(text, "expected") for text in expected]


def _instant(text: object, name: str) -> datetime:
    try:
        instant = datetime.fromisoformat(str(text))
    except ValueError as error:
        raise UnreadableCase(f"{name} {text!r}, which is no instant") from error
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _policy[P: (Gap, Fold)](policies: type[P], value: object, name: str) -> P:
    try:
        return policies(str(value).lower())
    except ValueError as error:
        raise UnreadableCase(f"{name} {value!r}") from error


def _text(fires: Sequence[datetime], *, exhausted: bool = False) -> str:
    texts = [fire.astimezone(UTC).isoformat().replace("+00:00", "Z") for fire in fires]
    return ", ".join(texts + [NOTHING_ELSE] * exhausted) or "nothing"


def main(arguments: Sequence[str]) -> int:
    # Only the pinned zone rules say what is right, whatever the machine has.
    zoneinfo.reset_tzpath(to=())
    zoneinfo.ZoneInfo.clear_cache()
    if len(arguments) != 1 or not arguments[0]:
        print("Which file of cases? As in: make cases FILE=path", file=sys.stderr)
        return 2
    try:
        cases = cases_in(Path(arguments[0]))
    except NoCases as error:
        print(error, file=sys.stderr)
        return 2
    failures = [
        failure
        for place, case in enumerate(cases, 1)
        if (failure := failure_of(case, place=place)) is not None
    ]
    for failure in failures:
        print(failure)
    unread = unread_in(cases)
    if unread:
        print(f"Nobody reads {', '.join(unread)}; read are {', '.join(READ)}", file=sys.stderr)
    print(f"{len(cases)} cases, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
