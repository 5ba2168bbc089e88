"""Says in one sentence what an edit does to a schedule's fires."""

from datetime import datetime, timedelta

from puntual.domain.fire_changes import FireChanges
from puntual.domain.instant import DAY, HOUR, MINUTE, SECOND, brief_text_of

UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))


def summary_of(changes: FireChanges, *, rule_changed: bool) -> str:
    """Count what comes, goes, moves and stays, or say what happens after the time compared."""
    if not rule_changed:
        return "No fire changes: the rule stays as it was."
    if changes.appear or changes.vanish or changes.move:
        told = ("; " if changes.move else ", ").join(_clauses(changes))
        return (
            f"{told}." if changes.complete else f"Until {brief_text_of(changes.through)}: {told}."
        )
    return f"Nothing changes {_span(changes)}{_next(changes)}."


def _clauses(changes: FireChanges) -> list[str]:
    counted = (
        (len(changes.move), ("moves", "move"), _shifts(changes)),
        (len(changes.appear), ("appears", "appear"), ""),
        (len(changes.vanish), ("vanishes", "vanish"), ""),
        (changes.unchanged, ("stays", "stay"), ""),
    )
    clauses = [f"{count} {verbs[count > 1]}{how}" for count, verbs, how in counted if count]
    # The first clause names what all of them count.
    count, rest = clauses[0].split(" ", maxsplit=1)
    return [f"{count} {'fire' if count == '1' else 'fires'} {rest}", *clauses[1:]]


def _shifts(changes: FireChanges) -> str:
    shifts = {move.after - move.before for move in changes.move}
    if not shifts:
        return ""
    if len(shifts) > 1:
        return f", from {_shift(min(shifts))} to {_shift(max(shifts))}"
    each = "each " if len(changes.move) > 1 else ""
    return f", {each}{_shift(shifts.pop())}"


def _shift(shift: timedelta) -> str:
    return f"{_lasting(abs(shift))} {'later' if shift > timedelta(0) else 'earlier'}"


def _lasting(length: timedelta) -> str:
    parts = []
    for unit, name in UNITS:
        count, length = divmod(length, unit)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts)


def _span(changes: FireChanges) -> str:
    if not changes.complete:
        return f"until {brief_text_of(changes.through)}"
    return f"in the next {(changes.through - changes.start) // DAY} days"


def _next(changes: FireChanges) -> str:
    match changes.next_before, changes.next_after:
        case datetime() as before, datetime() as after if before != after:
            return f"; its next fire moves from {brief_text_of(before)} to {brief_text_of(after)}"
        case None, datetime() as after:
            return f"; its next fire, at {brief_text_of(after)}, appears"
        case datetime() as before, None:
            return f"; its next fire, at {brief_text_of(before)}, vanishes"
        case _:
            return ""
