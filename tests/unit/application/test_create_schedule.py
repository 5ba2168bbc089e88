"""Creating: one transaction, then P1; and repeated creates."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest

from puntual.application.ports import CreateResult
from puntual.application.show_schedule import ShownSchedule
from puntual.domain.agenda import Cursor
from puntual.domain.definition import (
    AwsDefinition,
    NestedTooDeeply,
    PayloadTooLarge,
    WebhookDefinition,
)
from puntual.domain.errors import Rejected, Unavailable
from puntual.domain.expression import AtInThePast, InvalidExpression, UnknownTimeZone
from puntual.domain.policies import Policies, RetryPolicy
from puntual.domain.request import IdempotencyKeyReused, Request
from puntual.domain.schedule import DuplicateSchedule, Schedule, ScheduleState, ScheduleVersion
from puntual.domain.target import AwsTarget, Service
from puntual.domain.tenant import ScheduleId, ScheduleQuotaReached, TenantId, UnknownTenant
from tests.builders import HORIZON, NINE, SCHEDULE, TENANT, a_tenant
from tests.control_plane_world import AUTHOR, KEY, OWN_QUEUE, World, a_definition
from tests.fakes.hostile import HostileSchedules, Hostility

QUIET = Hostility(source=random.Random(1))
REQUEST = Request(key="order-7", body='{"expression":"rate(5 minutes)"}')


def test_a_schedule_is_created_with_its_version_its_first_cursor_and_its_count(
    world: World,
) -> None:
    shown = world.created()
    version = world.schedules.version(KEY, 1)
    assert version == shown.version
    assert version.effective_from == NINE
    assert version.author == AUTHOR
    assert world.tenants.rows[TENANT].schedules == 1
    assert shown.head.state is ScheduleState.ACTIVE


def test_fires_that_a_planner_may_have_passed_are_planned_inline(world: World) -> None:
    world.created("* * * * *")
    # One exactly at the start is the version's own; the next cursor lies beyond the horizon.
    assert world.planned() == [NINE + timedelta(minutes=n) for n in range(11)]
    ((_, cursor),) = world.agenda.cursors()
    assert cursor.scheduled_for == NINE + timedelta(minutes=11)


def test_a_first_fire_beyond_the_horizon_is_left_to_the_planner(world: World) -> None:
    world.created("0 12 * * *")
    assert world.planned() == []
    ((_, cursor),) = world.agenda.cursors()
    assert cursor.scheduled_for == NINE + timedelta(hours=3)


def test_the_next_five_fires_are_shown(world: World) -> None:
    assert world.created("0 12 * * *").next_fires == tuple(
        NINE + timedelta(days=day, hours=3) for day in range(5)
    )


def test_a_rate_is_anchored_at_the_whole_second_of_its_start(world: World) -> None:
    world.clock.advance(timedelta(milliseconds=345))
    shown = world.created("rate(5 minutes)")
    assert shown.version.rule.anchor == NINE
    assert shown.next_fires[0] == NINE + timedelta(minutes=5)


def test_a_rate_with_a_start_is_anchored_there(world: World) -> None:
    start = NINE + timedelta(hours=1)
    assert world.created(start_at=start).next_fires[0] == start + timedelta(minutes=5)


def test_without_id_and_key_the_id_is_random(world: World) -> None:
    first, second = (
        world.plane.create_schedule(TENANT, a_definition(), schedule=None, author=AUTHOR)
        for _ in range(2)
    )
    assert first.head.schedule != second.head.schedule


def test_a_queue_that_the_tenant_registered_is_a_target(world: World) -> None:
    shown = world.created(target=AwsDefinition(service=Service.SQS, arn=OWN_QUEUE))
    assert shown.version.target == AwsTarget(service=Service.SQS, arn=OWN_QUEUE)


@pytest.mark.parametrize(
    ("fields", "error", "field"),
    [
        ({"time_zone": "Mars/Phobos"}, UnknownTimeZone, "time_zone"),
        ({"expression": "61 * * * *"}, InvalidExpression, "expression"),
        ({"expression": "at(2026-11-30T08:59:59)"}, AtInThePast, "expression"),
        ({"start_at": NINE + timedelta(hours=2), "end_at": NINE}, Rejected, "end_at"),
        ({"payload": "x" * 65_536}, PayloadTooLarge, "payload"),
        ({"payload": float("inf")}, Rejected, "payload"),
        ({"payload": "\ud800"}, Rejected, "payload"),
        ({"payload": json.loads("[" * 101 + "]" * 101)}, NestedTooDeeply, "payload"),
        ({"target": WebhookDefinition(url="ftp://acme.example")}, Rejected, "target.url"),
        ({"target": WebhookDefinition(url="http://acme.example")}, Rejected, "target.url"),
        (
            {"target": WebhookDefinition(url="https://a.example", timeout=timedelta(hours=1))},
            Rejected,
            "target.timeout_seconds",
        ),
        (
            {"target": AwsDefinition(service=Service.SQS, arn=f"{OWN_QUEUE}-of-another")},
            Rejected,
            "target.queue_arn",
        ),
        (
            {"policies": Policies(retry=RetryPolicy(cap=timedelta(seconds=1)))},
            Rejected,
            "retry.cap_seconds",
        ),
    ],
)
def test_a_bad_definition_names_its_field_and_writes_nothing(
    world: World, fields: dict[str, object], error: type[Rejected], field: str
) -> None:
    before = world.writes()
    with pytest.raises(error) as caught:
        world.created(**fields)  # type: ignore[arg-type]
    assert caught.value.field == field
    assert caught.value.allowed
    assert world.writes() == before


def test_a_payload_of_64_kib_is_the_most(world: World) -> None:
    world.created(payload="x" * (65_536 - 2))


def test_an_unknown_tenant_is_refused(world: World) -> None:
    with pytest.raises(UnknownTenant):
        world.plane.create_schedule(
            TenantId("nobody"), a_definition(), schedule=None, author=AUTHOR
        )


def test_a_tenant_that_has_all_it_may_have_is_refused(world: World) -> None:
    world.tenants.register(a_tenant(schedules_max=1))
    world.created(schedule="first")
    before = world.writes()
    with pytest.raises(ScheduleQuotaReached):
        world.created(schedule="second")
    assert world.writes() == before


def test_an_id_that_is_taken_is_a_conflict(world: World) -> None:
    world.created()
    world.clock.advance(timedelta(seconds=1))
    before = world.writes()
    with pytest.raises(DuplicateSchedule) as caught:
        world.created("rate(1 hour)")
    assert caught.value.key == KEY
    assert world.writes() == before


def keyed(world: World, request: Request = REQUEST, schedule: str | None = None) -> ShownSchedule:
    return world.plane.create_schedule(
        TENANT,
        a_definition(),
        schedule=None if schedule is None else ScheduleId(schedule),
        author=AUTHOR,
        request=request,
    )


@pytest.mark.parametrize("schedule", [None, SCHEDULE])
def test_a_repeated_request_finds_its_own_schedule(world: World, schedule: str | None) -> None:
    first = keyed(world, schedule=schedule)
    world.clock.advance(timedelta(days=3))
    before = world.writes()
    again = keyed(world, schedule=schedule)
    assert again == first
    assert again.next_fires == first.next_fires
    assert world.writes() == before


def test_a_repeated_request_shows_the_schedule_as_it_was_created(world: World) -> None:
    first = keyed(world, schedule=SCHEDULE)
    world.plane.pause_schedule(KEY, author=AUTHOR)
    assert keyed(world, schedule=SCHEDULE) == first
    assert world.plane.create_schedule.created(KEY) == first


def test_a_repeated_request_is_not_judged_by_what_has_passed_since(world: World) -> None:
    def once() -> ShownSchedule:
        definition = a_definition("at(2026-11-30T09:00:05)")
        return world.plane.create_schedule(
            TENANT, definition, schedule=None, author=AUTHOR, request=REQUEST
        )

    first = once()
    world.clock.advance(timedelta(seconds=6))
    assert once() == first


@pytest.mark.parametrize("schedule", [None, SCHEDULE])
def test_a_key_that_comes_with_another_body_is_refused(world: World, schedule: str | None) -> None:
    keyed(world, schedule=schedule)
    before = world.writes()
    with pytest.raises(IdempotencyKeyReused):
        keyed(world, Request(key=REQUEST.key, body="{}"), schedule=schedule)
    assert world.writes() == before


def test_another_key_does_not_own_the_schedule(world: World) -> None:
    keyed(world, schedule=SCHEDULE)
    with pytest.raises(DuplicateSchedule):
        keyed(world, Request(key="order-8", body=REQUEST.body), schedule=SCHEDULE)


def test_the_same_key_of_two_tenants_makes_two_schedules(world: World) -> None:
    other = TenantId("globex")
    world.tenants.register(a_tenant(other))
    ours = keyed(world)
    theirs = world.plane.create_schedule(
        other, a_definition(), schedule=None, author=AUTHOR, request=REQUEST
    )
    assert ours.head.schedule != theirs.head.schedule


@dataclass(frozen=True, slots=True)
class _AnswerLost(HostileSchedules):
    """The transaction is done, and nobody hears of it; all else is well."""

    def create(
        self, head: Schedule, version: ScheduleVersion, cursor: Cursor | None, *, shard: int
    ) -> CreateResult:
        self.inner.create(head, version, cursor, shard=shard)
        raise Unavailable("timed out after it took effect")


@pytest.mark.parametrize("schedule", [None, SCHEDULE])
def test_a_crash_after_the_transaction_gives_one_schedule_and_the_same_answer(
    schedule: str | None,
) -> None:
    untroubled = World()
    expected = keyed(untroubled, schedule=schedule)

    world = World()
    patient = world.plane
    world.plane = world.plane_on(_AnswerLost(world.schedules, QUIET))
    with pytest.raises(Unavailable):
        keyed(world, schedule=schedule)
    assert world.planned() == [], "the crash came before P1"

    world.plane = patient
    world.clock.advance(timedelta(seconds=20))
    assert keyed(world, schedule=schedule) == expected
    assert list(world.schedules.head_rows) == list(untroubled.schedules.head_rows)
    assert world.planned() == untroubled.planned()
    assert world.tenants.rows[TENANT].schedules == 1


def test_long_after_a_crash_the_repeat_leaves_late_fires_to_the_planner() -> None:
    world = World()
    keyed(world)
    pages = dict(world.outbox.pages)
    world.clock.advance(timedelta(hours=5))
    keyed(world)
    assert world.outbox.pages == pages
    assert not world.ledger.rows, "nothing was called missed"


@dataclass(frozen=True, slots=True)
class _Twin(HostileSchedules):
    """The same request comes between the other's look and its transaction."""

    first: Callable[[], object]

    def create(
        self, head: Schedule, version: ScheduleVersion, cursor: Cursor | None, *, shard: int
    ) -> CreateResult:
        self.first()
        return self.inner.create(head, version, cursor, shard=shard)


def test_a_race_lost_to_the_same_request_is_won(world: World) -> None:
    def first() -> None:
        # Later, so that the other's version is not taken for a write of its own (P9).
        world.clock.advance(timedelta(seconds=1))
        keyed(world)

    racing = world.plane_on(_Twin(world.schedules, QUIET, first))
    shown = racing.create_schedule(
        TENANT, a_definition(), schedule=None, author=AUTHOR, request=REQUEST
    )
    assert shown.version.effective_from == NINE + timedelta(seconds=1)
    assert list(world.schedules.head_rows) == [shown.head.key]


def test_a_window_is_planned_inline_as_far_as_its_runs_are_near(world: World) -> None:
    world.created("rate(5 minutes)", policies=Policies(window=timedelta(minutes=5)))
    version = world.schedules.version_rows[KEY, 1]
    planned = [each for page in world.outbox.pages.values() for each in page.planned]
    ((_, cursor),) = world.agenda.cursors()
    assert planned, "else nothing was near"
    for each in planned:
        assert each.flexible
        assert each.available_at == version.fires.available_at(each.occurrence.scheduled_for)
        assert each.available_at <= NINE + HORIZON < cursor.available_at
