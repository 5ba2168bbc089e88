"""A world in which a scenario says what happens: small latencies, and no faults but its cues."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from puntual.application.backfill_schedule import Range
from puntual.domain.callback_token import Ticket
from puntual.domain.definition import Definition, WebhookDefinition
from puntual.domain.expression import Gap
from puntual.domain.instant import text_of
from puntual.domain.occurrence import Occurrence
from puntual.domain.policies import (
    Completion,
    CompletionPolicy,
    Misfire,
    MisfirePolicy,
    Overlap,
    Policies,
    RetryPolicy,
)
from puntual.domain.request import Request
from puntual.domain.schedule import ScheduleKey, ScheduleVersion
from puntual.domain.target import Accepted, Failed
from puntual.domain.tenant import ScheduleId
from tests.simulation.faults import Fault, Window
from tests.simulation.io import Cue
from tests.simulation.record import Asked
from tests.simulation.scheduler import MINUTE, SECOND, instant_at
from tests.simulation.workload import AUTHOR, TENANT, ZONE
from tests.simulation.world import Parts, World

SERVER_ERRORS_FROM = 500
KEY = ScheduleKey(tenant=TENANT, schedule=ScheduleId("s0"))
TIMEOUT = timedelta(seconds=5)
LONG_TIMEOUT = timedelta(minutes=4)
NEVER_LATE = MisfirePolicy(after=timedelta(minutes=30))


class Stage(World):
    """Times are seconds from the start."""

    def __init__(self, parts: Parts | None = None, *cues: Cue, seed: int = 1) -> None:
        super().__init__(seed, parts, directed=True, visibility=MINUTE)
        self.receivers.ill_at_best = self.receivers.accepts = 0.0
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

    def resume(self, at: float) -> None:
        self._call(at, lambda: self.api.resume_schedule(KEY, author=AUTHOR))

    def cancel(self, at: float) -> None:
        self._call(at, lambda: self.api.cancel_schedule(KEY, author=AUTHOR))

    def replay(self, at: float, *, of: float, request: str | None = None) -> None:
        """Replay the occurrence of an instant."""
        ref = text_of(instant_at(int(of * SECOND)))
        asked = None if request is None else Request(key=request, body="")
        self._call(
            at,
            lambda: self.api.replay_occurrence(KEY, ref, force=False, request=asked),
        )

    def calls_are_answered(self, *statuses: int) -> None:
        """Say what the first calls get; a status from 500 on is tried again."""
        self.receivers.answers = [
            Failed(detail=f"HTTP {status}", retryable=status >= SERVER_ERRORS_FROM)
            for status in statuses
        ]

    def backfill(self, at: float, start: float, end: float) -> None:
        """Run all instants of a range once more, whatever became of them."""
        first, last = (instant_at(int(each * SECOND)) for each in (start, end))
        wanted = Range(start=first, end=last, limit=100, only_missing=False)

        def backfill() -> None:
            began_at = self.scheduler.now
            request = self.api.backfill_schedule(KEY, wanted)
            self.record.asked.append(Asked(request, began_at, only_missing=False))

        self._call(at, backfill)

    def first_call_fails(self) -> None:
        self.receivers.answers = [Failed(detail="HTTP 503", retryable=True)]

    def first_calls_are_accepted(self, times: int = 1) -> None:
        """Let the first calls be answered by 202, and nothing be said by itself after them."""
        self.receivers.answers = [Accepted(detail="HTTP 202")] * times

    def calls_back(
        self, at: float, what: str, *, fire: float, attempt: int = 1, retry: bool = True
    ) -> None:
        occurrence = Occurrence(
            tenant=KEY.tenant,
            schedule=KEY.schedule,
            version=1,
            scheduled_for=instant_at(int(fire * SECOND)),
        )
        ticket = Ticket(occurrence=occurrence, attempt=attempt)
        self.at(at, lambda: self.callers.say(what, ticket, retry=retry))

    def ticks(self, *seconds: float) -> None:
        for at in seconds:
            self.at(at, self.tick_now)

    def ticks_each_minute(self, first: float) -> None:
        self.ticks(*range(int(first), 5 * 3600, 60))

    def explain_misses(self, until: float) -> None:
        """Say that something was wrong, as if nobody had been there to plan."""
        outage = Window(0, int(until * SECOND), frozenset({Fault.NO_TICK}))
        self.faults.windows = (outage,)

    def at(self, seconds: float, action: Callable[[], object]) -> None:
        self.scheduler.at(int(seconds * SECOND), lambda: _ignored(action()))

    def _call(self, at: float, body: Callable[[], object]) -> None:
        self.at(at, lambda: self.call_api(body))


def _ignored(_: object) -> None:
    return


def once(
    at: float,
    *,
    misfire: Misfire = Misfire.FIRE_ONCE,
    overlap: Overlap = Overlap.ALLOW,
    retry: RetryPolicy | None = None,
) -> Definition:
    """Define a schedule that fires once."""
    expression = f"at({instant_at(int(at * SECOND)):%Y-%m-%dT%H:%M:%S})"
    policies = Policies(
        misfire=MisfirePolicy(policy=misfire), overlap=overlap, retry=retry or RetryPolicy()
    )
    return _defined(expression, policies)


def by_callback(definition: Definition) -> Definition:
    """Have a schedule's runs end by callbacks, of which each holds the lease for a minute."""
    completion = CompletionPolicy(
        policy=Completion.CALLBACK, heartbeat=timedelta(minutes=1), max_duration=timedelta(hours=1)
    )
    return replace(definition, policies=replace(definition.policies, completion=completion))


