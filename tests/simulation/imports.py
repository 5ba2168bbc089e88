"""Imports that die, are throttled or time out anywhere, and clients that ask again until done.

A file over some schedules that are there already. However often it is cut off, it ends as if it
had never been: each line once, its first fires planned, and its place in the quota counted.
"""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from puntual.application.announced import Announced
from puntual.application.control_plane import ControlPlane, Wiring, control_plane_of
from puntual.application.import_schedule import ImportSchedule, Mode
from puntual.application.import_schedules import (
    Asked,
    ImportedSchedules,
    ImportOrder,
    ImportSchedules,
)
from puntual.application.plan_cursors import PlanCursors
from puntual.domain.errors import Unavailable
from puntual.domain.tenant import schedule_id_of
from tests.builders import HORIZON, TENANT
from tests.control_plane_world import AUTHOR, LIMITS, RETENTION, World, a_definition
from tests.fakes.hostile import (
    HostileAgenda,
    HostileLedger,
    HostileOutbox,
    HostileSchedules,
    HostileShards,
    Hostility,
    Rates,
)

BEFORE = {"a": 0, "b": 0}
AFTER = {"a": 0, "b": 1, "c": 0, "d": 0}
"""Schedules of the file by what their payload says; two of them are there, one as it says."""

CALLS_MAX = 200


class Died(BaseException):
    """The process ends here; no handler of errors can see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The use cases of an import, for variants to replace."""

    lines: type[ImportSchedule] = ImportSchedule
    files: type[ImportSchedules] = ImportSchedules


@dataclass(slots=True)
class Death:
    """Counts I/Os, and ends the process at one of them and at all that follow."""

    at: int | None = None
    seen: int = field(default=0, init=False)

    def __call__(self, _: str) -> None:
        self.seen += 1
        if self.at is not None and self.seen >= self.at:
            raise Died


def a_file() -> bytes:
    lines = (
        {"id": name, "expression": "rate(2 minutes)", "payload": says}
        for name, says in AFTER.items()
    )
    return "\n".join(map(json.dumps, lines)).encode()


def a_world() -> World:
    world = World()
    for name, says in BEFORE.items():
        world.created("rate(2 minutes)", schedule=name, payload=says)
    world.clock.advance(timedelta(seconds=1))
    return world


def as_left(world: World) -> tuple[object, ...]:
    """Give all that must be as if nothing had happened on the way."""
    heads, versions, tenants, cursors, _, ledger, *others = world.writes()
    fires = set(world.planned_occurrences())
    return heads, versions, tenants, cursors, ledger, others, fires


def untroubled() -> tuple[object, ...]:
    world = a_world()
    Client(world).imports_all(Hostility(source=random.Random(0)))
    return as_left(world)


@dataclass(slots=True)
class Client:
    """Asks again with the last token that it was given; `within` is the time of each call."""

    world: World
    parts: Parts = field(default_factory=Parts)
    within: timedelta = timedelta(minutes=1)
    token: str | None = field(default=None, init=False)

    def calls(self, hostility: Hostility) -> bool:
        """Call once; tells whether the file is done."""
        try:
            done = self._imported(hostility)
        except (Unavailable, Died):
            return False
        self.token = done.resume
        return done.resume is None

    def imports_all(self, hostility: Hostility) -> None:
        for _ in range(CALLS_MAX):
            if self.calls(hostility):
                return
        raise AssertionError("the import does not end")

    def _imported(self, hostility: Hostility) -> ImportedSchedules:
        order = ImportOrder(mode=Mode.UPSERT, dry_run=False, author=AUTHOR, within=self.within)
        return _plane(self.world, hostility, self.parts).import_schedules(
            TENANT, a_file(), order, read=_asked, weigh=lambda _: 1, resume=self.token
        )


def dies_everywhere(parts: Parts, *, within: timedelta) -> Iterator[int]:
    """Give each I/O of a client's calls at which a death leads to another end than none."""
    expected = untroubled()
    for at in range(1, 10_000):
        world, death = a_world(), Death(at)
        client = Client(world, parts, within)
        mortal = Hostility(source=random.Random(0), at_io=death)
        while not client.calls(mortal):
            if death.seen >= at:
                break
        else:
            return
        client.imports_all(Hostility(source=random.Random(0)))
        if as_left(world) != expected:
            yield at


def is_troubled_well(seed: int, parts: Parts) -> bool:
    """Tell whether a file ends well though its calls are throttled, time out and are repeated."""
    source = random.Random(seed)
    rates = Rates(throttled=0.1, timed_out=0.1, repeated=0.1, partial=0.1)
    world = a_world()
    within = timedelta(minutes=source.choice((-1, 1)))
    Client(world, parts, within).imports_all(Hostility(source=source, rates=rates))
    return as_left(world) == untroubled()


def _plane(world: World, hostility: Hostility, parts: Parts) -> ControlPlane:
    schedules = HostileSchedules(world.schedules, hostility)
    ledger = HostileLedger(world.ledger, hostility)
    plan_cursors = PlanCursors(
        schedules=schedules,
        agenda=HostileAgenda(world.agenda, hostility),
        outbox=HostileOutbox(world.outbox, hostility),
        ledger=ledger,
        clock=world.clock,
    )
    plane = control_plane_of(
        Wiring(
            schedules=schedules,
            tenants=world.tenants,
            budgets=world.budgets,
            shares=world.shares,
            breakers=world.breakers,
            requests=world.requests,
            ledger=ledger,
            announced=Announced(
                shards=HostileShards(world.shards, hostility),
                plan_cursors=plan_cursors,
                clock=world.clock,
                shard_count=4,
                horizon=HORIZON,
            ),
            clock=world.clock,
            ids=world.ids,
            limits=LIMITS,
            retention=RETENTION,
            deliver=world.deliver,
            import_threads=1,
        )
    )
    files, lines = plane.import_schedules, plane.import_schedules.import_schedule
    return replace(
        plane,
        import_schedules=_as(parts.files, files, import_schedule=_as(parts.lines, lines)),
    )


def _as[T](kind: Callable[..., T], made: Any, **changes: object) -> T:
    """Give a use case of another kind on the same ports."""
    parts = {name: getattr(made, name) for name in made.__dataclass_fields__}
    return kind(**parts | changes)


def _asked(content: bytes) -> Asked:
    document: dict[str, Any] = json.loads(content)
    name = schedule_id_of(document.pop("id"))
    return Asked(schedule=name, definition=a_definition(**document))
