"""The room of runs that end by callbacks: kept on their leases, and given back with their ends."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from puntual.application.take_callback import TakeCallback
from puntual.domain.callback import AttemptOver
from puntual.domain.callback_token import Ticket
from puntual.domain.gate import BY_RUNNING, BY_TARGET_RUNNING
from puntual.domain.instant import HOUR, MINUTE, SECOND
from puntual.domain.message import Message
from puntual.domain.policies import Completion, CompletionPolicy, Policies, RetryPolicy
from puntual.domain.run import LEASE_MARGIN, RunState
from puntual.domain.share import RUNNING, ShareKey
from puntual.domain.target import Accepted, Delivery, DeliveryResult
from puntual.domain.target_limit import TargetLimit
from puntual.domain.tenant import Quotas, Tenant
from tests.builders import NINE, TENANT, a_message, a_tenant, a_version, an_occurrence
from tests.fakes.fixed_root_secret import FixedRootSecret
from tests.fakes.hostile import Rates
from tests.fakes.scripted_targets import ScriptedTargets
from tests.gates import failing_by
from tests.unit.application.world import World

FIRE = NINE + timedelta(minutes=5)
ORIGIN = "https://acme.example"
CALLBACK = CompletionPolicy(policy=Completion.CALLBACK, heartbeat=2 * MINUTE, max_duration=3 * HOUR)
TAKEN = Accepted(detail="HTTP 202")


def message(number: int) -> Message:
    return a_message(an_occurrence(schedule=f"s{number}", scheduled_for=FIRE))


def ticket(number: int) -> Ticket:
    return Ticket(occurrence=message(number).occurrence, attempt=1)


def a_world(tenant: Tenant, *, retry: RetryPolicy | None = None) -> World:
    world = World()
    world.clock.advance_to(FIRE)
    world.tenants.register(tenant)
    policies = Policies(completion=CALLBACK, retry=retry or RetryPolicy())
    for number in range(4):
        world.holds(a_version(schedule=f"s{number}", policies=policies))
    world.answers(TAKEN)
    return world


def limited(running_max: int | None = 1, *, retries: int = 600) -> Tenant:
    return a_tenant(quotas=Quotas(running_max=running_max, retries_per_minute=retries))


def taker(world: World) -> TakeCallback:
    gates = world.gates_of_another("callbacks")
    return TakeCallback(
        root_secret=FixedRootSecret(),
        settle_message=world.settle_message,
        fail_attempt=failing_by(gates),
        rooms=gates.rooms,
    )


def in_use(world: World, at: datetime | None = None, name: str = RUNNING) -> int:
    shares = world.shares.read(ShareKey(tenant=TENANT, name=name))
    return shares.in_use(at or world.clock.now())


def by_target() -> Tenant:
    return replace(a_tenant(), target_limits=(TargetLimit(target=ORIGIN, running=1),))


@pytest.mark.parametrize(
    ("tenant", "gate"), [(limited(1), BY_RUNNING), (by_target(), BY_TARGET_RUNNING)]
)
def test_two_runs_that_were_taken_are_never_under_way_at_once(tenant: Tenant, gate: str) -> None:
    world = a_world(tenant)
    assert world.execute(message(0)).why == "accepted"
    assert world.execute(message(1)).why == gate
    taker(world).complete(ticket(0), result="done")
    assert world.execute(message(1)).why == "accepted"


def test_a_limit_of_three_takes_three_whoever_had_the_room_before() -> None:
    world = a_world(limited(3))
    assert [world.execute(message(number)).why for number in range(4)] == [
        "accepted",
        "accepted",
        "accepted",
        BY_RUNNING,
    ]
    assert in_use(world) == 3


def test_heartbeats_put_the_end_of_the_room_off() -> None:
    world = a_world(limited())
    world.execute(message(0))
    world.clock.advance(MINUTE)
    taker(world).heartbeat(ticket(0))
    until = FIRE + 3 * MINUTE
    assert world.run_of(message(0)).lease_until == until
    assert in_use(world, until + LEASE_MARGIN) == 1
    assert in_use(world, until + LEASE_MARGIN + SECOND) == 0


def test_a_silent_run_gives_its_room_back_when_its_lease_is_over() -> None:
    world = a_world(limited(), retry=RetryPolicy(max_attempts=2))
    world.execute(message(0))
    world.clock.advance(2 * MINUTE + LEASE_MARGIN + SECOND)
    assert in_use(world) == 0
    assert world.execute(message(0)).why == "accepted", "its own next attempt takes it again"
    assert in_use(world) == 1


@pytest.mark.parametrize("retry", [True, False])
def test_a_failed_run_gives_its_room_back(retry: bool) -> None:  # noqa: FBT001
    world = a_world(limited())
    world.execute(message(0))
    taker(world).fail(ticket(0), reason="no", retry=retry)
    assert in_use(world) == 0


def test_a_complete_before_the_answer_leaves_no_room_behind() -> None:
    world = a_world(limited())

    def first(_: Delivery) -> DeliveryResult:
        taker(world).complete(ticket(0), result="done")
        return TAKEN

    world.targets = ScriptedTargets(first)
    assert world.execute(message(0)).why == RunState.SUCCEEDED
    assert in_use(world) == 0


def test_a_heartbeat_that_finds_the_attempt_ended_leaves_no_room_behind() -> None:
    world = a_world(limited())
    world.execute(message(0))
    world.clock.advance(MINUTE)
    take = taker(world)

    def complete_once(io: str) -> None:
        if io == "shares.swap":
            world.at_io = lambda _: None
            taker(world).complete(ticket(0), result="done")

    world.at_io = complete_once
    with pytest.raises(AttemptOver):
        take.heartbeat(ticket(0))
    assert in_use(world) == 0


def test_a_share_that_cannot_be_handed_over_stays_with_the_executor_meanwhile() -> None:
    world = a_world(limited())

    def then_out_of_reach(_: Delivery) -> DeliveryResult:
        world.rates = Rates(throttled=1.0)
        world.at_io = lambda io: _reachable_but_for_shares(world, io)
        return TAKEN

    world.targets = ScriptedTargets(then_out_of_reach)
    assert world.execute(message(0)).why == "accepted"
    world.rates, world.at_io = Rates(), lambda _: None
    assert in_use(world) == 1
    world.answers(TAKEN)
    assert world.execute(message(1)).why == BY_RUNNING


def _reachable_but_for_shares(world: World, io: str) -> None:
    world.rates = Rates(throttled=1.0 if io.startswith("shares.") else 0.0)


def test_who_has_no_limit_pays_nothing() -> None:
    world = a_world(limited(None))
    world.execute(message(0))
    taker(world).heartbeat(ticket(0))
    taker(world).complete(ticket(0), result="done")
    assert not [io for io in world.calls if io.startswith("shares.")]


def test_the_retry_of_a_fail_has_its_place_in_the_tenants_rate() -> None:
    world = a_world(limited(None, retries=6))
    take = taker(world)
    for number in range(3):
        world.execute(message(number))
        take.fail(ticket(number), reason="no", retry=True)
    waits = [world.run_of(message(number)).not_before for number in range(3)]
    assert waits == [FIRE + 5 * SECOND + number * 10 * SECOND for number in range(3)]


def test_a_place_behind_the_deadline_is_left_to_others_and_the_run_is_dead() -> None:
    world = a_world(limited(None, retries=1), retry=RetryPolicy(deadline=MINUTE))
    take = taker(world)
    for number in range(3):
        world.execute(message(number))
        take.fail(ticket(number), reason="no", retry=True)
    runs = [world.run_of(message(number)) for number in range(3)]
    dead = RunState.DEAD
    assert [run.state for run in runs] == [RunState.RETRY_WAIT, dead, dead]
    assert (runs[1].reason, runs[1].died_at) == ("deadline: no", FIRE)
    assert runs[1].not_before is None
    world.holds(a_version(schedule="s3", policies=Policies(completion=CALLBACK)))
    world.execute(message(3))
    take.fail(ticket(3), reason="no", retry=True)
    assert world.run_of(message(3)).not_before == FIRE + 5 * SECOND + MINUTE
