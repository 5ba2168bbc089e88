"""What tests are made of: valid values, of which each test names only what it is about."""

import base64
import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from puntual.domain.agenda import Cursor, cursor_at
from puntual.domain.expression import Fold, Gap, Rule
from puntual.domain.lane import Lane
from puntual.domain.message import Message
from puntual.domain.occurrence import Kind, Occurrence
from puntual.domain.page import Page, Planned
from puntual.domain.policies import Policies
from puntual.domain.run import Attempt, Note, Run, RunState, Span
from puntual.domain.schedule import Schedule, ScheduleState, ScheduleVersion, head_of
from puntual.domain.shard import Shard
from puntual.domain.slot import Place, Slot
from puntual.domain.target import Delivery, Target, WebhookTarget
from puntual.domain.tenant import Quotas, ScheduleId, Tenant, TenantId

NINE = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
"""The instant around which the tests' world turns."""

HORIZON = timedelta(minutes=10)
"""How far ahead planners work in the tests' world, as they do in the cloud."""

TENANT = TenantId("acme")
SCHEDULE = ScheduleId("invoices")
TARGET = WebhookTarget(url="https://acme.example/hooks/invoices")


def a_rule(
    expression: str = "rate(5 minutes)",
    time_zone: str = "UTC",
    *,
    gap: Gap = Gap.SKIP,
    fold: Fold = Fold.AUTO,
    anchor: datetime = NINE,
    start_at: datetime | None = None,
    end_at: datetime | None = None,
) -> Rule:
    return Rule(
        expression=expression,
        time_zone=time_zone,
        gap=gap,
        fold=fold,
        anchor=anchor,
        start_at=start_at,
        end_at=end_at,
    )


def a_version(  # noqa: PLR0913 a builder has a keyword per field
    *,
    tenant: str = TENANT,
    schedule: str = SCHEDULE,
    version: int = 1,
    state: ScheduleState = ScheduleState.ACTIVE,
    rule: Rule | None = None,
    policies: Policies | None = None,
    target: Target = TARGET,
    payload: str = '{"invoice":7}',
    effective_from: datetime | None = None,
    until: datetime | None = None,
    author: str = "ana",
    request: str = "",
) -> ScheduleVersion:
    """Version n starts n - 1 hours after nine, unless told otherwise."""
    return ScheduleVersion(
        tenant=TenantId(tenant),
        schedule=ScheduleId(schedule),
        version=version,
        state=state,
        rule=rule or a_rule(),
        policies=policies or Policies(),
        target=target,
        payload=payload,
        effective_from=effective_from or NINE + timedelta(hours=version - 1),
        until=until,
        author=author,
        tzdata="2026.1",
        request=request,
    )


def a_schedule(
    version: ScheduleVersion | None = None,
    *,
    min_valid_version: int = 0,
    created_at: datetime = NINE,
) -> Schedule:
    """Give the head that stands for a version."""
    return head_of(
        version or a_version(), created_at=created_at, min_valid_version=min_valid_version
    )


def an_occurrence(
    *,
    tenant: str = TENANT,
    schedule: str = SCHEDULE,
    version: int = 1,
    scheduled_for: datetime = NINE,
    kind: Kind = Kind.REGULAR,
    request_id: str = "",
) -> Occurrence:
    return Occurrence(
        tenant=TenantId(tenant),
        schedule=ScheduleId(schedule),
        version=version,
        scheduled_for=scheduled_for,
        kind=kind,
        request_id=request_id,
    )


def a_cursor(
    fire: datetime = NINE,
    *,
    version: ScheduleVersion | None = None,
) -> Cursor:
    return cursor_at(fire, (version or a_version()).fires)


def a_planned(
    occurrence: Occurrence | None = None,
    *,
    flexible: bool = False,
    authorised_version: int | None = None,
) -> Planned:
    planned = occurrence or an_occurrence()
    return Planned(
        occurrence=planned,
        available_at=planned.scheduled_for,
        misfire_after=timedelta(seconds=60),
        flexible=flexible,
        authorised_version=authorised_version,
    )


def a_page(
    *planned: Planned,
    shard: int = 0,
    bucket: datetime = NINE,
    written_at: datetime = NINE - timedelta(minutes=10),
) -> Page:
    return Page(
        shard=shard, bucket=bucket, planned=planned or (a_planned(),), written_at=written_at
    )


