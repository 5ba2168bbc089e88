"""The use cases that the API offers, wired once by the composition root."""

from dataclasses import dataclass
from datetime import timedelta

from puntual.application.admit_caller import ADMISSION_AGE_MAX, AdmitCaller
from puntual.application.advance_schedule import AdvanceSchedule
from puntual.application.announced import Announced
from puntual.application.backfill_schedule import BackfillSchedule
from puntual.application.cancel_schedule import CancelSchedule
from puntual.application.change_schedule import ChangeSchedule
from puntual.application.count_spans import CountSpans
from puntual.application.create_schedule import CreateSchedule
from puntual.application.deliver_occurrence import DeliverOccurrence
from puntual.application.derive_fires import DeriveFires
from puntual.application.draw_tokens import DrawTokens
from puntual.application.export_schedules import ExportSchedules
from puntual.application.forecast_fires import ForecastFires
from puntual.application.import_schedule import ImportSchedule
from puntual.application.import_schedules import ImportSchedules
from puntual.application.known_tenants import KnownTenants
from puntual.application.list_dead_letters import ListDeadLetters
from puntual.application.list_occurrences import ListOccurrences
from puntual.application.list_schedules import ListSchedules
from puntual.application.list_tenants import ListTenants
from puntual.application.pause_schedule import PauseSchedule
from puntual.application.ports import (
    Breakers,
    Budgets,
    Clock,
    IdSource,
    Ledger,
    Requests,
    Schedules,
    Shares,
    Tenants,
)
from puntual.application.preview_catch_up import PreviewCatchUp
from puntual.application.preview_rule import PreviewRule
from puntual.application.preview_schedule import PreviewSchedule
from puntual.application.register_tenant import RegisterTenant
from puntual.application.reopen_occurrence import ReopenOccurrence
from puntual.application.replay_dead_letters import ReplayDeadLetters
from puntual.application.replay_occurrence import ReplayOccurrence
from puntual.application.resume_schedule import ResumeSchedule
from puntual.application.rotate_webhook_keys import RotateWebhookKeys
from puntual.application.send_request import SendRequest
from puntual.application.show_occurrence import ShowOccurrence
from puntual.application.show_schedule import ShowSchedule
from puntual.application.show_tenant import ShowTenant
from puntual.application.show_usage import ShowUsage
from puntual.application.show_webhook_keys import ShowWebhookKeys
from puntual.application.trigger_schedule import TriggerSchedule
from puntual.application.try_target import TryTarget
from puntual.domain.definition import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    environment: str
    admit_caller: AdmitCaller
    create_schedule: CreateSchedule
    show_schedule: ShowSchedule
    list_schedules: ListSchedules
    change_schedule: ChangeSchedule
    pause_schedule: PauseSchedule
    resume_schedule: ResumeSchedule
    cancel_schedule: CancelSchedule
    trigger_schedule: TriggerSchedule
    backfill_schedule: BackfillSchedule
    list_occurrences: ListOccurrences
    show_occurrence: ShowOccurrence
    replay_occurrence: ReplayOccurrence
    list_dead_letters: ListDeadLetters
    replay_dead_letters: ReplayDeadLetters
    preview_rule: PreviewRule
    preview_schedule: PreviewSchedule
    preview_catch_up: PreviewCatchUp
    register_tenant: RegisterTenant
    show_tenant: ShowTenant
    list_tenants: ListTenants
    show_usage: ShowUsage
    forecast_fires: ForecastFires
    show_webhook_keys: ShowWebhookKeys
    rotate_webhook_keys: RotateWebhookKeys
    try_target: TryTarget
    import_schedules: ImportSchedules
    export_schedules: ExportSchedules


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """What the use cases stand on: the ports, and the parts that several of them share."""

    schedules: Schedules
    tenants: Tenants
    ledger: Ledger
    requests: Requests
    budgets: Budgets
    shares: Shares
    breakers: Breakers
    announced: Announced
    clock: Clock
    ids: IdSource
    limits: Limits
    retention: timedelta
    deliver: DeliverOccurrence
    import_threads: int

    @property
    def admit_caller(self) -> AdmitCaller:
        known = KnownTenants(tenants=self.tenants, clock=self.clock, known_for=ADMISSION_AGE_MAX)
        return AdmitCaller(known=known)

    @property
    def advance(self) -> AdvanceSchedule:
        return AdvanceSchedule(schedules=self.schedules, announced=self.announced, clock=self.clock)

    @property
    def derive(self) -> DeriveFires:
        return DeriveFires(schedules=self.schedules, retention=self.retention)

    @property
    def count(self) -> CountSpans:
        return CountSpans(schedules=self.schedules, ledger=self.ledger)

    @property
    def draw(self) -> DrawTokens:
        return DrawTokens(budgets=self.budgets, clock=self.clock, ids=self.ids)

    @property
    def reopen(self) -> ReopenOccurrence:
        return ReopenOccurrence(
            ledger=self.ledger, announced=self.announced, clock=self.clock, ids=self.ids
        )

    @property
    def send(self) -> SendRequest:
        return SendRequest(
            schedules=self.schedules,
            requests=self.requests,
            outbox=self.announced.plan_cursors.outbox,
            ledger=self.ledger,
            announced=self.announced,
            clock=self.clock,
            ids=self.ids,
        )

    @property
    def create_schedule(self) -> CreateSchedule:
        return CreateSchedule(
            schedules=self.schedules,
            tenants=self.tenants,
            announced=self.announced,
            clock=self.clock,
            ids=self.ids,
            limits=self.limits,
        )

    @property
    def change_schedule(self) -> ChangeSchedule:
        return ChangeSchedule(tenants=self.tenants, advance=self.advance, limits=self.limits)

    @property
    def show_occurrence(self) -> ShowOccurrence:
        return ShowOccurrence(
            schedules=self.schedules,
            ledger=self.ledger,
            derive=self.derive,
            count=self.count,
            clock=self.clock,
        )

    @property
    def import_schedules(self) -> ImportSchedules:
        return ImportSchedules(
            import_schedule=ImportSchedule(
                create=self.create_schedule,
                change=self.change_schedule,
                schedules=self.schedules,
                clock=self.clock,
                limits=self.limits,
            ),
            schedules=self.schedules,
            tenants=self.tenants,
            clock=self.clock,
            threads=self.import_threads,
        )


