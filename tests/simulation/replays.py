"""What the tenants of one seed replay: anything that has ended, also what must be refused."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from puntual.application.control_plane import ControlPlane
from puntual.application.reopen_occurrence import WhyNot
from puntual.domain.occurrence import ref_of
from puntual.domain.replay import DeadLetterFilter
from puntual.domain.request import Request
from puntual.domain.run import Run, RunState
from puntual.domain.schedule import ScheduleKey
from tests.fakes.in_memory_ledger import InMemoryLedger
from tests.simulation.scheduler import MINUTE, SECOND, Scheduler
from tests.simulation.workload import AUTHOR, TENANT

MANY_AT_ONCE = (1, 3, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replays:
    scheduler: Scheduler
    api: ControlPlane
    ledger: InMemoryLedger
    call: Callable[[Callable[[], object]], None]
    lasts: int

    def plan(self) -> None:
        random = self.scheduler.random
        for _ in range(random.randint(15, 50)):
            what = random.choice((self._one,) * 8 + (self._many, self._repair))
            self.scheduler.at(random.randint(5 * MINUTE, self.lasts), what)

    def _one(self, key: ScheduleKey | None = None) -> None:
        """Replay a row; a client that hears nothing, or is in doubt, asks again."""
        random = self.scheduler.random
        runs = self._ended(key)
        if not runs:
            return
        occurrence = random.choice(runs).occurrence
        of = ScheduleKey(tenant=occurrence.tenant, schedule=occurrence.schedule)
        request = Request(key=f"{self.scheduler.now}", body=occurrence.key.run)
        force = random.random() < 0.5

        def replay() -> object:
            return self.api.replay_occurrence(
                of, ref_of(occurrence.key.run), force=force, request=request
            )

        self.call(replay)
        for _ in range(random.choice((0, 1, 1, 2))):
            self.scheduler.after(random.randint(0, 90) * SECOND, lambda: self.call(replay))

    def _many(self) -> None:
        limit = self.scheduler.random.choice(MANY_AT_ONCE)
        self.call(
            lambda: self.api.replay_dead_letters.matching(
                TENANT, DeadLetterFilter(), limit=limit, token=None, dry_run=False
            )
        )

    def _repair(self) -> None:
        """Pause, mend the target, resume, replay what had died."""
        random = self.scheduler.random
        runs = self._ended(None)
        if not runs:
            return
        occurrence = random.choice(runs).occurrence
        key = ScheduleKey(tenant=occurrence.tenant, schedule=occurrence.schedule)
        self.call(lambda: self.api.pause_schedule(key, author=AUTHOR))
        self.scheduler.after(
            random.randint(3, 60) * SECOND,
            lambda: self.call(lambda: self.api.resume_schedule(key, author=AUTHOR)),
        )
        for _ in range(3):
            self.scheduler.after(random.randint(20, 200) * SECOND, partial(self._one, key))

    def _ended(self, key: ScheduleKey | None) -> list[Run]:
        """Give rows, of which few have succeeded: those are refused unless forced."""
        rows = [
            row
            for of, by_run in sorted(self.ledger.rows.items(), key=str)
            if key in (None, of)
            for _, row in sorted(by_run.items())
            if isinstance(row, Run)
        ]
        done = [row for row in rows if row.state is RunState.SUCCEEDED]
        return [row for row in rows if row.state is not RunState.SUCCEEDED] + done[::10]


def replays_judged_by(api: ControlPlane, why_not: WhyNot) -> ControlPlane:
    one, many = api.replay_occurrence, api.replay_dead_letters
    reopen = replace(one.reopen, why_not=why_not)
    return replace(
        api,
        replay_occurrence=replace(one, reopen=reopen),
        replay_dead_letters=replace(many, reopen=reopen),
    )
