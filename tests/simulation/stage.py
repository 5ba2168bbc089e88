"""A world in which a scenario says what happens: small latencies, and no faults but its cues."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from puntual.domain.definition import Definition, WebhookDefinition
from puntual.domain.expression import Gap
from puntual.domain.policies import Misfire, MisfirePolicy, Policies
from puntual.domain.schedule import ScheduleKey, ScheduleVersion
from puntual.domain.tenant import ScheduleId
from tests.simulation.faults import Fault, Window
from tests.simulation.io import Cue
from tests.simulation.scheduler import MINUTE, SECOND, instant_at
from tests.simulation.workload import AUTHOR, TENANT, ZONE
from tests.simulation.world import Parts, World

KEY = ScheduleKey(tenant=TENANT, schedule=ScheduleId("s0"))
TIMEOUT = timedelta(seconds=5)


class Stage(World):
    """Times are seconds from the start."""

    def __init__(self, parts: Parts | None = None, *cues: Cue, seed: int = 1) -> None:
        super().__init__(seed, parts, directed=True, visibility=MINUTE)
        self.receivers.ill_at_best = 0.0
        self.io.cues, self.io.hesitations = list(cues), (0,)
        self.faults.planner_pause = 20

    def create(self, at: float, definition: Definition, key: ScheduleKey = KEY) -> None:
        def create() -> object:
            return self.api.create_schedule(
                TENANT, definition, schedule=key.schedule, author=AUTHOR
            )

        self._call(at, create)

    def edit(self, at: float, definition: Definition, *, seen: int = 1) -> None:
        def revise(_: ScheduleVersion) -> Definition:
            return definition

        self._call(
            at, lambda: self.api.change_schedule(KEY, seen=seen, revise=revise, author=AUTHOR)
        )

    def pause(self, at: float) -> None:
        self._call(at, lambda: self.api.pause_schedule(KEY, author=AUTHOR))

    def ticks(self, *seconds: float) -> None:
        for at in seconds:
            self.at(at, self.tick_now)

    def ticks_each_minute(self, first: float) -> None:
        self.ticks(*range(int(first), 5 * 3600, 60))

    def explain_misses(self, until: float) -> None:
        """Say that nobody was there to plan."""
        outage = Window(0, int(until * SECOND), frozenset({Fault.NO_TICK}))
        self.faults.windows = (outage,)

    def at(self, seconds: float, action: Callable[[], object]) -> None:
        self.scheduler.at(int(seconds * SECOND), lambda: _ignored(action()))

    def _call(self, at: float, body: Callable[[], object]) -> None:
        self.at(at, lambda: self.call_api(body))


def _ignored(_: object) -> None:
    return


def once(at: float, *, misfire: Misfire = Misfire.FIRE_ONCE) -> Definition:
    """Define a schedule that fires once."""
    return _defined(f"at({instant_at(int(at * SECOND)):%Y-%m-%dT%H:%M:%S})", misfire=misfire)


def each_minute(start: float, end: float, *, misfire: Misfire = Misfire.FIRE_ONCE) -> Definition:
    """Define a schedule that fires each minute from `start`, not included, to `end`."""
    return _defined("rate(1 minute)", misfire=misfire, start=start, end=end)


def cron(expression: str, *, end: float) -> Definition:
    """Define a cron in UTC that ends."""
    return _defined(expression, misfire=Misfire.FIRE_ONCE, end=end)


def each_hour_in_its_window(end: float) -> Definition:
    """Define a schedule of an hour's window that soon fires three times within one hour.

    It does so where the clocks go forward: at 01:21, at 03:00 for 02:21, and at 03:21.
    """
    hourly = cron("21 1-4 * * *", end=end)
    policies = replace(hourly.policies, window=timedelta(hours=1))
    return replace(hourly, time_zone=ZONE, gap=Gap.FIRE_AFTER, policies=policies)


def _defined(
    expression: str, *, misfire: Misfire, start: float | None = None, end: float | None = None
) -> Definition:
    return Definition(
        expression=expression,
        start_at=None if start is None else instant_at(int(start * SECOND)),
        end_at=None if end is None else instant_at(int(end * SECOND)),
        policies=Policies(misfire=MisfirePolicy(policy=misfire)),
        target=WebhookDefinition(url="https://acme.example/hook", timeout=TIMEOUT),
    )
