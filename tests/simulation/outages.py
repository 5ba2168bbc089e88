"""Outages of 10 minutes, 3 hours and a day, wherever they are: what each policy makes of them."""

from collections.abc import Iterator, Sequence
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
from tests.simulation.record import CLOCKS_APART_MAX, Fire
from tests.simulation.scheduler import MINUTE, SECOND, FunctionKind, instant_at, milliseconds_of
from tests.simulation.stage import Stage, cron, each_minute
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
        limit: int = LIMIT,
        rules: Sequence[str] = tuple(RULES),
        copies: int = 1,
    ) -> None:
        super().__init__(parts)
        self.of, self.limit, self.rules, self.copies = of, limit, rules, copies
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
            Misfire.CATCH_UP: fires[: self.limit],
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
        missed = {
            row.occurrence.scheduled_for
            for row in rows
            if isinstance(row, Run) and row.state is RunState.MISSED
        }
        for span in (row for row in rows if isinstance(row, Span)):
            missed |= {fire for fire in fires if span.first <= fire <= span.last}
        if sorted(missed) != [fire for fire in fires if fire not in runs]:
            self._fail("WRONG ONES MISSED", f"{key.schedule} {len(missed)}")

    def _judge_fresh(self) -> None:
        """New strict fires go out on time while the old ones are made up for."""
        for number in range(1, FRESH_FIRES + 1):
            due = self.ends_at + timedelta(minutes=1 + number)
            visible = self.record.visible_at.get(Fire(FRESH, 1, due))
            if visible is None or instant_at(visible) > due + VISIBLE_WITHIN:
                self._fail("STRICT LATE", f"{due} {visible}")

    def _fail(self, kind: str, detail: object) -> None:
        self.record.fail(kind, detail, self.scheduler.now)

    def _missed(self, expression: str, policy: Misfire) -> Definition:
        misfire = MisfirePolicy(policy=policy, limit=self.limit)
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


def outage(parts: Parts, of: Of, length: timedelta) -> Verdict:
    return OutageStage(of, length, parts).judged()
