"""One run of a burst: the real planner, relay and executor code on fakes that take their time."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

from puntual.adapters.sqs_lanes import SqsLanes
from puntual.application.announced import Announced
from puntual.application.catch_up_tokens import CatchUpTokens
from puntual.application.codec import message_of_body
from puntual.application.draw_tokens import DrawTokens
from puntual.application.execute_occurrence import ExecuteOccurrence
from puntual.application.known_tenants import KnownTenants
from puntual.application.plan_cursors import PlanCursors
from puntual.application.plan_recoveries import PlanRecoveries
from puntual.application.plan_shard import PlanShard
from puntual.application.ports import Lanes
from puntual.application.relay_page import RelayPage
from puntual.application.settle_message import SettleMessage
from puntual.application.share_executors import SEAT_RENEWED_AFTER, ShareExecutors
from puntual.application.tenant_weights import TenantWeights
from puntual.aws import SQSClient
from puntual.domain.agenda import cursor_at, shard_of
from puntual.domain.fairness import QUANTUM
from puntual.domain.lane import Lane
from puntual.domain.message import Crowd, Message
from puntual.domain.page import Page
from puntual.domain.schedule import ScheduleVersion, head_of
from puntual.domain.shard import CLOSE_AFTER, Shard
from puntual.domain.target import Delivered, Delivery, DeliveryResult
from puntual.domain.tenant import Quotas, Tenant, TenantId
from tests.builders import HORIZON, a_rule, a_version
from tests.fairness.assumptions import (
    PAGES_PER_RELAY,
    PLANNER_STARTS_WITHIN,
    SEND_BATCH,
    SPREAD,
    STREAM_POLL,
    milliseconds_of,
)
from tests.fairness.fair_queue import FairQueue, Queued
from tests.fakes.counting_ids import CountingIds
from tests.fakes.in_memory_agenda import InMemoryAgenda
from tests.fakes.in_memory_budgets import InMemoryBudgets
from tests.fakes.in_memory_ledger import InMemoryLedger
from tests.fakes.in_memory_outbox import InMemoryOutbox
from tests.fakes.in_memory_schedules import InMemorySchedules
from tests.fakes.in_memory_seats import InMemorySeats
from tests.fakes.in_memory_shards import InMemoryShards
from tests.fakes.in_memory_tenants import InMemoryTenants
from tests.fakes.seeded_chance import SeededChance
from tests.gates import GatePorts, failing_by, gates_of
from tests.simulation.scheduler import MINUTE, SECOND, FunctionKind, Scheduler, instant_at

NOISY = "noisy"
ENDS = 60 * MINUTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """So many schedules of a tenant that fire once, `every` milliseconds from `at` on.

    With `created_ahead` each is created so long before its time; otherwise it is there already.
    """

    tenant: str
    count: int
    at: int
    every: int = 0
    created_ahead: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The system under the burst. Planners begin at zero, after an outage of so many minutes."""

    arrivals: tuple[Arrival, ...]
    outage: int = 0
    shards: int = 2
    relays: int = 2
    executors: int = 16
    takes: dict[str, int] = field(default_factory=dict)
    """Milliseconds that a tenant's target takes, 50 for all others."""
    weights: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What is ours in it. A broken variant takes one away."""

    lanes: Callable[[SQSClient], Lanes] = lambda client: SqsLanes(
        client=client, queue_urls={lane: lane for lane in Lane}
    )
    plan_shard: type[PlanShard] = PlanShard
    share: type[ShareExecutors] = ShareExecutors
    weigh: bool = True
    quantum: int = QUANTUM


class Paced:
    """A port whose every call takes its time first."""

    def __init__(self, name: str, inner: object, wait: Callable[[float], None]) -> None:
        self._name, self._inner, self._wait = name, inner, wait

    def __getattr__(self, name: str) -> Any:
        method, call = getattr(self._inner, name), f"{self._name}.{name}"

        def paced(*arguments: Any, **named: Any) -> Any:
            self._wait(milliseconds_of(call, arguments))
            return method(*arguments, **named)

        return paced


class Burst:
    def __init__(self, setup: Setup, parts: Parts, *, seed: int) -> None:
        self.setup, self.parts = setup, parts
        self.scheduler = Scheduler(seed)
        self.started: dict[str, list[int]] = {}
        self._seen: set[str] = set()
        self._awaited = sum(each.count for each in setup.arrivals if each.tenant != NOISY)
        self._streams: list[deque[Page]] = [deque() for _ in range(setup.relays)]
        self._relaying: set[int] = set()
        self._make_ports()
        self._make_use_cases()
        self._fill()

    def now(self) -> datetime:
        return instant_at(self.scheduler.now)

    def send_message_batch(self, *, QueueUrl: str, Entries: Sequence[Any]) -> dict[str, Any]:  # noqa: N803 the client's own names
        self._wait(SEND_BATCH)
        for entry in Entries:
            queue, delay = self.queues[Lane(QueueUrl)], entry["DelaySeconds"] * SECOND
            queue.send(entry["MessageBody"], delay, entry.get("MessageGroupId", ""))
        return {}

    def deliver(self, delivery: Delivery) -> DeliveryResult:
        occurrence = delivery.occurrence
        if occurrence.id not in self._seen:
            self._seen.add(occurrence.id)
            due = max(occurrence.scheduled_for, instant_at(0))
            lag = (self.now() - due) // timedelta(milliseconds=1)
            self.started.setdefault(occurrence.tenant, []).append(lag)
            self._awaited -= occurrence.tenant != NOISY
        self._wait(self.setup.takes.get(occurrence.tenant, 50))
        return Delivered(detail="HTTP 200")

    def run(self) -> dict[str, list[int]]:
        """Give each tenant's lags in milliseconds, once all but the noisy one have started."""
        for minute in range(5):
            self.scheduler.at(minute * MINUTE, self._tick)
        while self._awaited and self.scheduler.now < ENDS:
            assert self.scheduler.step(), f"{self._awaited} never start"
        assert not self.scheduler.unexpected, self.scheduler.unexpected
        assert not self._awaited, f"{self._awaited} have not started after an hour"
        return self.started

    def _wait(self, milliseconds: float) -> None:
        self.scheduler.wait(round(milliseconds * self.scheduler.random.uniform(*SPREAD)))

    def _paced(self, name: str, inner: object) -> Any:
        return Paced(name, inner, self._wait)

    def _make_ports(self) -> None:
        self._tenants, self._agenda = InMemoryTenants(), InMemoryAgenda()
        self._shards = InMemoryShards()
        self._schedules = InMemorySchedules(agenda=self._agenda, tenants=self._tenants)
        self.schedules = self._paced("schedules", self._schedules)
        self.agenda = self._paced("agenda", self._agenda)
        self.outbox = self._paced("outbox", InMemoryOutbox(self._stream))
        self.ledger = self._paced("ledger", InMemoryLedger())
        self.shards = self._paced("shards", self._shards)
        self._seats = InMemorySeats()
        self.seats = self._paced("seats", self._seats)
        self.lanes = self.parts.lanes(cast("SQSClient", self))
        self.queues = {
            lane: FairQueue(self.scheduler, self._handle, executors=self.setup.executors)
            for lane in Lane
        }

    def _make_use_cases(self) -> None:
        ids = CountingIds()
        weights = TenantWeights(
            known=KnownTenants(tenants=self._paced("tenants", self._tenants), clock=self)
        )
        weight_of = weights if self.parts.weigh else lambda _: 1
        draw = DrawTokens(budgets=InMemoryBudgets(), clock=self, ids=ids)
        catch_up = CatchUpTokens(
            known=KnownTenants(tenants=self._tenants, clock=self), draw=draw, clock=self
        )
        plan_cursors = PlanCursors(
            schedules=self.schedules,
            agenda=self.agenda,
            outbox=self.outbox,
            ledger=self.ledger,
            clock=self,
        )
        self.announced = Announced(
            shards=self.shards,
            plan_cursors=plan_cursors,
            clock=self,
            shard_count=self.setup.shards,
            horizon=HORIZON,
        )
        self.relay_page = RelayPage(outbox=self.outbox, lanes=self.lanes, clock=self)
        self.plan_shard = self.parts.plan_shard(
            shards=self.shards,
            agenda=self.agenda,
            outbox=self.outbox,
            plan_cursors=plan_cursors,
            plan_recoveries=PlanRecoveries(
                plan_cursors=plan_cursors,
                tokens=catch_up,
                clock=self,
            ),
            relay_page=self.relay_page,
            clock=self,
            ids=ids,
            horizon=HORIZON,
            weight_of=weight_of,
            quantum=self.parts.quantum,
        )
        chance = SeededChance(self.scheduler.random)
        self.settle = SettleMessage(
            schedules=self.schedules,
            ledger=self.ledger,
            lanes=self.lanes,
            clock=self,
            ids=ids,
            catch_up=catch_up,
        )
        gates = gates_of(GatePorts(tenants=self._tenants), clock=self, ids=ids, chance=chance)
        self.execute = ExecuteOccurrence(
            settle_message=self.settle,
            targets=self,
            fail_attempt=failing_by(gates),
            admit=gates,
        )
        self._shares = [
            self.parts.share(
                seats=self.seats,
                weight_of=weight_of,
                clock=self,
                chance=chance,
                owner=str(number),
                executors=dict.fromkeys(Lane, self.setup.executors),
            )
            for number in range(self.setup.executors)
        ]

    # What there is before, and what is created

    def _fill(self) -> None:
        began = instant_at(-self.setup.outage)
        for shard in range(self.setup.shards):
            self._shards.ensure(
                Shard(
                    shard=shard,
                    planned_through=began,
                    completed_through=began,
                    drained_through=began - CLOSE_AFTER,
                )
            )
        for arrival in self.setup.arrivals:
            tenant = TenantId(arrival.tenant)
            weight = self.setup.weights.get(tenant, 1)
            self._tenants.register(Tenant(tenant=tenant, quotas=Quotas(weight=weight)))
            for lane in Lane if tenant != NOISY else ():
                # They were there before; what the noisy one does, it does for the first time.
                self._seats.note_quick(Crowd(tenant=tenant, lane=lane), until=instant_at(ENDS))
            for number in range(arrival.count):
                fire = instant_at(arrival.at + number * arrival.every)
                self._add(_a_version(tenant, f"{arrival.at}-{number}", fire), fire, arrival)

    def _add(self, version: ScheduleVersion, fire: datetime, arrival: Arrival) -> None:
        head = head_of(version, created_at=version.effective_from, min_valid_version=0)
        self._schedules.head_rows[version.key] = head
        self._schedules.version_rows[version.key, version.version] = version
        cursor, shard = (
            cursor_at(fire, version.fires),
            shard_of(version.key, self.setup.shards),
        )
        if arrival.created_ahead is None:
            self._agenda.put(shard, [cursor])
            return

        def create() -> None:
            self.agenda.put(shard, [cursor])
            self.announced.plan_inline(cursor)

        at = (fire - instant_at(0)) // timedelta(milliseconds=1) - arrival.created_ahead
        self.scheduler.at(at, lambda: self._spawn(FunctionKind.API, create))

    # Functions, and what starts them

    def _spawn(
        self, kind: FunctionKind, body: Callable[[], object], then: Callable[[], None] | None = None
    ) -> None:
        def ended(well: bool) -> None:  # noqa: FBT001 as the scheduler calls it
            assert well, self.scheduler.unexpected
            if then is not None:
                then()

        self.scheduler.spawn(kind, body, on_end=ended)

    def _tick(self) -> None:
        for shard in range(self.setup.shards):
            late = self.scheduler.random.randrange(PLANNER_STARTS_WITHIN)
            self.scheduler.after(late, partial(self._plan, shard))

    def _plan(self, shard: int) -> None:
        deadline = self.now() + timedelta(seconds=570)
        self._spawn(FunctionKind.PLANNER, lambda: self.plan_shard(shard, deadline=deadline))

    def _stream(self, page: Page) -> None:
        if page.carried:
            return
        stream = page.shard % self.setup.relays
        self._streams[stream].append(page)
        if stream not in self._relaying:
            self._relaying.add(stream)
            self.scheduler.after(STREAM_POLL, lambda: self._relay(stream))

    def _relay(self, stream: int) -> None:
        pages = self._streams[stream]
        batch = [pages.popleft() for _ in range(min(len(pages), PAGES_PER_RELAY))]
        if not batch:
            self._relaying.discard(stream)
            return

        def body() -> None:
            for page in batch:
                self.relay_page(page)

        self._spawn(FunctionKind.RELAY, body, lambda: self._relay(stream))

    def _handle(self, executor: int, batch: Sequence[Queued], free: Callable[[], None]) -> None:
        """Do what the executor's handler does, with functions in place of its threads."""
        share = self._shares[executor]
        messages = [
            message_of_body(queued.body, sent_at=instant_at(queued.sent_at)) for queued in batch
        ]
        began, left = self.scheduler.now, len(batch)
        took: dict[Crowd, timedelta] = {}

        def body() -> None:
            waits = share.admit(messages)
            for place, message in enumerate(messages):
                settle = partial(one, message, waits.get(place))
                self._spawn(FunctionKind.EXECUTOR, settle, ended)

        def one(message: Message, until: datetime | None) -> None:
            if until is not None:
                self.settle.park(message, until, why="seat")
                return
            self.execute(message)
            took[message.crowd] = timedelta(milliseconds=self.scheduler.now - began)

        def ended() -> None:
            nonlocal left
            left -= 1
            if not left:
                self._spawn(FunctionKind.EXECUTOR, lambda: share.settled(took), free)

        def renew() -> None:
            if left:
                self._spawn(FunctionKind.EXECUTOR, share.renew)
                self.scheduler.after(every, renew)

        every = SEAT_RENEWED_AFTER // timedelta(milliseconds=1)
        self.scheduler.after(every, renew)
        self._spawn(FunctionKind.EXECUTOR, body)


def _a_version(tenant: str, schedule: str, fire: datetime) -> ScheduleVersion:
    return a_version(
        tenant=tenant,
        schedule=schedule,
        rule=replace(a_rule("rate(1 day)"), anchor=fire - timedelta(days=2)),
        effective_from=fire - timedelta(days=1),
    )


def percentile(lags: Sequence[int], percent: float) -> int:
    ordered = sorted(lags)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
