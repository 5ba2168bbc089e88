from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import ClassVar

import pytest

from puntual.application.plan_cursors import MEMO_SIZE_MAX, NextFires, Work
from puntual.domain.errors import Unavailable
from puntual.domain.expression import Rule
from puntual.domain.policies import Misfire, MisfirePolicy, Policies
from puntual.domain.run import RunState, Span
from puntual.domain.schedule import ScheduleState
from tests.builders import NINE, a_cursor, a_rule, a_version
from tests.fakes.hostile import Rates
from tests.unit.application.world import World, dies, io_points

FIRE = NINE + timedelta(minutes=5)
LATE = FIRE + timedelta(minutes=2)

PLAIN = a_version(schedule="plain")
SKIPPING = a_version(
    schedule="skipping",
    rule=replace(a_rule(), end_at=FIRE),
    policies=Policies(misfire=MisfirePolicy(policy=Misfire.SKIP)),
)
VOIDED = a_version(schedule="voided", until=FIRE + timedelta(seconds=1))
PAUSED = a_version(
    schedule="voided", version=2, state=ScheduleState.PAUSED, effective_from=VOIDED.until
)
LOST = a_version(schedule="lost")


class CountingRule(Rule):
    asked: ClassVar[list[datetime]] = []

    def next_fire(self, after: datetime) -> datetime | None:
        CountingRule.asked.append(after)
        return super().next_fire(after)


def a_world() -> World:
    """Give a bucket with a cursor of every sort: planned, missed and last, voided, broken."""
    world = World()
    world.clock.advance_to(LATE)
    world.holds(PLAIN)
    world.holds(SKIPPING)
    world.holds(VOIDED, is_head=False)
    world.holds(PAUSED, min_valid_version=2)
    for version in (PLAIN, SKIPPING, VOIDED, LOST):
        world.is_due(version, FIRE)
    return world


def plan_bucket(world: World) -> Work | None:
    """Plan the bucket until it is empty, as the planner does."""
    work = None
    while cursors := world.agenda.due(0, FIRE, limit=100):
        work = world.plan_cursors.plan(0, cursors)
    return work


def end_state(world: World) -> tuple[object, ...]:
    return (
        world.planned_ids(),
        world.agenda.cursors(),
        world.agenda.quarantined,
        world.ledger.rows,
        world.schedules.head_rows,
    )


def test_e8_spans_are_written_first_then_the_page_then_next_cursors_and_deletion_comes_last() -> (
    None
):
    world = a_world()
    plan_bucket(world)
    assert world.calls == [
        "schedules.heads",
        "schedules.version",
        "ledger.put_spans",
        "outbox.put",
        "agenda.put",
        "schedules.complete",
        "agenda.quarantine",
        "agenda.delete",
    ]


def test_what_each_cursor_asks_for_is_written() -> None:
    world = a_world()
    plan_bucket(world)
    assert world.planned_fires() == [FIRE]
    assert [cursor.scheduled_for for _, cursor in world.agenda.cursors()] == [
        FIRE + timedelta(minutes=5)
    ]
    spans = {row.schedule: row.state for row in world.rows() if isinstance(row, Span)}
    assert spans == {"skipping": RunState.MISSED, "voided": RunState.CANCELED}
    assert world.head(SKIPPING).state is ScheduleState.COMPLETED
    assert world.head(PLAIN).state is ScheduleState.ACTIVE


@pytest.mark.parametrize("crash", io_points(a_world(), plan_bucket))
def test_p2_after_a_crash_at_any_io_running_again_ends_in_the_same_state(crash: int) -> None:
    undisturbed = a_world()
    plan_bucket(undisturbed)
    world = a_world()
    dies(world, plan_bucket, at=crash)
    plan_bucket(world)
    assert end_state(world) == end_state(undisturbed)


@pytest.mark.parametrize("seed", range(20))
def test_p9_after_half_done_batches_running_again_ends_in_the_same_state(seed: int) -> None:
    undisturbed = a_world()
    plan_bucket(undisturbed)
    world = a_world()
    world.hostility.source.seed(seed)
    world.rates = Rates(partial=0.6)
    for _ in range(10):
        with suppress(Unavailable):
            plan_bucket(world)
    world.rates = Rates()
    plan_bucket(world)
    assert end_state(world) == end_state(undisturbed)


@pytest.mark.parametrize("rates", [Rates(throttled=1.0), Rates(timed_out=1.0)])
def test_a_table_that_does_not_answer_is_the_callers_to_hear(rates: Rates) -> None:
    world = a_world()
    world.rates = rates
    with pytest.raises(Unavailable):
        plan_bucket(world)
    assert world.agenda.quarantined == {}
    assert len(world.agenda.due(0, FIRE, limit=100)) == 4


