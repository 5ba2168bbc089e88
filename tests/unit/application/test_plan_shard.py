from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from puntual.application.plan_shard import PAGE_LEFT_AFTER, PlanReport
from puntual.domain.errors import Unavailable
from puntual.domain.fairness import QUANTUM
from puntual.domain.instant import MINUTE
from puntual.domain.lane import Lane
from puntual.domain.page import Page
from puntual.domain.run import Span
from puntual.domain.shard import CLOSE_AFTER, LEASE
from puntual.domain.tenant import Quotas
from tests.builders import HORIZON, NINE, a_page, a_rule, a_shard, a_tenant, a_version
from tests.fakes.hostile import Rates
from tests.unit.application.world import World, dies, io_points

BUCKETS = 21
"""From ten minutes ago to ten minutes ahead, which is where a pass starts and ends."""

FOREVER = NINE + timedelta(days=1)
FIRE = NINE + timedelta(minutes=5)
EVERY_FIVE_MINUTES = replace(a_rule("rate(5 minutes)"), anchor=NINE - timedelta(days=1))


def a_world(*, drained_ago: timedelta = timedelta(minutes=10)) -> World:
    world = World()
    world.shards.ensure(
        replace(
            a_shard(),
            planned_through=NINE - timedelta(minutes=1),
            completed_through=NINE - timedelta(minutes=1),
            drained_through=NINE - drained_ago,
        )
    )
    return world


def with_schedules(world: World, count: int, *, fire: datetime = FIRE) -> World:
    for number in range(count):
        version = a_version(
            tenant=f"tenant-{number % 10}", schedule=f"s{number}", rule=EVERY_FIVE_MINUTES
        )
        world.holds(version)
        world.is_due(version, fire)
    return world


def a_pass(world: World, *, deadline: datetime = FOREVER) -> PlanReport:
    return world.plan_shard(0, deadline=deadline)


def test_a_shard_that_nobody_made_has_nothing_to_plan() -> None:
    world = World()
    assert not a_pass(world).leased
    assert world.calls == ["shards.get"]


def test_a_shard_that_another_planner_holds_is_left_to_it() -> None:
    world = with_schedules(a_world(), 1)
    world.shards.lease(0, owner="other", now=NINE, until=NINE + timedelta(seconds=1))
    assert not a_pass(world).leased
    assert world.calls == ["shards.get", "shards.lease"]


def test_a_lease_that_ran_out_is_taken_over() -> None:
    world = with_schedules(a_world(), 1)
    world.shards.lease(0, owner="other", now=NINE - LEASE, until=NINE)
    assert a_pass(world).leased
    assert FIRE in world.planned_fires()


def test_the_lease_is_given_back_at_the_end() -> None:
    world = a_world()
    a_pass(world)
    assert world.shards.lease(0, owner="next", now=NINE, until=NINE + LEASE)


def test_p1_the_pass_is_announced_before_any_bucket_is_read() -> None:
    world = with_schedules(a_world(), 1)
    announced: list[datetime] = []

    def look(name: str) -> None:
        if name == "agenda.due" and not announced:
            announced.append(world.shards.rows[0].planned_through)

    world.at_io = look
    a_pass(world)
    assert announced == [NINE + HORIZON]


def test_a_bucket_is_read_until_it_is_empty() -> None:
    world = with_schedules(a_world(), 250)
    report = a_pass(world)
    pages = [len(page.planned) for page in world.outbox.pages.values() if page.bucket == FIRE]
    assert sorted(pages) == [50, 100, 100]
    assert report.planned == len(world.planned_ids()) == 500, "9:10 lies within the horizon too"


def test_a_schedule_of_every_minute_is_planned_through_the_horizon_in_one_pass() -> None:
    world = a_world()
    version = a_version(rule=a_rule("rate(1 minute)"))
    world.holds(version)
    world.is_due(version, NINE + MINUTE)
    a_pass(world)
    assert world.planned_fires() == [NINE + n * MINUTE for n in range(1, 11)]
    assert [cursor.scheduled_for for _, cursor in world.agenda.cursors()] == [NINE + 11 * MINUTE]


def test_what_is_due_beyond_the_horizon_is_left_for_a_later_pass() -> None:
    world = with_schedules(a_world(), 1, fire=NINE + timedelta(minutes=15))
    assert a_pass(world).planned == 0
    world.clock.advance(timedelta(minutes=5))
    assert a_pass(world).planned == 1


