"""The use cases wired to fakes, with every I/O recorded and a place to die at."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random

from puntual.application.admit_attempt import AdmitAttempt
from puntual.application.advance_schedule import AdvanceSchedule
from puntual.application.announced import Announced
from puntual.application.bury_message import BuryMessage
from puntual.application.catch_up_tokens import CatchUpTokens
from puntual.application.draw_tokens import DrawTokens
from puntual.application.execute_occurrence import ExecuteOccurrence
from puntual.application.known_tenants import KnownTenants
from puntual.application.note_zone_release import NoteZoneRelease
from puntual.application.plan_cursors import PlanCursors
from puntual.application.plan_recoveries import PlanRecoveries
from puntual.application.plan_shard import PlanShard
from puntual.application.relay_page import RelayPage
from puntual.application.replan_zones import ReplanZones
from puntual.application.settle_message import SettleMessage
from puntual.application.tenant_weights import TenantWeights
from puntual.application.tick import Tick
from puntual.domain.agenda import Cursor
from puntual.domain.lane import Lane
from puntual.domain.message import Message
from puntual.domain.run import Note, Run, Span
from puntual.domain.schedule import Schedule, ScheduleVersion
from puntual.domain.target import Delivery, DeliveryResult
from tests.builders import HORIZON, NINE, a_cursor, a_schedule
from tests.fakes.counting_ids import CountingIds
from tests.fakes.given_zone_data import GivenZoneData
from tests.fakes.hostile import (
    HostileAgenda,
    HostileBreakers,
    HostileBudgets,
    HostileLanes,
    HostileLedger,
    HostileOutbox,
    HostilePlanners,
    HostileSchedules,
    HostileShards,
    HostileShares,
    HostileZoneReleases,
    Hostility,
    Rates,
)
from tests.fakes.in_memory_agenda import InMemoryAgenda
from tests.fakes.in_memory_breakers import InMemoryBreakers
from tests.fakes.in_memory_budgets import InMemoryBudgets
from tests.fakes.in_memory_lanes import InMemoryLanes
from tests.fakes.in_memory_ledger import InMemoryLedger
from tests.fakes.in_memory_outbox import InMemoryOutbox
from tests.fakes.in_memory_schedules import InMemorySchedules
from tests.fakes.in_memory_shards import InMemoryShards
from tests.fakes.in_memory_shares import InMemoryShares
from tests.fakes.in_memory_tenants import InMemoryTenants
from tests.fakes.in_memory_zone_releases import InMemoryZoneReleases
from tests.fakes.manual_clock import ManualClock
from tests.fakes.recording_planners import RecordingPlanners
from tests.fakes.scripted_targets import ScriptedTargets
from tests.fakes.seeded_chance import FixedChance
from tests.gates import GatePorts, failing_by, gates_of
from tests.zone_data import pinned_rules

SHARDS = 1


class Died(BaseException):
    """The process ends here; no handler of errors can see it."""


@dataclass(slots=True)
class World:
    """Tables, queues and targets, and use cases that reach them through recorded ports.

    `at_io` is called with the name of a port's method before its effect and after it.
    """

    clock: ManualClock = field(default_factory=lambda: ManualClock(NINE))
    agenda: InMemoryAgenda = field(default_factory=InMemoryAgenda)
    outbox: InMemoryOutbox = field(default_factory=InMemoryOutbox)
    lanes: InMemoryLanes = field(default_factory=InMemoryLanes)
    ledger: InMemoryLedger = field(default_factory=InMemoryLedger)
    tenants: InMemoryTenants = field(default_factory=InMemoryTenants)
    budgets: InMemoryBudgets = field(default_factory=InMemoryBudgets)
    shares: InMemoryShares = field(default_factory=InMemoryShares)
    breakers: InMemoryBreakers = field(default_factory=InMemoryBreakers)
    shards: InMemoryShards = field(default_factory=InMemoryShards)
    zone_releases: InMemoryZoneReleases = field(default_factory=InMemoryZoneReleases)
    zone_data: GivenZoneData = field(default_factory=lambda: GivenZoneData(pinned_rules()))
    planners: RecordingPlanners = field(default_factory=RecordingPlanners)
    targets: ScriptedTargets = field(default_factory=ScriptedTargets)
    ids: CountingIds = field(default_factory=CountingIds)
    die_at: int | None = None
    at_io: Callable[[str], None] = lambda _: None
    io_points: list[str] = field(default_factory=list)
    schedules: InMemorySchedules = field(init=False)
    hostility: Hostility = field(init=False)
    _settle_message: SettleMessage | None = None
    _gates: AdmitAttempt | None = None

    def __post_init__(self) -> None:
        self.schedules = InMemorySchedules(agenda=self.agenda, tenants=self.tenants)
        self.hostility = Hostility(source=Random(1), at_io=self._io)

    # What happens at each I/O

    @property
    def calls(self) -> list[str]:
        """The I/Os so far, in their order, where none was interrupted."""
        return self.io_points[::2]

    def _io(self, name: str) -> None:
        number = len(self.io_points)
        self.io_points.append(name)
        if number == self.die_at:
            raise Died
        self.at_io(name)

    @property
    def rates(self) -> Rates:
        return self.hostility.rates

    @rates.setter
    def rates(self, rates: Rates) -> None:
        self.hostility.rates = rates

    # Use cases

    @property
    def plan_cursors(self) -> PlanCursors:
        return PlanCursors(
            schedules=HostileSchedules(self.schedules, self.hostility),
            agenda=HostileAgenda(self.agenda, self.hostility),
            outbox=HostileOutbox(self.outbox, self.hostility),
            ledger=HostileLedger(self.ledger, self.hostility),
            clock=self.clock,
        )

    @property
    def plan_recoveries(self) -> PlanRecoveries:
        return PlanRecoveries(
            plan_cursors=self.plan_cursors,
            tokens=self.catch_up,
            clock=self.clock,
        )

    @property
    def known_tenants(self) -> KnownTenants:
        return KnownTenants(tenants=self.tenants, clock=self.clock)

    @property
    def catch_up(self) -> CatchUpTokens:
        draw = DrawTokens(
            budgets=HostileBudgets(self.budgets, self.hostility), clock=self.clock, ids=self.ids
        )
        return CatchUpTokens(known=self.known_tenants, draw=draw, clock=self.clock)

    @property
    def relay_page(self) -> RelayPage:
        return RelayPage(
            outbox=HostileOutbox(self.outbox, self.hostility),
            lanes=HostileLanes(self.lanes, self.hostility),
            clock=self.clock,
        )

    @property
    def plan_shard(self) -> PlanShard:
        return PlanShard(
            shards=HostileShards(self.shards, self.hostility),
            agenda=HostileAgenda(self.agenda, self.hostility),
            outbox=HostileOutbox(self.outbox, self.hostility),
            plan_cursors=self.plan_cursors,
            plan_recoveries=self.plan_recoveries,
            relay_page=self.relay_page,
            clock=self.clock,
            ids=self.ids,
            horizon=HORIZON,
            weight_of=TenantWeights(known=self.known_tenants),
        )

    @property
    def announced(self) -> Announced:
        return Announced(
            shards=HostileShards(self.shards, self.hostility),
            plan_cursors=self.plan_cursors,
            clock=self.clock,
            shard_count=SHARDS,
            horizon=HORIZON,
        )

    @property
    def tick(self) -> Tick:
        return Tick(
            shards=HostileShards(self.shards, self.hostility),
            planners=HostilePlanners(self.planners, self.hostility),
        )

    @property
    def note_zone_release(self) -> NoteZoneRelease:
        return NoteZoneRelease(
            releases=HostileZoneReleases(self.zone_releases, self.hostility),
            zone_data=self.zone_data,
            clock=self.clock,
        )

    @property
    def replan_zones(self) -> ReplanZones:
        schedules = HostileSchedules(self.schedules, self.hostility)
        return ReplanZones(
            schedules=schedules,
            releases=HostileZoneReleases(self.zone_releases, self.hostility),
            note=self.note_zone_release,
            advance=AdvanceSchedule(
                schedules=schedules, announced=self.announced, clock=self.clock
            ),
            zone_data=self.zone_data,
            clock=self.clock,
        )

    @property
    def settle_message(self) -> SettleMessage:
        """One for the life of the world: it caches versions."""
        if self._settle_message is None:
            self._settle_message = SettleMessage(
                schedules=HostileSchedules(self.schedules, self.hostility),
                ledger=HostileLedger(self.ledger, self.hostility),
                lanes=HostileLanes(self.lanes, self.hostility),
                clock=self.clock,
                ids=self.ids,
                catch_up=self.catch_up,
            )
        return self._settle_message

    @property
    def execute(self) -> ExecuteOccurrence:
        return ExecuteOccurrence(
            settle_message=self.settle_message,
            targets=self.targets,
            fail_attempt=failing_by(self.gates),
            admit=self.gates,
        )

    @property
    def gates(self) -> AdmitAttempt:
        """One executor's, for the life of the world: they keep tokens and shares in stock."""
        if self._gates is None:
            self._gates = self.gates_of_another("one")
        return self._gates

    def gates_of_another(self, holder: str) -> AdmitAttempt:
        """Give the gates of an executor of that name, with nothing in stock."""
        ports = GatePorts(
            tenants=self.tenants,
            budgets=HostileBudgets(self.budgets, self.hostility),
            shares=HostileShares(self.shares, self.hostility),
            breakers=HostileBreakers(self.breakers, self.hostility),
        )
        chance = FixedChance(0.5)
        return gates_of(ports, clock=self.clock, ids=self.ids, chance=chance, holder=holder)

    @property
    def bury(self) -> BuryMessage:
        return BuryMessage(settle_message=self.settle_message)

    # What a test starts from

    def holds(
        self, version: ScheduleVersion, *, min_valid_version: int = 0, is_head: bool = True
    ) -> None:
        """Store a version, and its head unless another is."""
        self.schedules.version_rows[version.key, version.version] = version
        if is_head:
            head = a_schedule(version, min_valid_version=min_valid_version)
            self.schedules.head_rows[version.key] = head

    def is_followed(self, version: ScheduleVersion, *, min_valid_version: int = 0) -> None:
        """Store the version that comes next, which ends the one before it."""
        before = (version.key, version.version - 1)
        ended = self.schedules.version_rows[before]
        self.schedules.version_rows[before] = replace(ended, until=version.effective_from)
        self.holds(version, min_valid_version=min_valid_version)

    def is_due(self, version: ScheduleVersion, fire: datetime) -> Cursor:
        """Put the cursor of a version's fire on the agenda."""
        cursor = a_cursor(fire, version=version)
        self.agenda.put(0, [cursor])
        return cursor

    def answers(self, result: DeliveryResult) -> None:
        """Let the webhook's receiver always answer so."""

        def script(_: Delivery) -> DeliveryResult:
            return result

        self.targets.script = script

    # What a test looks at

    def head(self, version: ScheduleVersion) -> Schedule:
        return self.schedules.head_rows[version.key]

    def run_of(self, message: Message) -> Run:
        run = self.ledger.read(message.occurrence.key)
        assert run is not None
        return run

    def rows(self) -> list[Run | Span | Note]:
        return [row for rows in self.ledger.rows.values() for row in rows.values()]

    def sent(self) -> list[tuple[Lane, Message, timedelta]]:
        return [
            (lane, sending.message, sending.delay)
            for lane, sendings in self.lanes.sent.items()
            for sending in sendings
        ]

    def planned_ids(self) -> set[str]:
        """What was planned, in however many pages and messages."""
        in_pages = {
            planned.occurrence.id for page in self.outbox.pages.values() for planned in page.planned
        }
        return in_pages | {message.occurrence.id for _, message, _ in self.sent()}

    def planned_fires(self) -> list[datetime]:
        return sorted(
            planned.occurrence.scheduled_for
            for page in self.outbox.pages.values()
            for planned in page.planned
        )


def dies(world: World, action: Callable[[World], object], *, at: int) -> None:
    """Let a process do something and die at one of its I/Os, before or after its effect."""
    world.die_at = len(world.io_points) + at
    try:
        action(world)
    except Died:
        world.die_at = None
        return
    raise AssertionError(f"it ended before its I/O {at}")


def io_points(world: World, action: Callable[[World], object]) -> range:
    """Count the places where a process that does something could die."""
    before = len(world.io_points)
    action(world)
    return range(len(world.io_points) - before)
