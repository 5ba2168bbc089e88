"""Outages of 10 minutes, 3 hours and a day, wherever they are: what each policy makes of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise

from puntual.domain.definition import Definition
from puntual.domain.policies import Misfire, MisfirePolicy, Policies
from puntual.domain.run import Run, RunState, Span
from puntual.domain.schedule import ScheduleKey
from puntual.domain.tenant import ScheduleId
from tests.builders import HORIZON
from tests.simulation.faults import Fault, Window
from tests.simulation.io import Cue
from tests.simulation.record import CATCH_UPS_PER_MINUTE, CLOCKS_APART_MAX, Fire
from tests.simulation.scheduler import MINUTE, SECOND, FunctionKind, instant_at, milliseconds_of
from tests.simulation.stage import KEY, Stage, cron, each_minute, once
from tests.simulation.workload import TENANT
from tests.simulation.world import Parts, Verdict

LENGTHS = {
    "10 minutes": timedelta(minutes=10),
    "3 hours": timedelta(hours=3),
    "a day": timedelta(days=1),
}
RULES = {"hourly": ("0 * * * *", 60), "five-minutely": ("*/5 * * * *", 5)}
LIMIT = 100
BEGINS = instant_at(0).replace(hour=0, minute=52, second=30) + timedelta(days=1)
"""An hour and a half in: shortly before an hourly fire, and not when a fire is due."""

FRESH = ScheduleKey(tenant=TENANT, schedule=ScheduleId("fresh"))
FRESH_FIRES = 6
VISIBLE_WITHIN = timedelta(seconds=5)
CLOCKS_APART = timedelta(milliseconds=CLOCKS_APART_MAX)
TICKS_APART_IN_OUTAGE = 5
GOES_ON_FOR = timedelta(minutes=20)


class Of(StrEnum):
    """Who is out of order."""

    PLANNERS = "planners"
    RELAY = "relay"
    QUEUE = "queue"
    EXECUTORS = "executors"


class OutageStage(Stage):
    """Two rules under each policy, an outage, and a schedule that is created right after it."""

    def __init__(
        self,
        of: Of,
        length: timedelta,
        parts: Parts | None = None,
        *,
        makes_up: int = LIMIT,
        rules: Sequence[str] = tuple(RULES),
        copies: int = 1,
    ) -> None:
        super().__init__(parts)
        self.of, self.makes_up, self.rules, self.copies = of, makes_up, rules, copies
        self.ends_at = BEGINS + length
        self.lasts = milliseconds_of(self.ends_at)
        self._breaks()
        for policy, name, key in self.schedules():
            self.create(1, self._missed(RULES[name][0], policy), key)
        ends = self.lasts / SECOND
        fresh = each_minute(ends + 60, ends + 60 + FRESH_FIRES * 60)
        self.create(ends + 15, fresh, FRESH)
        self._ticks()

    def schedules(self) -> Iterator[tuple[Misfire, str, ScheduleKey]]:
        for policy in Misfire:
            for name in self.rules:
                for copy in range(self.copies):
                    schedule = ScheduleId(f"{policy.value}-{name}-{copy}")
                    yield policy, name, ScheduleKey(tenant=TENANT, schedule=schedule)

    def judged(self) -> Verdict:
        """Run to the end, and compare with what each policy says."""
        verdict = self.finish()
        for policy, name, key in self.schedules():
            self._judge(policy, name, key)
        self._judge_fresh()
        return replace(verdict, failures=tuple(self.record.failures))

    def missed_fires(self, name: str) -> list[datetime]:
        """Give the fires of the outage, by arithmetic alone."""
        _, minutes = RULES[name]
        first = BEGINS.replace(minute=0, second=0)
        step = timedelta(minutes=minutes)
        fires = [first + number * step for number in range(int(timedelta(days=2) / step))]
        return [fire for fire in fires if BEGINS < fire <= self.ends_at]

    def _judge(self, policy: Misfire, name: str, key: ScheduleKey) -> None:
        fires = self.missed_fires(name)
        runs = {
            Misfire.SKIP: [],
            Misfire.FIRE_ONCE: fires[-1:],
            Misfire.CATCH_UP: fires[: self.makes_up],
        }[policy]
        rows = self.fake_ledger.rows[key].values()
        started = {
            row.occurrence.scheduled_for: row.attempts[0].started_at
            for row in rows
            if isinstance(row, Run) and row.attempts and row.occurrence.scheduled_for in fires
        }
        if sorted(started) != runs:
            extra = sorted(set(started) ^ set(runs))
            self._fail("WRONG ONES RAN", f"{key.schedule} {len(started)} of {len(runs)} {extra}")
        for elder, younger in pairwise(sorted(started)):
            if started[younger] < started[elder] - CLOCKS_APART:
                self._fail("NOT THE OLDEST FIRST", f"{key.schedule} {younger}")
        if policy is Misfire.CATCH_UP:
            self._judge_next(name, key)
        missed = {
            row.occurrence.scheduled_for
            for row in rows
            if isinstance(row, Run) and row.state is RunState.MISSED
        }
        for span in (row for row in rows if isinstance(row, Span)):
            missed |= {fire for fire in fires if span.first <= fire <= span.last}
        if sorted(missed) != [fire for fire in fires if fire not in runs]:
            self._fail("WRONG ONES MISSED", f"{key.schedule} {len(missed)}")

    def _judge_next(self, name: str, key: ScheduleKey) -> None:
        """What comes after the outage does not wait for what is made up for."""
        due = self.missed_fires(name)[-1] + timedelta(minutes=RULES[name][1])
        goes_on_until = self.ends_at + GOES_ON_FOR
        if self.ends_at + timedelta(minutes=2) < due < goes_on_until:
            self._judge_visible(key, due)

    def _judge_visible(self, key: ScheduleKey, due: datetime) -> None:
        visible = self.record.visible_at.get(Fire(key, 1, due))
        if visible is None or instant_at(visible) > due + VISIBLE_WITHIN:
            self._fail("STRICT LATE", f"{key.schedule} {due} {visible}")

    def _judge_fresh(self) -> None:
        """New strict fires go out on time while the old ones are made up for."""
        for number in range(1, FRESH_FIRES + 1):
            due = self.ends_at + timedelta(minutes=1 + number)
            self._judge_visible(FRESH, due)

    def _fail(self, kind: str, detail: object) -> None:
        self.record.fail(kind, detail, self.scheduler.now)

    def _missed(self, expression: str, policy: Misfire) -> Definition:
        misfire = MisfirePolicy(policy=policy, limit=self.makes_up)
        end = (self.ends_at + GOES_ON_FOR - instant_at(0)) / timedelta(seconds=1)
        return cron(expression, end=end, policies=Policies(misfire=misfire))

    def _breaks(self) -> None:
        """Break what is to be broken; whoever is ahead of time is so as soon as it matters."""
        ahead = self.of in {Of.PLANNERS, Of.RELAY}
        start = milliseconds_of(BEGINS - HORIZON if ahead else BEGINS)
        fault = {Of.PLANNERS: Fault.NO_TICK, Of.RELAY: Fault.NO_RELAY}
        faults = frozenset({fault.get(self.of, Fault.NO_EXECUTOR)})
        self.faults.windows = (Window(start, self.lasts, faults),)
        self.scheduler.at(start, self.faults.turn)
        self.scheduler.at(self.lasts, self.faults.turn)
        refused = {
            Of.RELAY: {FunctionKind.RELAY, FunctionKind.PLANNER},
            Of.QUEUE: frozenset(FunctionKind),
        }.get(self.of, frozenset())

        def refuses() -> bool:
            during = start <= self.scheduler.now < self.lasts
            return during and self.scheduler.running.kind in refused

        self.refuses_sends = refuses

    def _ticks(self) -> None:
        """Each minute but while the outage lasts, when there is little to do."""
        start = milliseconds_of(BEGINS)
        for minute in range((self.lasts + 6000 * SECOND) // MINUTE):
            at = minute * MINUTE + 30 * SECOND
            if not start < at < self.lasts or minute % TICKS_APART_IN_OUTAGE == 0:
                self.scheduler.at(at, self.tick_now)


THREE_HOURS = LENGTHS["3 hours"]


def planners_that_are_out_for_three_hours(parts: Parts) -> Verdict:
    """P8, E9. Several schedules have to share their tenant's rate."""
    stage = OutageStage(Of.PLANNERS, THREE_HOURS, parts, rules=("five-minutely",), copies=5)
    return stage.judged()