def test_p4_only_buckets_that_are_empty_and_old_are_closed() -> None:
    world = with_schedules(a_world(), 3)
    report = a_pass(world)
    row = world.shards.rows[0]
    assert row.drained_through == report.drained_through == NINE - CLOSE_AFTER
    assert row.completed_through == report.completed_through == NINE + HORIZON


def test_p4_a_bucket_is_as_old_as_it_was_when_it_was_seen_empty() -> None:
    world = a_world()

    def take_long_over_the_last_bucket(name: str) -> None:
        if name == "agenda.due" and world.calls.count("agenda.due") == BUCKETS:
            world.clock.advance_to(NINE + timedelta(minutes=30))

    world.at_io = take_long_over_the_last_bucket
    a_pass(world)
    assert world.shards.rows[0].drained_through == NINE - CLOSE_AFTER


def test_p4_a_first_cursor_that_comes_into_an_old_bucket_is_planned_while_it_is_open() -> None:
    world = a_world()
    a_pass(world)
    world.clock.advance(timedelta(minutes=1))
    with_schedules(world, 1, fire=NINE - timedelta(minutes=5))
    report = a_pass(world)
    assert world.planned_fires() == [NINE, FIRE, FIRE + timedelta(minutes=5)]
    assert report.spans == 1, "8:55 is missed, since 9:00 is the latest"


def test_p4_after_an_outage_of_hours_the_pass_resumes_from_where_it_was_closed() -> None:
    world = with_schedules(
        a_world(drained_ago=timedelta(hours=7)), 1, fire=NINE - timedelta(hours=6)
    )
    report = a_pass(world)
    assert world.planned_fires() == [NINE, FIRE, FIRE + timedelta(minutes=5)]
    (missed,) = world.rows()
    assert isinstance(missed, Span)
    assert (missed.first, missed.last) == (
        NINE - timedelta(hours=6),
        NINE - timedelta(minutes=5),
    )
    assert report.buckets == 7 * 60 + 11
    assert world.shards.rows[0].drained_through == NINE - CLOSE_AFTER


def test_a_pass_stops_at_its_deadline_and_the_next_goes_on() -> None:
    world = with_schedules(a_world(), 250)

    def take_long(name: str) -> None:
        if name == "outbox.put":
            world.clock.advance(timedelta(seconds=10))

    world.at_io = take_long
    report = a_pass(world, deadline=NINE + timedelta(seconds=30))
    assert report.planned == 200
    assert world.shards.rows[0].completed_through == FIRE, "the bucket of 9:05 is not done"
    assert a_pass(world).planned == 300
    assert len(world.planned_ids()) == 500


def test_p4_a_pass_that_was_stopped_closes_nothing_that_it_has_not_seen_empty() -> None:
    world = with_schedules(
        a_world(drained_ago=timedelta(hours=1)), 1, fire=NINE - timedelta(minutes=30)
    )

    def stop_in_the_bucket(name: str) -> None:
        if name == "agenda.delete":
            world.clock.advance(timedelta(hours=1))

    world.at_io = stop_in_the_bucket
    a_pass(world, deadline=NINE + timedelta(minutes=30))
    assert world.shards.rows[0].drained_through == NINE - timedelta(minutes=30)


def test_a_long_pass_renews_its_lease() -> None:
    world = with_schedules(a_world(), 300)

    def take_long(name: str) -> None:
        if name == "outbox.put":
            world.clock.advance(timedelta(seconds=25))

    world.at_io = take_long
    a_pass(world)
    assert world.calls.count("shards.lease") > 2
    assert len(world.planned_ids()) >= 600


def test_a_pass_that_lost_its_lease_stops_and_leaves_the_rest_to_the_other() -> None:
    world = with_schedules(a_world(), 250)

    def be_taken_over(name: str) -> None:
        if name == "outbox.put" and len(world.outbox.pages) == 1:
            world.clock.advance(LEASE)
            world.shards.lease(0, owner="other", now=world.clock.now(), until=FOREVER)

    world.at_io = be_taken_over
    assert a_pass(world).planned == 100
    row = world.shards.rows[0]
    assert row.lease_owner == "other"
    assert row.completed_through == FIRE


def test_pages_that_the_relay_left_are_relayed_once_they_are_old() -> None:
    world = a_world()
    old = a_page(written_at=NINE - PAGE_LEFT_AFTER - timedelta(milliseconds=1))
    young = a_page(bucket=FIRE, written_at=NINE - PAGE_LEFT_AFTER)
    world.outbox.put(old)
    world.outbox.put(young)
    report = a_pass(world)
    assert report.relayed == 1
    assert list(world.outbox.pages.values()) == [young]
    assert len(world.lanes.sent[Lane.STRICT]) == 1


