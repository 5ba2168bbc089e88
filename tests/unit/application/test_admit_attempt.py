"""The gates before a claim: what they hold, what it has spent by then, and who comes through."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from puntual.application.circuit_breakers import SEEN_FOR
from puntual.application.execute_occurrence import ExecuteOccurrence
from puntual.application.known_tenants import KNOWN_FOR
from puntual.application.settle_message import Settled
from puntual.domain.breaker import COOL_DOWN_FIRST, FAILURES_IN_A_ROW, HELD_MAX
from puntual.domain.budget import FIRES, RETRIES, BudgetKey
from puntual.domain.gate import (
    BY_BREAKER,
    BY_FIRES,
    BY_RUNNING,
    BY_TARGET_RATE,
    BY_TARGET_RUNNING,
)
from puntual.domain.message import Message
from puntual.domain.run import RunState
from puntual.domain.share import RUNNING, SHARE_KEPT, ShareKey
from puntual.domain.target import (
    Accepted,
    Delivered,
    Delivery,
    DeliveryResult,
    Failed,
    WebhookTarget,
)
from puntual.domain.target_limit import TargetLimit
from puntual.domain.tenant import Quotas, Tenant
from tests.builders import NINE, TENANT, a_message, a_tenant, a_version, an_occurrence
from tests.fakes.hostile import Rates
from tests.fakes.scripted_targets import ScriptedTargets, always_delivered
from tests.gates import failing_by
from tests.unit.application.world import World

FIRE = NINE + timedelta(minutes=5)
ORIGIN = "https://acme.example"
REFUSED = Failed(detail="HTTP 503", retryable=True)
SECOND = timedelta(seconds=1)


def a_world(tenant: Tenant | None = None, *, schedules: int = 1) -> World:
    world = World()
    world.clock.advance_to(FIRE)
    for number in range(schedules):
        world.holds(a_version(schedule=f"s{number}"))
    if tenant is not None:
        world.tenants.register(tenant)
    return world


def limited(**quotas: int) -> Tenant:
    return a_tenant(quotas=Quotas(**quotas))  # type: ignore[arg-type]  # counts, all of them


def target_limited(**limit: int) -> Tenant:
    return a_tenant(target_limits=(TargetLimit(target=ORIGIN, **limit),))


def message(number: int = 0) -> Message:
    return a_message(an_occurrence(schedule=f"s{number}", scheduled_for=FIRE), enqueued_at=FIRE)


def last_sent(world: World) -> Message:
    return world.sent()[-1][1]


def gate_calls(world: World) -> list[str]:
    ports = ("budgets.", "shares.", "breakers.")
    return [call for call in world.calls if call.startswith(ports)]


# Nothing to pay


def test_a_tenant_without_limits_pays_a_read_in_a_while_and_no_write() -> None:
    world = a_world(a_tenant(), schedules=3)
    for number in range(3):
        assert world.execute(message(number)).why == RunState.SUCCEEDED
    assert gate_calls(world) == ["breakers.read"]


def test_a_limit_counts_half_a_minute_after_it_was_registered() -> None:
    world = a_world(a_tenant(), schedules=3)
    world.execute(message(0))
    world.tenants.register(limited(fires_per_minute_max=1))
    world.execute(message(1))
    assert "budgets.swap" not in world.calls
    world.clock.advance(KNOWN_FOR)
    world.execute(message(2))
    assert "budgets.swap" in world.calls


# Rates


def test_what_is_over_the_rate_is_held_once_until_its_own_token_falls_due() -> None:
    world = a_world(limited(fires_per_minute_max=6), schedules=4)
    settled = [world.execute(message(number)) for number in range(4)]
    assert [each.why for each in settled] == [RunState.SUCCEEDED, BY_FIRES, BY_FIRES, BY_FIRES]
    held = [sent for _, sent, _ in world.sent()]
    assert [each.held_until for each in held] == [FIRE + n * 10 * SECOND for n in (1, 2, 3)]
    assert [delay for _, _, delay in world.sent()] == [n * 10 * SECOND for n in (1, 2, 3)]
    swaps = world.budgets.swaps
    world.clock.advance(10 * SECOND)
    assert world.execute(held[0]).why == RunState.SUCCEEDED
    assert world.budgets.swaps == swaps, "it has its token"
    assert world.execute(held[1]).why == BY_FIRES, "and nobody goes before its own"
    assert world.budgets.read(BudgetKey(tenant=TENANT, name=FIRES)).held == 3


def test_drawing_a_token_that_is_due_holds_nobody_though_it_takes_its_time() -> None:
    world = a_world(limited(fires_per_minute_max=6))
    world.at_io = lambda _: world.clock.advance(timedelta(milliseconds=3))
    assert world.execute(message()).why == RunState.SUCCEEDED


def test_what_is_held_has_spent_no_attempt_and_its_row_tells_afterwards() -> None:
    world = a_world(limited(fires_per_minute_max=1), schedules=2)
    world.execute(message(0))
    world.execute(message(1))
    assert world.ledger.read(message(1).occurrence.key) is None
    world.clock.advance(60 * SECOND)
    world.execute(last_sent(world))
    run = world.run_of(message(1))
    assert (run.state, run.attempt) == (RunState.SUCCEEDED, 1)
    assert (run.held_by, run.held_until) == (BY_FIRES, FIRE + 60 * SECOND)


def test_duplicates_and_what_is_late_take_no_token() -> None:
    world = a_world(limited(fires_per_minute_max=1))
    world.execute(message())
    drawn = world.budgets.swaps
    assert world.execute(message()).why == RunState.SUCCEEDED
    assert world.budgets.swaps == drawn


def test_a_retry_is_no_fire_but_counts_for_its_target() -> None:
    tenant = replace(
        target_limited(per_minute=6), quotas=Quotas(fires_per_minute_max=1, retries_per_minute=600)
    )
    world = a_world(tenant)
    world.answers(REFUSED)
    world.execute(message())
    world.clock.advance(5 * SECOND)
    settled = world.execute(last_sent(world))
    assert settled.why == BY_TARGET_RATE
    assert last_sent(world).held_until == FIRE + 10 * SECOND
    world.clock.advance(5 * SECOND)
    assert world.execute(last_sent(world)).why == RunState.RETRY_WAIT
    assert world.run_of(message()).attempt == 2


# Retries


def test_retries_of_a_tenant_are_spread_and_never_refused() -> None:
    world = a_world(limited(retries_per_minute=6), schedules=3)
    world.answers(REFUSED)
    for number in range(3):
        world.execute(message(number))
    waits = [world.run_of(message(number)).not_before for number in range(3)]
    assert waits == [FIRE + 5 * SECOND + n * 10 * SECOND for n in range(3)]


def test_a_retry_waits_for_its_backoff_alone_where_its_budget_is_out_of_reach() -> None:
    world = a_world(limited(retries_per_minute=6))

    def out_of_reach(_: Delivery) -> DeliveryResult:
        world.at_io = _unreachable(world, "budgets.read")
        return REFUSED

    world.targets = ScriptedTargets(out_of_reach)
    assert world.execute(message()).why == RunState.RETRY_WAIT
    assert world.run_of(message()).not_before == FIRE + 5 * SECOND


def _unreachable(world: World, name: str) -> Callable[[str], None]:
    def at_io(io: str) -> None:
        world.rates = Rates(throttled=1.0 if io == name else 0.0)

    return at_io


# Concurrency


class Among:
    """While its target works on one message, other executors get theirs."""

    def __init__(self, world: World) -> None:
        self.world, self.settled = world, list[Settled]()

    def executor(self, holder: str) -> ExecuteOccurrence:
        world, gates = self.world, self.world.gates_of_another(holder)
        return ExecuteOccurrence(
            settle_message=world.settle_message,
            targets=ScriptedTargets(),
            fail_attempt=failing_by(gates),
            admit=gates,
        )

    def run(self, first: Message, *others: Message) -> Settled:
        def script(delivery: Delivery) -> DeliveryResult:
            for number, other in enumerate(others):
                self.settled.append(self.executor(f"other {number}")(other))
            return always_delivered(delivery)

        self.world.targets = ScriptedTargets(script)
        return self.world.execute(first)


@pytest.mark.parametrize(
    ("tenant", "gate"),
    [
        (limited(running_max=1), BY_RUNNING),
        (target_limited(running=1), BY_TARGET_RUNNING),
    ],
)
def test_what_is_over_the_concurrency_waits_longer_each_time(tenant: Tenant, gate: str) -> None:
    world = a_world(tenant, schedules=3)
    among = Among(world)
    again = replace(message(2), holds=4)
    among.run(message(0), message(1), again)
    assert [each.why for each in among.settled] == [gate, gate]
    (_, first, short), (_, second, long) = world.sent()
    assert (short, long) == (2 * SECOND, 24 * SECOND)
    assert (first.holds, second.holds) == (1, 5)
    assert first.held_by == second.held_by == gate
    world.clock.advance(2 * SECOND)
    assert among.executor("another")(first).why == RunState.SUCCEEDED, "the first has ended"


def test_both_limits_hold_and_the_one_is_given_back_where_the_other_is_full() -> None:
    tenant = replace(target_limited(running=1), quotas=Quotas(running_max=2))
    world = a_world(tenant, schedules=2)
    among = Among(world)
    among.run(message(0), message(1))
    assert [each.why for each in among.settled] == [BY_TARGET_RUNNING]
    for name in (RUNNING, f"target#{ORIGIN}"):
        shares = world.shares.read(ShareKey(tenant=TENANT, name=name))
        assert shares.in_use(world.clock.now(), but_for="one") == 0


def test_a_share_lasts_as_long_as_the_leases_under_it_and_then_lapses() -> None:
    world = a_world(limited(running_max=1), schedules=2)
    key = ShareKey(tenant=TENANT, name=RUNNING)
    lease = FIRE + 25 * SECOND
    dead = world.gates_of_another("dead")
    assert dead.running.enter(key, 1, lease_until=lease)
    assert world.shares.read(key).holders["dead"].until == lease + SHARE_KEPT
    assert world.execute(message(1)).why == BY_RUNNING
    world.clock.advance_to(lease + SHARE_KEPT + 6 * SECOND)
    assert world.execute(last_sent(world)).why == RunState.SUCCEEDED


def test_an_executor_with_room_keeps_its_share_and_writes_nothing() -> None:
    world = a_world(limited(running_max=100), schedules=4)
    for number in range(4):
        world.execute(message(number))
    assert world.shares.swaps == 1


def test_room_that_was_given_back_unheard_is_not_used_on() -> None:
    world = a_world(limited(running_max=1), schedules=3)
    among = Among(world)

    def then_unheard(_: Delivery) -> DeliveryResult:
        world.at_io = lambda io: _lose_the_answer(world, io)
        return Delivered(detail="HTTP 200")

    world.targets = ScriptedTargets(then_unheard)
    assert world.execute(message(0)).why == RunState.SUCCEEDED
    world.rates, world.at_io = Rates(), lambda _: None

    def meanwhile(_: Delivery) -> DeliveryResult:
        among.settled.append(world.execute(message(2)))
        return Delivered(detail="HTTP 200")

    other = replace(among.executor("other"), targets=ScriptedTargets(meanwhile))
    assert other(message(1)).why == RunState.SUCCEEDED
    assert [each.why for each in among.settled] == [BY_RUNNING]


def _lose_the_answer(world: World, io: str) -> None:
    world.rates = Rates(timed_out=1.0 if io == "shares.swap" else 0.0)


def test_what_waits_over_the_rate_does_not_keep_its_room() -> None:
    world = a_world(limited(running_max=1, fires_per_minute_max=1), schedules=2)
    world.execute(message(0))
    assert world.execute(message(1)).why == BY_FIRES
    shares = world.shares.read(ShareKey(tenant=TENANT, name=RUNNING))
    assert shares.in_use(world.clock.now()) == 0


def test_room_is_given_back_where_the_claim_is_lost_or_the_ledger_is_out_of_reach() -> None:
    world = a_world(limited(running_max=1))
    world.at_io = _unreachable(world, "ledger.swap")
    assert world.execute(message()).why == "unavailable"
    world.at_io = lambda _: None
    world.rates = Rates()
    assert world.shares.read(ShareKey(tenant=TENANT, name=RUNNING)).in_use(FIRE) == 0


# Breakers


def failing(world: World, *, times: int, first: int = 0) -> None:
    world.answers(REFUSED)
    for number in range(first, first + times):
        world.execute(message(number))


def test_a_target_that_only_fails_is_left_alone_and_no_attempt_is_spent() -> None:
    world = a_world(a_tenant(), schedules=FAILURES_IN_A_ROW + 1)
    failing(world, times=FAILURES_IN_A_ROW)
    assert world.breakers.swaps == 1
    called = len(world.targets.deliveries)
    last = message(FAILURES_IN_A_ROW)
    assert world.execute(last).why == BY_BREAKER
    assert len(world.targets.deliveries) == called
    assert world.ledger.read(last.occurrence.key) is None
    until = last_sent(world).held_until
    assert until is not None
    assert FIRE + COOL_DOWN_FIRST < until <= FIRE + COOL_DOWN_FIRST + 2 * SECOND


def test_another_target_of_the_tenant_goes_on() -> None:
    world = a_world(a_tenant(), schedules=FAILURES_IN_A_ROW)
    failing(world, times=FAILURES_IN_A_ROW)
    other = WebhookTarget(url="https://lives.example/hook")
    world.holds(a_version(schedule="lives", target=other))
    world.answers(always_delivered(_a_delivery()))
    lives = a_message(an_occurrence(schedule="lives", scheduled_for=FIRE))
    assert world.execute(lives).why == RunState.SUCCEEDED


def _a_delivery() -> Delivery:
    version = a_version()
    return Delivery(
        occurrence=message().occurrence,
        attempt=1,
        target=version.target,
        payload="null",
        deadline=FIRE,
    )


def test_answers_between_failures_keep_it_closed() -> None:
    world = a_world(a_tenant(), schedules=2 * FAILURES_IN_A_ROW)
    failing(world, times=FAILURES_IN_A_ROW - 1)
    world.answers(Failed(detail="HTTP 400", retryable=False))
    world.execute(message(FAILURES_IN_A_ROW))
    failing(world, times=FAILURES_IN_A_ROW - 1, first=FAILURES_IN_A_ROW + 1)
    assert world.breakers.swaps == 0


def test_what_is_no_fault_of_the_target_keeps_it_closed() -> None:
    world = a_world(a_tenant(), schedules=FAILURES_IN_A_ROW)
    world.answers(Failed(detail="no keys", retryable=True, by_target=False))
    for number in range(FAILURES_IN_A_ROW):
        world.execute(message(number))
    assert world.breakers.swaps == 0


def open_world(*, schedules: int = FAILURES_IN_A_ROW + 3) -> World:
    world = a_world(a_tenant(), schedules=schedules)
    failing(world, times=FAILURES_IN_A_ROW)
    return world


def test_others_see_it_within_ten_seconds() -> None:
    world = a_world(a_tenant(), schedules=FAILURES_IN_A_ROW + 3)
    among = Among(world)
    other = among.executor("other")
    assert other(message(FAILURES_IN_A_ROW)).why == RunState.SUCCEEDED
    failing(world, times=FAILURES_IN_A_ROW)
    assert other(message(FAILURES_IN_A_ROW + 1)).why == RunState.SUCCEEDED, "it saw it closed"
    world.clock.advance(SEEN_FOR - SECOND)
    assert not other.admit.breakers.is_open(TENANT, ORIGIN)
    world.clock.advance(SECOND)
    assert other.admit.breakers.is_open(TENANT, ORIGIN)


def test_one_probe_goes_out_after_the_cool_down_and_a_success_closes_it() -> None:
    world = open_world()
    world.clock.advance(COOL_DOWN_FIRST)
    among = Among(world)
    first, second = message(FAILURES_IN_A_ROW), message(FAILURES_IN_A_ROW + 1)
    assert among.run(first, second).why == RunState.SUCCEEDED
    assert [each.why for each in among.settled] == [BY_BREAKER]
    assert world.breakers.read(TENANT).by_target == {}
    assert world.execute(message(FAILURES_IN_A_ROW + 2)).why == RunState.SUCCEEDED


def test_a_probe_that_fails_opens_it_again_for_longer() -> None:
    world = open_world()
    world.clock.advance(COOL_DOWN_FIRST)
    failing(world, times=1, first=FAILURES_IN_A_ROW)
    breaker = world.breakers.read(TENANT).by_target[ORIGIN]
    assert (breaker.opened, breaker.until) == (2, FIRE + 3 * COOL_DOWN_FIRST)


def test_a_probe_that_is_refused_for_its_own_sake_closes_it_too() -> None:
    world = open_world()
    world.clock.advance(COOL_DOWN_FIRST)
    world.answers(Failed(detail="HTTP 400", retryable=False))
    world.execute(message(FAILURES_IN_A_ROW))
    assert world.breakers.read(TENANT).by_target == {}


@pytest.mark.parametrize("retryable", [True, False])
def test_a_probe_that_never_reached_the_target_leaves_the_next_one_to_probe(
    retryable: bool,  # noqa: FBT001
) -> None:
    world = open_world()
    world.clock.advance(10 * SECOND)
    world.answers(Failed(detail="no role", retryable=retryable, by_target=False))
    world.execute(message(FAILURES_IN_A_ROW))
    assert ORIGIN in world.breakers.read(TENANT).by_target, "it was not asked, so it is still open"
    world.answers(Accepted(detail="HTTP 202"))
    assert world.execute(message(FAILURES_IN_A_ROW + 1)).why == "accepted"
    assert world.breakers.read(TENANT).by_target == {}, "taking a run is an answer"


def test_what_was_held_for_long_fails_without_a_call_and_ends_as_dead_in_time() -> None:
    world = open_world()
    last = message(FAILURES_IN_A_ROW)
    world.execute(last)
    called = len(world.targets.deliveries)
    held = world.clock.now() + HELD_MAX
    world.clock.advance_to(held)
    row = world.breakers.rows[TENANT]
    still = replace(row.by_target[ORIGIN], until=held + 60 * SECOND)
    world.breakers.rows[TENANT] = replace(row, by_target={ORIGIN: still})
    came = replace(last_sent(world), held_until=held)
    assert world.execute(came).why == RunState.RETRY_WAIT
    run = world.run_of(last)
    assert (run.attempt, run.reason) == (1, "the target's circuit breaker is open")
    assert len(world.targets.deliveries) == called
    assert last_sent(world).blocked_since is None, "the next attempt is held anew"


def test_an_open_breaker_takes_back_what_a_message_had_of_the_targets_rate() -> None:
    world = open_world()
    tokens = (FIRES, f"target#{ORIGIN}")
    world.execute(replace(message(FAILURES_IN_A_ROW), tokens=tokens))
    assert last_sent(world).tokens == (FIRES,)


def test_a_table_that_is_out_of_reach_parks_and_spends_nothing() -> None:
    world = a_world(limited(fires_per_minute_max=1))
    for name in ("breakers.read", "budgets.read", "budgets.swap"):
        world.at_io = _unreachable(world, name)
        assert world.execute(message()).why == "unavailable", name
        world.rates = Rates()
    assert world.ledger.read(message().occurrence.key) is None


def test_a_budget_that_many_draw_from_is_drawn_in_blocks() -> None:
    world = a_world(limited(fires_per_minute_max=60_000), schedules=40)
    for number in range(40):
        assert world.execute(message(number)).why == RunState.SUCCEEDED
    assert world.budgets.swaps == 6, "1, 2, 4, 8, 16 and 32"
    assert RETRIES not in {key.name for key in world.budgets.rows}