def control_plane_of(wiring: Wiring) -> ControlPlane:
    """Wire the use cases on their ports."""
    schedules, tenants, ledger = wiring.schedules, wiring.tenants, wiring.ledger
    clock, limits, advance = wiring.clock, wiring.limits, wiring.advance
    derive, draw, secret = wiring.derive, wiring.draw, wiring.deliver.root_secret
    show, reopen = wiring.show_occurrence, wiring.reopen
    return ControlPlane(
        environment=limits.environment,
        admit_caller=wiring.admit_caller,
        create_schedule=wiring.create_schedule,
        show_schedule=ShowSchedule(schedules=schedules, clock=clock),
        list_schedules=ListSchedules(schedules=schedules, tenants=tenants, clock=clock),
        change_schedule=wiring.change_schedule,
        pause_schedule=PauseSchedule(advance=advance),
        resume_schedule=ResumeSchedule(advance=advance, limits=limits),
        cancel_schedule=CancelSchedule(
            schedules=schedules, ledger=ledger, shards=wiring.announced.shards, advance=advance
        ),
        trigger_schedule=TriggerSchedule(send=wiring.send),
        backfill_schedule=BackfillSchedule(
            tenants=tenants, ledger=ledger, derive=derive, draw=draw, send=wiring.send
        ),
        list_occurrences=ListOccurrences(
            schedules=schedules, ledger=ledger, derive=derive, count=wiring.count, clock=clock
        ),
        show_occurrence=show,
        replay_occurrence=ReplayOccurrence(
            schedules=schedules, show=show, reopen=reopen, clock=clock
        ),
        list_dead_letters=ListDeadLetters(tenants=tenants, ledger=ledger),
        replay_dead_letters=ReplayDeadLetters(
            tenants=tenants,
            schedules=schedules,
            ledger=ledger,
            reopen=reopen,
            draw=draw,
            clock=clock,
        ),
        preview_rule=PreviewRule(tenants=tenants, clock=clock, limits=limits),
        preview_schedule=PreviewSchedule(schedules=schedules, clock=clock, limits=limits),
        preview_catch_up=PreviewCatchUp(schedules=schedules, tenants=tenants, clock=clock),
        register_tenant=RegisterTenant(tenants=tenants),
        show_tenant=ShowTenant(tenants=tenants),
        list_tenants=ListTenants(tenants=tenants),
        show_usage=ShowUsage(
            tenants=tenants,
            budgets=wiring.budgets,
            shares=wiring.shares,
            breakers=wiring.breakers,
            clock=clock,
        ),
        forecast_fires=ForecastFires(schedules=schedules, tenants=tenants, clock=clock),
        show_webhook_keys=ShowWebhookKeys(tenants=tenants, root_secret=secret),
        rotate_webhook_keys=RotateWebhookKeys(tenants=tenants, root_secret=secret),
        try_target=TryTarget(
            tenants=tenants,
            deliver=wiring.deliver,
            breakers=wiring.breakers,
            clock=clock,
            ids=wiring.ids,
            limits=limits,
        ),
        import_schedules=wiring.import_schedules,
        export_schedules=ExportSchedules(schedules=schedules, tenants=tenants, clock=clock),
    )