def test_a_quarantined_cursor_is_reported_and_its_bucket_still_closes() -> None:
    world = with_schedules(a_world(), 2)
    world.is_due(a_version(schedule="lost"), NINE - timedelta(minutes=8))
    report = a_pass(world)
    assert report.planned == 4
    assert report.quarantined == 1
    assert world.shards.rows[0].drained_through == NINE - CLOSE_AFTER


def test_a_table_that_does_not_answer_ends_the_pass() -> None:
    world = with_schedules(a_world(), 1)
    world.rates = Rates(throttled=1.0)
    with pytest.raises(Unavailable):
        a_pass(world)


def two_passes(world: World) -> None:
    a_pass(world)
    next_pass(world)


def next_pass(world: World) -> None:
    world.clock.advance_to(NINE + LEASE + timedelta(seconds=1))
    a_pass(world)


def a_crash_world() -> World:
    world = with_schedules(a_world(drained_ago=timedelta(minutes=6)), 3)
    world.is_due(a_version(schedule="lost"), FIRE)
    world.outbox.put(a_page(written_at=NINE - timedelta(hours=1)))
    return world


@pytest.mark.parametrize("crash", io_points(a_crash_world(), a_pass))
def test_after_a_crash_at_any_io_the_next_pass_ends_in_the_same_state(crash: int) -> None:
    undisturbed, world = a_crash_world(), a_crash_world()
    two_passes(undisturbed)
    dies(world, a_pass, at=crash)
    next_pass(world)
    assert world.planned_ids() == undisturbed.planned_ids()
    assert world.agenda.cursors() == undisturbed.agenda.cursors()
    assert world.agenda.quarantined == undisturbed.agenda.quarantined
    assert world.shards.rows == undisturbed.shards.rows


# Storms: a tenant with more in a bucket than a quantum

A_LATER_FIRE = FIRE + timedelta(minutes=2)
ONCE_A_DAY = replace(a_rule("rate(1 day)"), anchor=FIRE - timedelta(days=2))


def with_a_storm(world: World, *, noisy: int = 400, fire: datetime = FIRE) -> World:
    """Let one tenant have so many at one instant, and others whose names lie around its own."""
    for tenant, count in (("a", 3), ("noisy", noisy), ("noisy-too", 4), ("z", 5)):
        for number in range(count):
            version = a_version(tenant=tenant, schedule=f"s{number:04d}", rule=ONCE_A_DAY)
            world.holds(version)
            world.is_due(version, fire)
    return world


def planned_order(world: World) -> list[str]:
    """Record the tenants in the order in which their pages are written."""
    order: list[str] = []
    put = world.outbox.put

    def recorded(page: Page) -> None:
        order.extend(planned.occurrence.tenant for planned in page.planned)
        put(page)

    world.outbox.put = recorded  # type: ignore[method-assign]  # the fake tells what it was given
    return order


def test_a_storm_is_put_off_after_a_quantum_until_the_others_have_had_their_turn() -> None:
    world = with_a_storm(a_world())
    order = planned_order(world)
    report = a_pass(world)
    assert report.planned == len(world.planned_ids()) == 412
    others = [place for place, tenant in enumerate(order) if tenant != "noisy"]
    assert max(others) < QUANTUM + 12
    assert FIRE not in {cursor.bucket for _, cursor in world.agenda.cursors()}


def test_a_storm_holds_up_no_bucket_behind_its_own() -> None:
    world = with_schedules(with_a_storm(a_world()), 20, fire=FIRE + timedelta(minutes=1))
    order = planned_order(world)
    a_pass(world)
    behind = [place for place, tenant in enumerate(order) if tenant.startswith("tenant-")]
    assert max(behind[:20]) < QUANTUM + 12 + 20


def test_a_storm_that_is_spread_over_a_minute_is_put_off_too() -> None:
    world = a_world()
    for second in range(60):
        for tenant, count in (("noisy", 10), (f"q{second}", 1)):
            for number in range(count):
                rule = replace(ONCE_A_DAY, anchor=ONCE_A_DAY.anchor + timedelta(seconds=second))
                version = a_version(tenant=tenant, schedule=f"s{second}-{number}", rule=rule)
                world.holds(version)
                world.is_due(version, FIRE + timedelta(seconds=second))
    order = planned_order(world)
    assert a_pass(world).planned == 660
    others = [place for place, tenant in enumerate(order) if tenant != "noisy"]
    assert max(others) < QUANTUM + 60
    assert len(world.planned_ids()) == 660