def test_a_cursor_that_raises_is_quarantined_and_stops_nobody() -> None:
    world = World()
    broken = a_version(schedule="broken", rule=a_rule("no rule at all"))
    fine = [a_version(schedule=f"fine-{number}") for number in range(3)]
    for version in (*fine[:2], broken, *fine[2:]):
        world.holds(version)
        world.is_due(version, FIRE)
    work = plan_bucket(world)
    assert work is not None
    assert len(work.planned) == 3
    [(cursor, reason)] = world.agenda.quarantined.values()
    assert cursor == a_cursor(FIRE, version=broken)
    assert "InvalidExpression" in reason
    assert work.quarantined == [(cursor, reason)]
    assert world.agenda.due(0, FIRE, limit=100) == ()


def test_a_cursor_whose_own_version_is_gone_is_quarantined() -> None:
    world = World()
    world.holds(a_version(version=2))
    world.is_due(a_version(version=1), FIRE)
    plan_bucket(world)
    assert len(world.agenda.quarantined) == 1


def test_p3_a_version_is_read_only_for_cursors_that_the_head_has_moved_past() -> None:
    world = World()
    world.holds(PLAIN)
    world.is_due(PLAIN, FIRE)
    plan_bucket(world)
    assert "schedules.version" not in world.calls


def test_heads_are_read_once_per_schedule() -> None:
    world = World()
    ended = a_version(until=FIRE + timedelta(minutes=1))
    world.holds(ended, is_head=False)
    world.holds(a_version(version=2, effective_from=ended.until))
    cursors = [world.is_due(ended, FIRE), world.is_due(a_version(version=2), FIRE)]
    work = world.plan_cursors.plan(0, cursors)  # the fake asserts that keys are distinct
    assert len(work.planned) == 2


def test_a_page_of_nothing_is_not_written() -> None:
    world = World()
    world.holds(VOIDED, is_head=False)
    world.holds(PAUSED, min_valid_version=2)
    world.is_due(VOIDED, FIRE)
    plan_bucket(world)
    assert {"outbox.put", "agenda.put"} & set(world.calls) == set()


def test_up_to_an_instant_those_that_follow_are_planned_too() -> None:
    world = World()
    world.holds(PLAIN)
    cursor = world.is_due(PLAIN, FIRE)
    through = NINE + timedelta(minutes=20)
    work = world.plan_cursors.plan(0, [cursor], through=through)
    assert world.planned_fires() == [NINE + timedelta(minutes=5 * n) for n in (1, 2, 3, 4)]
    assert [following.scheduled_for for following in work.next_cursors] == [
        NINE + timedelta(minutes=25)
    ]
    assert [cursor for _, cursor in world.agenda.cursors()] == work.next_cursors


def test_what_follows_is_planned_a_page_at_a_time() -> None:
    world = World()
    every_minute = a_version(rule=a_rule("rate(1 minute)"))
    world.holds(every_minute)
    cursor = world.is_due(every_minute, NINE + timedelta(minutes=1))
    work = world.plan_cursors.plan(0, [cursor], through=NINE + timedelta(days=1))
    assert len(work.planned) == 100
    assert work.next_cursors[0].scheduled_for == NINE + timedelta(minutes=101)


def test_a_next_fire_is_computed_once_per_rule_and_instant_however_many_share_it() -> None:
    world = World()
    rule = CountingRule(expression="rate(5 minutes)", time_zone="UTC", anchor=NINE)
    for number in range(10):
        version = a_version(schedule=f"s{number}", rule=rule)
        world.holds(version)
        world.is_due(version, FIRE)
    CountingRule.asked.clear()
    plan_bucket(world)
    assert CountingRule.asked == [FIRE]


def test_the_memo_knows_that_a_rule_has_ended() -> None:
    rule = CountingRule(expression="rate(5 minutes)", time_zone="UTC", anchor=NINE, end_at=NINE)
    next_fires = NextFires()
    CountingRule.asked.clear()
    assert [next_fires(rule, NINE) for _ in range(3)] == [None] * 3
    assert CountingRule.asked == [NINE]


def test_the_memo_is_bounded() -> None:
    next_fires = NextFires()
    next_fires._known = {
        (a_rule(), NINE + timedelta(seconds=n)): NINE for n in range(MEMO_SIZE_MAX)
    }
    assert next_fires(a_rule(), NINE - timedelta(days=1)) is not None
    assert len(next_fires._known) == 1