def each_minute(start: float, end: float, *, misfire: Misfire = Misfire.FIRE_ONCE) -> Definition:
    """Define a schedule that fires each minute from `start`, not included, to `end`."""
    return _every_minute(start, end, Policies(misfire=MisfirePolicy(policy=misfire)))


def cron(expression: str, *, end: float, policies: Policies | None = None) -> Definition:
    """Define a cron in UTC that ends."""
    defined = _defined(expression, policies or Policies())
    return replace(defined, end_at=instant_at(int(end * SECOND)))


def each_hour_in_its_window(end: float) -> Definition:
    """Define a schedule of an hour's window that soon fires three times within one hour.

    It does so where the clocks go forward: at 01:21, at 03:00 for 02:21, and at 03:21.
    """
    hourly = cron("21 1-4 * * *", end=end, policies=Policies(window=timedelta(hours=1)))
    return replace(hourly, time_zone=ZONE, gap=Gap.FIRE_AFTER)


def aimed(definition: Definition, origin: str, *, timeout: timedelta = TIMEOUT) -> Definition:
    """Give a definition another target."""
    return replace(definition, target=WebhookDefinition(url=f"{origin}/hook", timeout=timeout))


def one_at_a_time(
    end: float,
    overlap: Overlap,
    *,
    timeout: timedelta = LONG_TIMEOUT,
    misfire: MisfirePolicy = NEVER_LATE,
) -> Definition:
    """Define a schedule that fires at each minute to `end`, and whose runs may take longer."""
    retry = RetryPolicy(base=timedelta(minutes=30))
    policies = Policies(misfire=misfire, retry=retry, overlap=overlap)
    return _every_minute(0, end, policies, timeout=timeout)


def _every_minute(
    start: float, end: float, policies: Policies, *, timeout: timedelta = TIMEOUT
) -> Definition:
    return replace(
        _defined("rate(1 minute)", policies, timeout=timeout),
        start_at=instant_at(int(start * SECOND)),
        end_at=instant_at(int(end * SECOND)),
    )


def _defined(expression: str, policies: Policies, *, timeout: timedelta = TIMEOUT) -> Definition:
    return Definition(
        expression=expression,
        policies=policies,
        target=WebhookDefinition(url="https://acme.example/hook", timeout=timeout),
    )
