"""What the tenants of one seed do: schedules that come, change and go, aimed at their due times."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from random import Random

from puntual.application.control_plane import ControlPlane
from puntual.domain.definition import Definition, WebhookDefinition
from puntual.domain.expression import Gap
from puntual.domain.policies import (
    CATCH_UP_LIMIT_MAX,
    Completion,
    CompletionPolicy,
    Misfire,
    MisfirePolicy,
    Overlap,
    Policies,
    RetryPolicy,
)
from puntual.domain.request import Request
from puntual.domain.schedule import Schedule, ScheduleKey, ScheduleState, ScheduleVersion
from puntual.domain.tenant import ScheduleId, TenantId
from tests.simulation.scheduler import MINUTE, SECOND, Scheduler, instant_at

TENANT = TenantId("acme")
AUTHOR = "ana"
ORIGIN = "https://acme.example"

RATES = (1, 2, 5, 10, 15, 30)
ZONE = "Asia/Jerusalem"
CRONS = {
    "*/5 * * * *": 5,
    "*/2 * * * *": 2,
    "0,7,20,31,45 * * * *": 7,
    "10,40,59 1-4 * * *": 11,
}
"""Each with its smallest interval in minutes, which bounds the window. Where the clocks go
forward, the last one fires a minute later already."""

WINDOW_SHORT = 20
WINDOW_MIDDLE_MAX = 300
WITHOUT_A_WINDOW = 9
"""For each three schedules with a window: a short one, a middle one, and the largest allowed."""

LENGTHS = (3600 * SECOND, 4500 * SECOND, 5400 * SECOND)
ENDS_AFTER = 300 * SECOND
CHANGES = ("edit",) * 8 + ("pause",) * 4 + ("cancel",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Plans all of a seed's calls ahead; `call` runs one as a function of the API."""

    scheduler: Scheduler
    api: ControlPlane
    heads: Callable[[ScheduleKey], Schedule | None]
    call: Callable[[Callable[[], object]], None]
    lasts: int

    def plan(self) -> None:
        random = self.scheduler.random
        keys = [
            ScheduleKey(tenant=TENANT, schedule=ScheduleId(f"s{number}"))
            for number in range(random.randint(4, 8))
        ]
        for key in keys:
            when = random.randint(0, int(self.lasts * 0.4))
            self.scheduler.at(when, partial(self._create, key))
        for _ in range(random.randint(15, 60)):
            when = random.randint(MINUTE, self.lasts)
            self.scheduler.at(when, partial(self._change, keys))

    def _create(self, key: ScheduleKey) -> None:
        """Create a schedule; a client that hears nothing, or is in doubt, asks again."""
        random = self.scheduler.random
        definition = _definition(random, self.scheduler.now, self.lasts)
        request = Request(key=key.schedule, body=repr(definition))

        def create() -> object:
            return self.api.create_schedule(
                TENANT, definition, schedule=key.schedule, author=AUTHOR, request=request
            )

        self.call(create)
        for _ in range(random.choice((0, 1, 1, 2))):
            self.scheduler.after(random.randint(1, 90) * SECOND, lambda: self.call(create))

    def _change(self, keys: list[ScheduleKey]) -> None:
        """Change one of them now or, more often, about when it is due."""
        random, now = self.scheduler.random, self.scheduler.now
        key = random.choice(keys)
        head = self.heads(key)
        if head is None:
            return
        kind = random.choice(CHANGES)
        if head.state is ScheduleState.PAUSED and random.random() < 0.6:
            kind = "resume"
        when = now
        due = head.rule.next_fire(instant_at(now))
        if due is not None and random.random() < 0.6 and due < instant_at(now + 900 * SECOND):
            wait = (due - instant_at(now)) // timedelta(milliseconds=1)
            when = max(now, now + wait + random.randint(-8 * SECOND, 1 * SECOND))
        self.scheduler.at(when, partial(self._changed, key, kind))

    def _changed(self, key: ScheduleKey, kind: str) -> None:
        api = self.api
        match kind:
            case "edit":
                self._edit(key)
            case "pause":
                self.call(lambda: api.pause_schedule(key, author=AUTHOR))
            case "resume":
                self.call(lambda: api.resume_schedule(key, author=AUTHOR))
            case _:
                self.call(lambda: api.cancel_schedule(key, author=AUTHOR))

    def _edit(self, key: ScheduleKey) -> None:
        """Half of the edits keep rule, window and overlap, and change the rest."""
        random, head = self.scheduler.random, self.heads(key)
        if head is None:
            return
        definition = _definition(random, self.scheduler.now, self.lasts)
        keeps = random.random() < 0.5

        def revise(version: ScheduleVersion) -> Definition:
            return _as_before(definition, version) if keeps else definition

        seen = head.version
        self.call(lambda: self.api.change_schedule(key, seen=seen, revise=revise, author=AUTHOR))