def test_a_tenant_has_planned_by_its_weight_before_the_others_have_all() -> None:
    world = a_world()
    for tenant, weight in (("noisy", 1), ("z-heavy", 4)):
        world.tenants.register(
            replace(a_tenant(tenant), quotas=Quotas(schedules_max=1000, weight=weight))
        )
        for number in range(400):
            version = a_version(tenant=tenant, schedule=f"s{number:04d}", rule=ONCE_A_DAY)
            world.holds(version)
            world.is_due(version, FIRE)
    order = planned_order(world)
    a_pass(world)
    ends = max(place for place, tenant in enumerate(order) if tenant == "z-heavy")
    before = order[:ends].count("noisy")
    assert before == QUANTUM + 2 * QUANTUM, "a turn and the next, in which the heavy one ends"


def test_a_storm_costs_few_reads_more_and_its_pages_are_full() -> None:
    world = with_a_storm(a_world(), noisy=3_000)
    a_pass(world)
    pages = world.calls.count("outbox.put")
    assert pages <= 3_012 / 100 + 4
    assert world.calls.count("agenda.due") <= BUCKETS + pages + 2 * 7


def test_without_a_storm_no_read_is_more() -> None:
    world = with_schedules(a_world(), 250)
    a_pass(world)
    assert world.calls.count("agenda.due") == BUCKETS + 2 * 3
    assert world.calls.count("lanes.send") == 0, "it is the relay that sends"


def test_what_is_beyond_a_turn_is_carried_past_the_relay() -> None:
    world = with_a_storm(a_world())
    report = a_pass(world)
    assert report.carried == len(world.sent()) == 400 - QUANTUM
    assert {message.occurrence.tenant for _, message, _ in world.sent()} == {"noisy"}
    assert not any(page.carried for page in world.outbox.pages.values())
    assert sum(len(page.planned) for page in world.outbox.pages.values()) == 12 + QUANTUM


def test_p7_a_page_that_could_not_be_carried_is_relayed_with_what_is_left() -> None:
    world = with_a_storm(a_world())
    refusals = iter([Unavailable("send"), Unavailable("send")])

    def refuse(name: str) -> None:
        if name == "lanes.send" and (refusal := next(refusals, None)) is not None:
            raise refusal

    world.at_io = refuse
    report = a_pass(world)
    assert report.planned == 412
    assert any(page.carried for page in world.outbox.pages.values())
    world.clock.advance(PAGE_LEFT_AFTER + timedelta(seconds=1))
    a_pass(world)
    assert len(world.planned_ids()) == 412
    assert not world.outbox.pages


def test_p4_a_bucket_in_which_something_was_put_off_is_closed_once_all_of_it_is_planned() -> None:
    fire = NINE - timedelta(minutes=7)
    world = with_a_storm(a_world(), fire=fire)

    def stop_in_the_second_round(name: str) -> None:
        if name == "lanes.send":
            world.clock.advance(timedelta(seconds=40))

    world.at_io = stop_in_the_second_round
    a_pass(world, deadline=NINE + timedelta(seconds=30))
    assert world.shards.rows[0].drained_through == fire
    world.at_io = lambda _: None
    a_pass(world)
    assert world.shards.rows[0].drained_through > fire
    assert fire not in {cursor.bucket for _, cursor in world.agenda.cursors()}


def a_storm_to_crash_in() -> World:
    world = with_a_storm(a_world(drained_ago=timedelta(minutes=6)), noisy=60)
    world.outbox.put(a_page(written_at=NINE - timedelta(hours=1)))
    return world


@pytest.mark.parametrize("crash", io_points(a_storm_to_crash_in(), a_pass))
def test_after_a_crash_in_a_storm_the_next_passes_end_in_the_same_state(crash: int) -> None:
    undisturbed, world = a_storm_to_crash_in(), a_storm_to_crash_in()
    two_passes(undisturbed)
    dies(world, a_pass, at=crash)
    next_pass(world)
    assert world.planned_ids() == undisturbed.planned_ids()
    assert world.agenda.cursors() == undisturbed.agenda.cursors()
    assert world.shards.rows == undisturbed.shards.rows