def a_message(
    occurrence: Occurrence | None = None,
    *,
    available_at: datetime | None = None,
    lane: Lane = Lane.STRICT,
    authorised_version: int | None = None,
    looks: int = 0,
    lost_races: int = 0,
    enqueued_at: datetime | None = None,
) -> Message:
    asked = occurrence or an_occurrence()
    return Message(
        occurrence=asked,
        available_at=available_at or asked.scheduled_for,
        lane=lane,
        authorised_version=authorised_version,
        looks=looks,
        lost_races=lost_races,
        enqueued_at=enqueued_at,
    )


def a_run(
    occurrence: Occurrence | None = None,
    *,
    state: RunState = RunState.RUNNING,
    attempt: int = 1,
    write_id: str = "first-write",
    reason: str = "",
) -> Run:
    """Give a row as a claim leaves it: `attempt` tries, each after the last one's failure."""
    of = occurrence or an_occurrence()
    started_at = of.scheduled_for + timedelta(seconds=1)
    return Run(
        occurrence=of,
        state=state,
        available_at=of.scheduled_for,
        enqueued_at=of.scheduled_for,
        attempt=attempt,
        round_attempt=attempt,
        lease_until=started_at + timedelta(seconds=25) if state is RunState.RUNNING else None,
        not_before=started_at if state is RunState.RETRY_WAIT else None,
        reason=reason,
        attempts=tuple(
            Attempt(number=number, started_at=started_at) for number in range(1, attempt + 1)
        ),
        write_id=write_id,
    )


def written_as(run: Run, write_id: str) -> Run:
    return replace(run, write_id=write_id)


def a_span(
    first: datetime,
    last: datetime,
    *,
    version: int = 1,
    state: RunState = RunState.MISSED,
    reason: str = "fire_once",
) -> Span:
    return Span(
        tenant=TENANT,
        schedule=SCHEDULE,
        version=version,
        state=state,
        first=first,
        last=last,
        reason=reason,
    )


def a_note(occurrence: Occurrence | None = None, *, reason: str = "voided") -> Note:
    return Note(occurrence=occurrence or an_occurrence(), reason=reason, noted_at=NINE)


def a_shard(shard: int = 0, *, now: datetime = NINE) -> Shard:
    return Shard(
        shard=shard,
        planned_through=now + timedelta(minutes=10),
        completed_through=now,
        drained_through=now - timedelta(hours=1),
    )


def a_tenant(
    tenant: str = TENANT,
    *,
    schedules_max: int = 100,
    quotas: Quotas | None = None,
    targets: tuple[str, ...] = (),
    roles: tuple[str, ...] = (),
    principals: tuple[str, ...] = (),
    key_generation: int = 1,
) -> Tenant:
    return Tenant(
        tenant=TenantId(tenant),
        quotas=quotas or Quotas(schedules_max=schedules_max),
        targets=targets,
        roles=roles,
        principals=principals,
        key_generation=key_generation,
    )


def a_delivery(
    target: Target = TARGET,
    *,
    attempt: int = 1,
    round_: int = 0,
    payload: str = '{"invoice":7}',
    keys: tuple[bytes, ...] = (),
    is_try: bool = False,
) -> Delivery:
    """Ten seconds are left of it at nine."""
    return Delivery(
        occurrence=an_occurrence(),
        attempt=attempt,
        round=round_,
        target=target,
        payload=payload,
        deadline=NINE + timedelta(seconds=10),
        keys=keys,
        is_try=is_try,
    )


def a_forged_page_token(content: bytes, *, listing: tuple[str, ...]) -> str:
    """Give a token as any caller can make one: its digest has no key."""
    scope = json.dumps(listing).encode()
    digest = hashlib.blake2b(scope + b"\x1f" + content, digest_size=12).digest()
    return base64.urlsafe_b64encode(digest + content).decode().rstrip("=")


def a_place(occurrence: Occurrence | None = None, *, judged_version: int | None = None) -> Place:
    of = occurrence or an_occurrence()
    version = of.version if judged_version is None else judged_version
    return Place(occurrence=of, judged_version=version)


def a_slot(
    *,
    running: Occurrence | None = None,
    waiting: Occurrence | None = None,
    write_id: str = "slot-write",
) -> Slot:
    return Slot(
        tenant=TENANT,
        schedule=SCHEDULE,
        running=a_place(running) if running else None,
        waiting=a_place(waiting) if waiting else None,
        write_id=write_id,
    )