def executors_that_are_out_for_three_hours(parts: Parts) -> Verdict:
    """E5, P8. All lies in the strict lane, and more than may run."""
    stage = OutageStage(Of.EXECUTORS, THREE_HOURS, parts, rules=("five-minutely",), makes_up=5)
    return stage.judged()


def an_edit_in_the_middle_of_a_recovery(parts: Parts) -> Verdict:
    """P8. What was due before the edit still runs."""
    return _recovering(parts, lambda stage, at: stage.edit(at, _once_after(stage))).finish()


def a_pause_in_the_middle_of_a_recovery(parts: Parts) -> Verdict:
    """E8. One span says what does not run any more; no slice is planned for nothing."""
    stage = _recovering(parts, lambda stage, at: stage.pause(at))
    verdict = stage.finish()
    rows = stage.fake_ledger.rows[KEY].values()
    spans = [row for row in rows if isinstance(row, Span) and row.state is RunState.CANCELED]
    recovered = [span for span in spans if span.last < instant_at(stage.lasts)]
    runs = [row for row in rows if isinstance(row, Run) and row.state is RunState.CANCELED]
    if len(recovered) != 1 or len(runs) > SLICES_UNDER_WAY_MAX * CATCH_UPS_PER_MINUTE:
        stage.record.fail("RECOVERED AFTER A PAUSE", f"{recovered} {len(runs)}", stage.lasts)
    return replace(verdict, failures=tuple(stage.record.failures))