def _as_before(definition: Definition, version: ScheduleVersion) -> Definition:
    rule = version.rule
    return replace(
        definition,
        expression=rule.expression,
        time_zone=rule.time_zone,
        gap=rule.gap,
        start_at=rule.start_at,
        end_at=rule.end_at,
        policies=replace(
            definition.policies,
            window=version.policies.window,
            overlap=version.policies.overlap,
        ),
    )


def _definition(random: Random, milliseconds: int, lasts: int) -> Definition:
    now = instant_at(milliseconds).replace(microsecond=0)
    chance = random.random()
    interval = random.choice(RATES)
    expression = f"rate({interval} minute{'s' if interval > 1 else ''})"
    some_time_ago = now - timedelta(seconds=random.randrange(interval * 60))
    start_at = random.choice((None, some_time_ago, some_time_ago.replace(second=0)))
    if chance < 0.15:
        fire = now + timedelta(seconds=random.choice((15, 120, 900, 2400)))
        expression, start_at = f"at({fire:%Y-%m-%dT%H:%M:%S})", None
    elif chance < 0.25:
        expression, start_at = random.choice(list(CRONS)), None
        interval = CRONS[expression]
    last = lasts + ENDS_AFTER
    ends = random.choice((last, random.randint(min(milliseconds + ENDS_AFTER, last), last)))
    timeout = timedelta(seconds=random.choice((5, 10, 30, 60, 240)))
    windows = (WINDOW_SHORT, min(interval * 30, WINDOW_MIDDLE_MAX), interval * 60)
    return Definition(
        expression=expression,
        time_zone=ZONE if expression in CRONS else "UTC",
        gap=Gap.FIRE_AFTER,
        start_at=start_at,
        end_at=instant_at(ends).replace(microsecond=0),
        policies=_policies(random, random.choice((*(0,) * WITHOUT_A_WINDOW, *windows))),
        target=WebhookDefinition(url="https://acme.example/hook", timeout=timeout),
        payload={},
    )


def _policies(random: Random, window_seconds: int) -> Policies:
    too_late = random.choice((None, None, None, timedelta(seconds=900)))
    return Policies(
        misfire=MisfirePolicy(
            policy=random.choice((Misfire.SKIP, Misfire.FIRE_ONCE, Misfire.CATCH_UP)),
            max_lateness=too_late,
            limit=random.choice((3, 20, CATCH_UP_LIMIT_MAX)),
        ),
        retry=RetryPolicy(max_attempts=random.choice((1, 2, 3, 5))),
        window=timedelta(seconds=window_seconds),
        overlap=random.choice((Overlap.ALLOW, *Overlap)),
        completion=CompletionPolicy(
            policy=random.choice((Completion.RESPONSE, *Completion)),
            heartbeat=timedelta(seconds=random.choice((60, 120))),
            max_duration=timedelta(seconds=random.choice((240, 1800))),
        ),
    )
