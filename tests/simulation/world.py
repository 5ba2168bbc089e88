"""One seed's world: the real use cases on the watched fakes, wired as bootstrap does, and run."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from puntual.application.admit_attempt import AdmitAttempt
from puntual.application.announced import Announced
from puntual.application.backfill_schedule import BackfillSchedule
from puntual.application.bury_message import BuryMessage
from puntual.application.catch_up_tokens import CatchUpTokens
from puntual.application.control_plane import Wiring, control_plane_of
from puntual.application.deliver_occurrence import DeliverOccurrence
from puntual.application.draw_tokens import DrawTokens
from puntual.application.execute_occurrence import ExecuteOccurrence
from puntual.application.known_tenants import KnownTenants
from puntual.application.plan_cursors import PlanCursors
from puntual.application.plan_recoveries import PlanRecoveries
from puntual.application.plan_shard import PlanShard
from puntual.application.ports import Sending
from puntual.application.relay_page import RelayPage
from puntual.application.reopen_occurrence import WhyNot
from puntual.application.send_request import SendRequest
from puntual.application.settle_message import (
    JudgeByHead,
    JudgeByRow,
    Settled,
    SettleMessage,
)
from puntual.application.take_callback import TakeCallback
from puntual.application.tenant_weights import TenantWeights
from puntual.application.tick import Tick
from puntual.domain.definition import Limits
from puntual.domain.errors import PuntualError, Unavailable
from puntual.domain.fairness import QUANTUM
from puntual.domain.judgement import before_head, judge
from puntual.domain.lane import Lane
from puntual.domain.message import Message
from puntual.domain.page import Page
from puntual.domain.replay import why_not_replayable
from puntual.domain.run import RETENTION_MIN
from puntual.domain.tenant import Quotas, Tenant
from tests.builders import HORIZON
from tests.fakes.counting_ids import CountingIds
from tests.fakes.fixed_root_secret import FixedRootSecret
from tests.fakes.hostile import (
    HostileAgenda,
    HostileBreakers,
    HostileBudgets,
    HostileLanes,
    HostileLedger,
    HostileOutbox,
    HostilePlanners,
    HostileRequests,
    HostileSchedules,
    HostileShards,
    HostileShares,
)
from tests.fakes.in_memory_agenda import InMemoryAgenda
from tests.fakes.in_memory_breakers import InMemoryBreakers
from tests.fakes.in_memory_budgets import InMemoryBudgets
from tests.fakes.in_memory_lanes import InMemoryLanes
from tests.fakes.in_memory_outbox import InMemoryOutbox
from tests.fakes.in_memory_requests import InMemoryRequests
from tests.fakes.in_memory_shards import InMemoryShards
from tests.fakes.in_memory_shares import InMemoryShares
from tests.fakes.in_memory_tenants import InMemoryTenants
from tests.fakes.in_memory_zone_releases import InMemoryZoneReleases
from tests.fakes.recording_planners import RecordingPlanners
from tests.fakes.scripted_targets import ScriptedTargets
from tests.gates import GateParts, GatePorts, failing_by, gates_of
from tests.simulation.asked import Asking, asking_by
from tests.simulation.callers import Callers
from tests.simulation.check import End, check
from tests.simulation.faults import Fault, Faults, windows_of
from tests.simulation.io import Io
from tests.simulation.limits import limited
from tests.simulation.queues import RECEIVES_MAX, RECEIVES_MAX_LOW, Queues, Received
from tests.simulation.receivers import Receivers
from tests.simulation.record import CATCH_UPS_PER_MINUTE, Failure, Record
from tests.simulation.replays import Replays, replays_judged_by
from tests.simulation.scheduler import (
    MINUTE,
    SECOND,
    Function,
    FunctionKind,
    Scheduler,
    instant_at,
)
from tests.simulation.stream import Stream
from tests.simulation.trace import Trace
from tests.simulation.watched import WatchedLedger, WatchedSchedules
from tests.simulation.workload import LENGTHS, TENANT, Workload

SHARDS = (1, 2, 4)
SHARDS_DIRECTED = 4
QUANTA = (1, 1, QUANTUM)
"""Small, so that the few schedules of a seed are put off as those of a storm are."""

TURNS_PAUSE_MAX = 300
"""Turns of one cursor cost many calls: slower planners than this would be late by them alone."""

LIMITS = Limits(
    environment="local",
    tzdata="2026.1",
    plain_http=False,
    delivery_timeout_max=timedelta(minutes=4),
)
DRAINS_FOR = 6600 * SECOND
TICKS_SLOWER_AFTER = 1500 * SECOND
"""Once the faults are over for so long, ticks come every five minutes: little is left to do."""

WITH_REPLAYS_ONE_IN = 4
"""Of so many seeds one has tenants that replay."""

FAILURES_REPORTED_MAX = 5
STEPS_REPORTED_MAX = 200
SCHEDULE_NAMED = re.compile(r"\bs\d+\b")

TICKS_APART = (MINUTE, MINUTE, MINUTE, MINUTE, MINUTE, 12 * SECOND, 2 * MINUTE)
PLANNER_STOPS_BEFORE_END = timedelta(seconds=570)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the world is made of. A broken variant puts another part in the place of one."""

    agenda: type[InMemoryAgenda] = InMemoryAgenda
    outbox: type[InMemoryOutbox] = InMemoryOutbox
    shards: type[InMemoryShards] = InMemoryShards
    ledger: type[WatchedLedger] = WatchedLedger
    schedules: type[WatchedSchedules] = WatchedSchedules
    zone_releases: type[InMemoryZoneReleases] = InMemoryZoneReleases
    plan_cursors: type[PlanCursors] = PlanCursors
    plan_recoveries: type[PlanRecoveries] = PlanRecoveries
    plan_shard: type[PlanShard] = PlanShard
    announced: type[Announced] = Announced
    relay_page: type[RelayPage] = RelayPage
    send_request: type[SendRequest] = SendRequest
    backfill: type[BackfillSchedule] = BackfillSchedule
    settle_message: type[SettleMessage] = SettleMessage
    execute: type[ExecuteOccurrence] = ExecuteOccurrence
    bury: type[BuryMessage] = BuryMessage
    take_callback: type[TakeCallback] = TakeCallback
    judge_by_row: JudgeByRow = before_head
    judge_by_head: JudgeByHead = judge
    why_not_replayable: WhyNot = why_not_replayable
    gates: GateParts = field(default_factory=GateParts)


