"""When a rule will fire, and what the clocks will do to it: what people check before they trust."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from puntual.domain.clock_changes import (
    ClockChange,
    FireNote,
    clock_changes_of,
    fire_notes_of,
)
from puntual.domain.expression import Rule
from puntual.domain.instant import LAST_INSTANT, YEAR

PREVIEW_FIRES_MAX = 100
PREVIEW_FIRES_DEFAULT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedFire:
    instant: datetime
    available_at: datetime
    notes: tuple[FireNote, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Fires in order, and every clock change through `notes_through` that touches the rule."""

    fires: tuple[PreviewedFire, ...]
    clock_changes: tuple[ClockChange, ...]
    notes_through: datetime


def preview_of(
    rule: Rule, *, after: datetime, count: int, available_at: Callable[[datetime], datetime]
) -> Preview:
    """Give up to `count` fires after an instant, and the clock changes of a year beyond them.

    `available_at` tells from when a fire may run. The year lets people who look in November see
    what March will do, though the fires listed end next week.
    """
    assert 0 < count <= PREVIEW_FIRES_MAX
    fires = rule.fires_between(after, LAST_INSTANT, limit=count)
    through = min((fires[-1] if fires else after) + YEAR, LAST_INSTANT)
    changes = clock_changes_of(rule, after=after, through=through)
    return Preview(
        fires=tuple(
            PreviewedFire(
                instant=fire, available_at=available_at(fire), notes=fire_notes_of(rule, fire)
            )
            for fire in fires
        ),
        clock_changes=changes.changes,
        notes_through=changes.through,
    )
