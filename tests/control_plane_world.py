"""The control plane on fakes, at nine o'clock, with one tenant."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from puntual.application.announced import Announced
from puntual.application.catch_up_tokens import CatchUpTokens
from puntual.application.control_plane import ControlPlane, Wiring, control_plane_of
from puntual.application.deliver_occurrence import DeliverOccurrence
from puntual.application.draw_tokens import DrawTokens
from puntual.application.known_tenants import KnownTenants
from puntual.application.plan_cursors import PlanCursors
from puntual.application.ports import Schedules
from puntual.application.show_schedule import ShownSchedule
from puntual.domain.definition import Definition, Limits, WebhookDefinition
from puntual.domain.occurrence import Occurrence
from puntual.domain.run import Note, Run, Span
from puntual.domain.schedule import ScheduleKey
from puntual.domain.tenant import ScheduleId
from tests.builders import HORIZON, NINE, SCHEDULE, TENANT, a_tenant
from tests.fakes.counting_ids import CountingIds
from tests.fakes.fixed_root_secret import FixedRootSecret
from tests.fakes.in_memory_agenda import InMemoryAgenda
from tests.fakes.in_memory_breakers import InMemoryBreakers
from tests.fakes.in_memory_budgets import InMemoryBudgets
from tests.fakes.in_memory_ledger import InMemoryLedger
from tests.fakes.in_memory_outbox import InMemoryOutbox
from tests.fakes.in_memory_requests import InMemoryRequests
from tests.fakes.in_memory_schedules import InMemorySchedules
from tests.fakes.in_memory_shards import InMemoryShards
from tests.fakes.in_memory_shares import InMemoryShares
from tests.fakes.in_memory_tenants import InMemoryTenants
from tests.fakes.manual_clock import ManualClock
from tests.fakes.scripted_targets import ScriptedTargets

RETENTION = timedelta(days=40)
OWN_QUEUE = "arn:aws:sqs:us-east-1:123456789012:puntual-target-acme"
BUS = "arn:aws:events:us-east-1:123456789012:event-bus/orders"
ROLE = "arn:aws:iam::123456789012:role/puntual-target-acme"
AUTHOR = "arn:aws:iam::123456789012:user/ana"
KEY = ScheduleKey(tenant=TENANT, schedule=SCHEDULE)
LIMITS = Limits(
    environment="prod",
    tzdata="2026.1",
    plain_http=False,
    delivery_timeout_max=timedelta(seconds=840),
)


def a_definition(expression: str = "rate(5 minutes)", **fields: object) -> Definition:
    target = WebhookDefinition(url="https://acme.example/hooks/invoices")
    return Definition(expression=expression, **{"target": target, **fields})  # type: ignore[arg-type]


@dataclass(slots=True)
class World:
    """`reach` wraps the port of schedules, so that a test can make it fail."""

    clock: ManualClock = field(default_factory=lambda: ManualClock(NINE))
    tenants: InMemoryTenants = field(default_factory=InMemoryTenants)
    budgets: InMemoryBudgets = field(default_factory=InMemoryBudgets)
    shares: InMemoryShares = field(default_factory=InMemoryShares)
    breakers: InMemoryBreakers = field(default_factory=InMemoryBreakers)
    agenda: InMemoryAgenda = field(default_factory=InMemoryAgenda)
    outbox: InMemoryOutbox = field(default_factory=InMemoryOutbox)
    ledger: InMemoryLedger = field(default_factory=InMemoryLedger)
    requests: InMemoryRequests = field(default_factory=InMemoryRequests)
    shards: InMemoryShards = field(default_factory=InMemoryShards)
    ids: CountingIds = field(default_factory=CountingIds)
    targets: ScriptedTargets = field(default_factory=ScriptedTargets)
    root_secret: FixedRootSecret = field(default_factory=FixedRootSecret)
    schedules: InMemorySchedules = field(init=False)
    plane: ControlPlane = field(init=False)

    def __post_init__(self) -> None:
        self.schedules = InMemorySchedules(agenda=self.agenda, tenants=self.tenants)
        self.ledger.outbox = self.outbox
        self.tenants.register(a_tenant(targets=(OWN_QUEUE, BUS), roles=(ROLE,)))
        self.plane = self.plane_on(self.schedules)

    @property
    def known_tenants(self) -> KnownTenants:
        return KnownTenants(tenants=self.tenants, clock=self.clock)

    @property
    def catch_up(self) -> CatchUpTokens:
        draw = DrawTokens(budgets=self.budgets, clock=self.clock, ids=self.ids)
        return CatchUpTokens(known=self.known_tenants, draw=draw, clock=self.clock)

    @property
    def deliver(self) -> DeliverOccurrence:
        return DeliverOccurrence(
            known=self.known_tenants,
            root_secret=self.root_secret,
            webhooks=self.targets,
            aws=self.targets,
        )

    def plane_on(self, schedules: Schedules, ledger: InMemoryLedger | None = None) -> ControlPlane:
        ledger = ledger or self.ledger
        plan_cursors = PlanCursors(
            schedules=schedules,
            agenda=self.agenda,
            outbox=self.outbox,
            ledger=ledger,
            clock=self.clock,
        )
        announced = Announced(
            shards=self.shards,
            plan_cursors=plan_cursors,
            clock=self.clock,
            shard_count=4,
            horizon=HORIZON,
        )
        return control_plane_of(
            Wiring(
                schedules=schedules,
                tenants=self.tenants,
                ledger=ledger,
                requests=self.requests,
                budgets=self.budgets,
                shares=self.shares,
                breakers=self.breakers,
                announced=announced,
                clock=self.clock,
                ids=self.ids,
                limits=LIMITS,
                retention=RETENTION,
                deliver=self.deliver,
                import_threads=1,
            )
        )

    def created(
        self, expression: str = "rate(5 minutes)", *, schedule: str = SCHEDULE, **fields: object
    ) -> ShownSchedule:
        return self.plane.create_schedule(
            TENANT,
            a_definition(expression, **fields),
            schedule=ScheduleId(schedule),
            author=AUTHOR,
        )

    def planned(self) -> list[datetime]:
        """The fires that lie on outbox pages, in order and each once."""
        return sorted({occurrence.scheduled_for for occurrence in self.planned_occurrences()})

    def planned_occurrences(self) -> list[Occurrence]:
        pages = self.outbox.pages.values()
        return [planned.occurrence for page in pages for planned in page.planned]

    def writes(self) -> tuple[object, ...]:
        """All that a refused request must leave as it was."""
        return (
            dict(self.schedules.head_rows),
            dict(self.schedules.version_rows),
            dict(self.tenants.rows),
            self.agenda.cursors(),
            dict(self.outbox.pages),
            {key: dict(rows) for key, rows in self.ledger.rows.items()},
            dict(self.requests.rows),
            dict(self.budgets.rows),
        )

    def put(self, *rows: Run | Span | Note) -> None:
        """Put rows as an executor or a planner would have left them."""
        for row in rows:
            match row:
                case Run():
                    assert self.ledger.swap(row, seen=None)
                case Span():
                    self.ledger.put_spans([row])
                case Note():
                    self.ledger.note(row)