class SimulatedClock:
    """The clock of whichever function asks: true time and that function's own skew."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def now(self) -> datetime:
        return instant_at(self._scheduler.now + self._scheduler.running.skew)


class SeededChance:
    def __init__(self, scheduler: Scheduler) -> None:
        self._random = scheduler.random

    def fraction(self) -> float:
        return self._random.random()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    seed: int
    failures: tuple[Failure, ...]
    counts: dict[str, int]
    trace: Trace

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(failure.kind for failure in self.failures)

    def report(self) -> Iterator[str]:
        """Give the failures of a seed, and the steps that speak of the first one's schedule."""
        yield f"seed {self.seed}; all of it: python -m tests.simulation trace {self.seed}"
        for failure in self.failures[:FAILURES_REPORTED_MAX]:
            yield f"{failure.kind}: {failure.detail}"
        named = SCHEDULE_NAMED.search(self.failures[0].detail) if self.failures else None
        steps = list(self.trace.lines(named[0] if named else ""))
        yield from steps[-STEPS_REPORTED_MAX:]


class World:
    """`directed` leaves faults, calls and ticks to a scenario; otherwise the seed draws them."""

    def __init__(
        self,
        seed: int,
        parts: Parts | None = None,
        *,
        thaw: bool = False,
        directed: bool = False,
        visibility: int | None = None,
    ) -> None:
        self.seed, self.parts, self._visibility = seed, parts or Parts(), visibility
        self._directed = directed
        self.scheduler = Scheduler(seed)
        self.scheduler.expected = (PuntualError,)
        random = self.scheduler.random
        self.lasts = random.choice(LENGTHS)
        self.shard_count = SHARDS_DIRECTED if directed else random.choice(SHARDS)
        self.record, self.trace = Record(), Trace()
        self.dies_early = seed % 3 == 0
        windows = () if directed else windows_of(random, self.lasts, poisoned=self.dies_early)
        self.faults = Faults(self.scheduler, windows=windows, thaw=thaw)
        self.scheduler.fate = self.faults.fate
        self.record.is_calm = self.faults.is_calm
        self.scheduler.on_death = self._died
        self.io = Io(self.scheduler, self.faults, self.trace)
        self.refuses_sends: Callable[[], bool] = lambda: False
        """Set by a scenario."""
        self.clock, self.ids = SimulatedClock(self.scheduler), CountingIds()
        self._idle: list[ExecuteOccurrence] = []
        self._processes = 0
        self._make_fakes()
        self._make_use_cases()

    def run(self) -> Verdict:
        """Run the workload under faults, let it drain, and check what is left."""
        workload = Workload(
            scheduler=self.scheduler,
            api=self.api,
            heads=self.fake_schedules.head_rows.get,
            call=self.call_api,
            lasts=self.lasts,
        )
        workload.plan()
        if self.seed % WITH_REPLAYS_ONE_IN == WITH_REPLAYS_ONE_IN - 1:
            Replays(
                scheduler=self.scheduler,
                api=self.api,
                ledger=self.fake_ledger,
                call=self.call_api,
                lasts=self.lasts,
            ).plan()
        Asking(
            scheduler=self.scheduler,
            api=self.api,
            record=self.record,
            heads=self.fake_schedules.head_rows.get,
            call=self.call_api,
            lasts=self.lasts,
        ).plan()
        self._plan_ticks()
        return self.finish()

    def limit(self, tenant: Tenant) -> None:
        """Register the tenant anew, and let the record know what it may not exceed."""
        self.fake_tenants.register(tenant)
        self.record.running_max = tenant.quotas.running_max
        self.record.fires_per_minute_max = tenant.quotas.fires_per_minute_max

    def finish(self) -> Verdict:
        """Run to the end, and check."""
        ends = self.lasts + DRAINS_FOR
        self.scheduler.run(ends)
        for unexpected in self.scheduler.unexpected:
            self.record.fail("EXCEPTION", unexpected, ends)
        check(
            End(
                schedules=self.fake_schedules,
                ledger=self.fake_ledger,
                agenda=self.fake_agenda,
                outbox=self.fake_outbox,
                shards=self.fake_shards,
                queues=self.queues,
                faults=self.faults,
                record=self.record,
                lasts=self.lasts,
                at=ends,
            )
        )
        return Verdict(
            seed=self.seed,
            failures=tuple(self.record.failures),
            counts=dict(self.record.counts),
            trace=self.trace,
        )

    def _make_fakes(self) -> None:
        parts, scheduler = self.parts, self.scheduler
        self.stream = Stream(scheduler, self.faults, self._relay)
        self.queues = Queues(
            scheduler,
            self.faults,
            executor=self._execute,
            undeliverable=self._bury,
            on_visible=self.record.became_visible,
            on_stall=lambda message: self.record.fail("STALL", message, scheduler.now),
            receives_max=RECEIVES_MAX_LOW if self.dies_early else RECEIVES_MAX,
            visibility=self._visibility,
        )
        self.fake_tenants = InMemoryTenants()
        self.fake_budgets, self.fake_running = InMemoryBudgets(), InMemoryShares()
        self.fake_breakers = InMemoryBreakers()
        unlimited = Tenant(tenant=TENANT, quotas=Quotas(catch_ups_per_minute=CATCH_UPS_PER_MINUTE))
        self.limit(unlimited if self._directed else limited(self.seed, unlimited))
        self.fake_agenda = parts.agenda()
        self.fake_outbox = parts.outbox(self.stream.put)
        self.fake_shards = parts.shards()
        self.fake_ledger = parts.ledger(scheduler, self.record)
        self.fake_ledger.outbox = self.fake_outbox
        self.fake_requests = InMemoryRequests()
        self.fake_schedules = parts.schedules(
            scheduler, self.record, agenda=self.fake_agenda, tenants=self.fake_tenants
        )

    def _quantum(self) -> int:
        drawn = self.scheduler.random.choice(QUANTA)
        return drawn if self.faults.planner_pause <= TURNS_PAUSE_MAX else QUANTUM

    def _make_use_cases(self) -> None:
        parts, io, clock, ids = self.parts, self.io, self.clock, self.ids
        schedules = HostileSchedules(self.fake_schedules, io)
        agenda = HostileAgenda(self.fake_agenda, io)
        outbox = HostileOutbox(self.fake_outbox, io)
        ledger = HostileLedger(self.fake_ledger, io)
        shards = HostileShards(self.fake_shards, io)
        lanes = HostileLanes(InMemoryLanes(self._send), io)
        planners = HostilePlanners(RecordingPlanners(self._start_planner), io)
        plan_cursors = parts.plan_cursors(
            schedules=schedules, agenda=agenda, outbox=outbox, ledger=ledger, clock=clock
        )
        known = KnownTenants(tenants=self.fake_tenants, clock=clock)
        catch_up = CatchUpTokens(
            known=known,
            draw=DrawTokens(budgets=HostileBudgets(self.fake_budgets, io), clock=clock, ids=ids),
            clock=clock,
        )
        plan_recoveries = parts.plan_recoveries(
            plan_cursors=plan_cursors,
            tokens=catch_up,
            clock=clock,
        )
        announced = parts.announced(
            shards=shards,
            plan_cursors=plan_cursors,
            clock=clock,
            shard_count=self.shard_count,
            horizon=HORIZON,
        )
        self.api = control_plane_of(
            Wiring(
                schedules=schedules,
                tenants=self.fake_tenants,
                ledger=ledger,
                requests=HostileRequests(self.fake_requests, io),
                budgets=HostileBudgets(self.fake_budgets, io),
                shares=HostileShares(self.fake_running, io),
                breakers=HostileBreakers(self.fake_breakers, io),
                announced=announced,
                clock=clock,
                ids=ids,
                limits=LIMITS,
                deliver=DeliverOccurrence(
                    known=known,
                    root_secret=FixedRootSecret(),
                    webhooks=ScriptedTargets(),
                    aws=ScriptedTargets(),
                ),
                retention=RETENTION_MIN,
                import_threads=1,
            )
        )
        self.api = replays_judged_by(self.api, parts.why_not_replayable)
        self.api = asking_by(self.api, parts.send_request, parts.backfill)
        self.relay_page = parts.relay_page(outbox=outbox, lanes=lanes, clock=clock)
        self.plan_shard = parts.plan_shard(
            shards=shards,
            agenda=agenda,
            outbox=outbox,
            plan_cursors=plan_cursors,
            plan_recoveries=plan_recoveries,
            relay_page=self.relay_page,
            clock=clock,
            ids=ids,
            horizon=HORIZON,
            weight_of=TenantWeights(known=known),
            quantum=self._quantum(),
        )
        self.tick = Tick(shards=shards, planners=planners)
        settle_message = parts.settle_message(
            schedules=schedules,
            ledger=ledger,
            lanes=lanes,
            clock=clock,
            ids=ids,
            catch_up=catch_up,
            judge_by_row=parts.judge_by_row,
            judge_by_head=parts.judge_by_head,
        )
        self.callers = Callers(
            self.scheduler,
            self.faults,
            self.record,
            ledger=self.fake_ledger,
            process=self._new_callbacks,
        )
        self.receivers = Receivers(
            self.scheduler, self.faults, self.record, self.trace, self.callers
        )
        self._settle_message = settle_message
        self.bury = parts.bury(settle_message=settle_message)

    def _new_executor(self) -> ExecuteOccurrence:
        """Start a process: what it knows, counts and has in stock dies with it."""
        self._processes += 1
        gates = self._gates_of(f"executor {self._processes}")
        return self.parts.execute(
            settle_message=self._settle_message,
            targets=self.receivers,
            fail_attempt=failing_by(gates),
            admit=gates,
        )

    def _new_callbacks(self) -> TakeCallback:
        gates = self._gates_of("callbacks")
        return self.parts.take_callback(
            root_secret=FixedRootSecret(),
            settle_message=self._settle_message,
            fail_attempt=failing_by(gates),
            rooms=gates.rooms,
        )

    def _gates_of(self, holder: str) -> AdmitAttempt:
        return gates_of(
            GatePorts(
                tenants=self.fake_tenants,
                budgets=HostileBudgets(self.fake_budgets, self.io),
                shares=HostileShares(self.fake_running, self.io),
                breakers=HostileBreakers(self.fake_breakers, self.io),
            ),
            clock=self.clock,
            ids=self.ids,
            chance=SeededChance(self.scheduler),
            holder=holder,
            parts=self.parts.gates,
        )

    def _plan_ticks(self) -> None:
        """A rule fires once a minute, anywhere inside it, sometimes twice, sometimes not."""
        random = self.scheduler.random
        when = random.randint(0, MINUTE)
        while when < self.lasts + DRAINS_FOR:
            self.scheduler.at(when, self.tick_now)
            if when < self.lasts + TICKS_SLOWER_AFTER:
                when += random.choice(TICKS_APART)
            else:
                when += 5 * MINUTE

    def tick_now(self) -> None:
        if Fault.NO_TICK not in self.faults.active:
            self.scheduler.spawn(FunctionKind.TICKER, self.tick)

    def call_api(self, body: Callable[[], object]) -> None:
        self.scheduler.spawn(FunctionKind.API, body)

    def _start_planner(self, shard: int) -> None:
        def body() -> None:
            deadline = self.clock.now() + PLANNER_STOPS_BEFORE_END
            self.plan_shard(shard, deadline=deadline)

        self.scheduler.spawn(FunctionKind.PLANNER, body)

    def _send(self, lane: Lane, sending: Sending) -> None:
        if self.refuses_sends():
            raise Unavailable("the queue does not answer")
        self.queues.send(lane, sending)

    def _relay(self, page: Page) -> bool:
        return not self.relay_page(page).refused

    def _execute(self, batch: Sequence[Received]) -> list[Received]:
        """Hand a batch to an idle process, or to a new one; one that dies is not seen again."""
        execute = self._idle.pop() if self._idle else self._new_executor()
        done = self._handled(batch, lambda received: execute(received.envelope.message))
        self._idle.append(execute)
        return done

    def _bury(self, batch: Sequence[Received]) -> list[Received]:
        return self._handled(batch, lambda received: self.bury(received.envelope.message))

    def _handled(
        self, batch: Sequence[Received], handle: Callable[[Received], Settled]
    ) -> list[Received]:
        """Give those that are done; the others come again after their visibility."""
        done = []
        for received in batch:
            self.scheduler.running.message = received.envelope.message
            try:
                settled = handle(received)
            except Unavailable:
                continue
            if settled.stalled:
                self._stalled(received.envelope.message)
            if not settled.keep:
                done.append(received)
        return done

    def _stalled(self, message: Message) -> None:
        self.record.fail("LIVELOCK", message, self.scheduler.now)

    def _died(self, function: Function, why: str) -> None:
        self.record.counts[f"died of {why}"] += 1
        self.trace.add(self.scheduler.now, function.name, "died", (why,), None)


def simulate(seed: int, parts: Parts | None = None, *, thaw: bool = False) -> Verdict:
    return World(seed, parts, thaw=thaw).run()