def a_planner_that_dies_before_its_recovery_cursor(parts: Parts) -> Verdict:
    """P8. The next one finds the old cursor, and perhaps the one that was to come after it."""
    stage = Stage(parts, Cue(kind=FunctionKind.PLANNER, io="agenda.recover", times=1))
    policies = Policies(misfire=MisfirePolicy(policy=Misfire.CATCH_UP))
    stage.create(0, cron("* * * * *", end=3600, policies=policies))
    stage.lasts = 3600 * SECOND
    stage.faults.windows = (Window(0, stage.lasts, frozenset({Fault.NO_TICK})),)
    stage.ticks(1500, 1800)
    stage.ticks_each_minute(1860)
    return stage.finish()


SLICES_UNDER_WAY_MAX = 2
EDITED_AT = 200
"""Seconds after the end of an outage: three slices are planned, the fourth is not."""


def _recovering(parts: Parts, change: Callable[[Stage, float], None]) -> Stage:
    """Let a schedule miss ninety minutes of minutes, and change while it makes up for them."""
    stage = Stage(parts)
    policies = Policies(misfire=MisfirePolicy(policy=Misfire.CATCH_UP))
    ends = 6000
    stage.lasts = ends * SECOND
    stage.create(0, cron("* * * * *", end=ends + 1800, policies=policies))
    stage.faults.windows = (Window(0, stage.lasts, frozenset({Fault.NO_TICK})),)
    stage.ticks_each_minute(ends)
    change(stage, ends + EDITED_AT)
    return stage


def _once_after(stage: Stage) -> Definition:
    return once(stage.lasts / SECOND + 1800)
