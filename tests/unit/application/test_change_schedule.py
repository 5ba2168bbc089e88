"""Edits, pauses, resumes and cancels: each a new version, conditional on the old one."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest

from puntual.application.change_schedule import ChangedSchedule
from puntual.application.show_schedule import ShownSchedule
from puntual.domain.agenda import Cursor, shard_of
from puntual.domain.definition import Definition
from puntual.domain.errors import Conflict, PuntualError
from puntual.domain.expression import InvalidExpression, NeverFires, Rule, UnknownTimeZone
from puntual.domain.policies import Policies
from puntual.domain.rule_warnings import COUNTS_FROM_SAVE
from puntual.domain.run import RunState
from puntual.domain.schedule import (
    ContendedSchedule,
    NotPausable,
    NotResumable,
    Schedule,
    ScheduleEnded,
    ScheduleKey,
    ScheduleState,
    ScheduleVersion,
    StaleVersion,
    UnknownSchedule,
)
from puntual.domain.tenant import ScheduleId, UnknownTenant
from puntual.domain.timeline import Fire
from tests.builders import HORIZON, NINE, TENANT, a_note, a_run, a_span, an_occurrence
from tests.control_plane_world import KEY, LIMITS, World, a_definition
from tests.fakes.hostile import HostileSchedules, Hostility

MINUTE = timedelta(minutes=1)


def changed(
    world: World, expression: str = "rate(5 minutes)", *, seen: int = 1, **fields: object
) -> ShownSchedule:
    definition = a_definition(expression, **fields)
    return world.plane.change_schedule(
        KEY, seen=seen, revise=lambda _: definition, author="bo"
    ).shown


def tried(
    world: World, expression: str = "rate(5 minutes)", *, seen: int = 1, **fields: object
) -> ChangedSchedule:
    definition = a_definition(expression, **fields)
    return world.plane.change_schedule(
        KEY, seen=seen, revise=lambda _: definition, author="bo", dry_run=True
    )


def minutely(world: World) -> None:
    """Create a second past nine, so that the first fire is a minute past."""
    world.clock.advance(timedelta(seconds=1))
    world.created("* * * * *")


def test_an_edit_makes_a_version_that_begins_where_the_old_one_ends(world: World) -> None:
    world.created()
    world.clock.advance(7 * MINUTE)
    shown = changed(world, "0 12 * * *")
    first, second = (world.schedules.version_rows[KEY, n] for n in (1, 2))
    assert first.until == second.effective_from == NINE + 7 * MINUTE
    assert (second.author, shown.head.version, shown.head.min_valid_version) == ("bo", 2, 1)
    assert shown.next_fires[0] == NINE + timedelta(hours=3)


def test_an_edit_in_the_same_millisecond_still_comes_after(world: World) -> None:
    world.created()
    shown = changed(world, "0 12 * * *")
    assert shown.version.effective_from == NINE + timedelta(milliseconds=1)


def test_an_edit_plans_inline_what_is_near(world: World) -> None:
    world.created("0 12 * * *")
    world.clock.advance(MINUTE)
    changed(world, "at(2026-11-30T09:05:00)")
    ((planned),) = world.planned_occurrences()
    assert (planned.version, planned.scheduled_for) == (2, NINE + 5 * MINUTE)


def test_a_rate_keeps_its_pace_through_edits_of_other_things(world: World) -> None:
    world.created("rate(5 minutes)")
    world.clock.advance(7 * MINUTE)
    assert changed(world, payload=1).version.rule.anchor == NINE
    ends = NINE + timedelta(days=1)
    assert changed(world, seen=2, end_at=ends).version.rule.anchor == NINE
    assert changed(world, "rate(6 minutes)", seen=3).version.rule.anchor == NINE + 7 * MINUTE


def test_an_edit_of_something_else_is_not_refused_for_a_fire_that_has_passed(
    world: World,
) -> None:
    world.created("at(2026-11-30T09:05:00)")
    world.clock.advance(7 * MINUTE)
    shown = changed(world, "at(2026-11-30T09:05:00)", payload="new")
    assert shown.head.state is ScheduleState.COMPLETED


def test_an_edit_says_which_fires_appear_vanish_and_move(world: World) -> None:
    """From where the new version begins: the fire at half past nine has been the old one's."""
    world.created("30 9 * * *")
    world.clock.advance(30 * MINUTE)
    definition = a_definition("0 10 * * MON-FRI")
    changes = world.plane.change_schedule(
        KEY, seen=1, revise=lambda _: definition, author="bo"
    ).changes
    day = timedelta(days=1)
    assert (changes.start, changes.through) == (NINE + 30 * MINUTE, NINE + 30 * MINUTE + 90 * day)
    assert changes.move[0].before == NINE + 30 * MINUTE
    assert changes.move[0].after == NINE + 60 * MINUTE
    assert changes.vanish[0] == NINE + 30 * MINUTE + 5 * day
    assert changes.appear == ()


def test_an_edit_of_anything_but_the_rule_changes_no_fire(world: World) -> None:
    world.created("* * * * *")
    changed = tried(world, "* * * * *", payload=1)
    assert not changed.rule_changed
    assert (changed.changes.compared, changed.changes.complete) == (0, True)
    assert tried(world, "cron(* * * * ? *)", payload=1).rule_changed


def test_a_paused_schedules_changes_are_those_it_would_have_if_resumed(world: World) -> None:
    world.created("0 12 * * *")
    world.plane.pause_schedule(KEY, author="bo")
    changed = tried(world, "0 13 * * *", seen=2)
    assert changed.shown.head.state is ScheduleState.PAUSED
    assert changed.shown.next_fires == ()
    assert len(changed.changes.move) == 90


def test_a_completed_schedule_has_no_fires_to_lose(world: World) -> None:
    world.created("at(2026-11-30T09:05:00)")
    world.clock.advance(7 * MINUTE)
    changed(world, "at(2026-11-30T09:05:00)", payload="new")
    changes = tried(world, "0 10 * * *", seen=2).changes
    assert (changes.vanish, changes.move, changes.unchanged) == ((), (), 0)
    assert len(changes.appear) == 90


def test_a_dry_run_warns_of_a_pace_that_counts_from_the_save(world: World) -> None:
    world.created("rate(5 minutes)")
    world.clock.advance(MINUTE)
    assert tried(world, "rate(6 minutes)").warnings == (COUNTS_FROM_SAVE,)
    assert tried(world, "rate(6 minutes)", start_at=NINE).warnings == ()
    assert tried(world, "rate(5 minutes)", payload=1).warnings == ()
    definition = a_definition("rate(6 minutes)")
    saved = world.plane.change_schedule(KEY, seen=1, revise=lambda _: definition, author="bo")
    assert saved.warnings == ()


def test_a_dry_run_writes_nothing_and_says_what_the_edit_then_does(world: World) -> None:
    world.created("0 12 * * *")
    world.clock.advance(MINUTE)
    before = world.writes()
    soon = "at(2026-11-30T09:05:00)"
    would = tried(world, soon)
    assert world.writes() == before
    assert would.shown.head.version == 2
    assert would.shown.next_fires == (NINE + 5 * MINUTE,)
    assert changed(world, soon) == would.shown
    assert world.planned() == [NINE + 5 * MINUTE]


def test_a_dry_run_makes_not_even_a_shard(world: World) -> None:
    """E10 is for what puts a cursor."""
    world.created("0 12 * * *")
    world.shards.rows.clear()
    tried(world, "0 13 * * *")
    assert world.shards.all() == ()


def test_a_dry_run_is_refused_what_an_edit_is(world: World) -> None:
    refused: list[tuple[type[PuntualError], Callable[[], object]]] = [
        (StaleVersion, lambda: tried(world, seen=2)),
        (InvalidExpression, lambda: tried(world, "0 9 * *")),
        (NeverFires, lambda: tried(world, "at(2026-11-30T08:00:00)")),
    ]
    with pytest.raises(UnknownSchedule):
        tried(world)
    world.created()
    for error, act in refused:
        with pytest.raises(error):
            act()
    world.plane.cancel_schedule(KEY, author="bo")
    with pytest.raises(ScheduleEnded):
        tried(world, seen=2)
    world.tenants.rows.clear()
    with pytest.raises(UnknownTenant):
        tried(world, seen=2)


def test_a_paused_schedule_stays_paused_through_an_edit(world: World) -> None:
    world.created()
    world.plane.pause_schedule(KEY, author="bo")
    planned = world.planned()
    shown = changed(world, "* * * * *", seen=2)
    assert shown.head.state is ScheduleState.PAUSED
    assert shown.next_fires == ()
    assert world.planned() == planned


@pytest.mark.parametrize("seen", [1, 3])
def test_a_change_of_another_version_than_stands_is_refused(world: World, seen: int) -> None:
    world.created()
    changed(world, payload=1)
    before = world.writes()
    for act in acts(world, seen):
        with pytest.raises(StaleVersion) as caught:
            act()
        assert caught.value.current == 2
    assert world.writes() == before


def acts(world: World, seen: int) -> list[Callable[[], object]]:
    return [
        lambda: changed(world, payload=2, seen=seen),
        lambda: world.plane.pause_schedule(KEY, author="bo", seen=seen),
        lambda: world.plane.resume_schedule(KEY, author="bo", seen=seen),
        lambda: world.plane.cancel_schedule(KEY, author="bo", seen=seen),
    ]


def test_an_unknown_schedule_cannot_be_changed(world: World) -> None:
    for act in acts(world, 1):
        with pytest.raises(UnknownSchedule):
            act()


def test_a_pause_voids_what_came_before_and_puts_no_cursor(world: World) -> None:
    world.created()
    cursors = world.agenda.cursors()
    world.clock.advance(MINUTE)
    shown = world.plane.pause_schedule(KEY, author="bo")
    assert (shown.head.state, shown.head.min_valid_version) == (ScheduleState.PAUSED, 2)
    assert world.agenda.cursors() == cursors


def test_pausing_a_paused_and_resuming_an_active_schedule_change_nothing(world: World) -> None:
    world.created()
    assert world.plane.resume_schedule(KEY, author="bo").head.version == 1
    world.plane.pause_schedule(KEY, author="bo")
    before = world.writes()
    assert world.plane.pause_schedule(KEY, author="bo").head.version == 2
    assert world.writes() == before


def test_a_resume_plans_from_now_on(world: World) -> None:
    minutely(world)
    world.plane.pause_schedule(KEY, author="bo")
    world.clock.advance(timedelta(hours=1))
    for shard in world.shards.all():
        world.shards.announce(shard, world.clock.now() + HORIZON)
    shown = world.plane.resume_schedule(KEY, author="bo")
    assert shown.next_fires[0] == NINE + timedelta(minutes=61)
    times = {o.scheduled_for for o in world.planned_occurrences() if o.version == 3}
    assert times == {NINE + timedelta(hours=1) + n * MINUTE for n in range(1, 11)}


def test_a_resume_carries_the_zone_release_that_it_computes_with(world: World) -> None:
    world.created()
    world.plane.pause_schedule(KEY, author="bo")
    paused = world.schedules.version_rows[KEY, 2]
    world.schedules.version_rows[KEY, 2] = replace(paused, tzdata="2025.3")
    assert world.plane.resume_schedule(KEY, author="bo").version.tzdata == LIMITS.tzdata


def test_a_resume_with_no_fire_left_completes(world: World) -> None:
    world.created("at(2026-11-30T09:05:00)")
    world.plane.pause_schedule(KEY, author="bo")
    world.clock.advance(timedelta(hours=1))
    shown = world.plane.resume_schedule(KEY, author="bo")
    assert shown.head.state is ScheduleState.COMPLETED


def test_an_ended_schedule_can_neither_be_paused_nor_resumed_nor_edited(world: World) -> None:
    world.created()
    world.plane.cancel_schedule(KEY, author="bo")
    refused: list[tuple[type[Conflict], Callable[[], object]]] = [
        (NotPausable, lambda: world.plane.pause_schedule(KEY, author="bo")),
        (NotResumable, lambda: world.plane.resume_schedule(KEY, author="bo")),
        (ScheduleEnded, lambda: changed(world, seen=2)),
    ]
    for error, act in refused:
        with pytest.raises(error):
            act()


@dataclass(frozen=True, slots=True)
class _Rival(HostileSchedules):
    """Another writer, who comes first for as long as there is something left to do."""

    left: list[Callable[[], object]]

    def advance(
        self, head: Schedule, version: ScheduleVersion, cursor: Cursor | None, *, shard: int
    ) -> bool:
        if self.left:
            self.left.pop(0)()
        return self.inner.advance(head, version, cursor, shard=shard)


def a_rival(world: World, times: int) -> _Rival:
    def edit(seen: int) -> Callable[[], object]:
        return lambda: changed(world, seen=seen, payload=seen)

    quiet = Hostility(source=random.Random(1))
    return _Rival(world.schedules, quiet, [edit(seen) for seen in range(1, times + 1)])


def test_a_pause_that_loses_a_race_decides_again(world: World) -> None:
    world.created()
    shown = world.plane_on(a_rival(world, 2)).pause_schedule(KEY, author="bo")
    assert (shown.head.version, shown.head.state) == (4, ScheduleState.PAUSED)


def test_a_change_that_loses_a_race_is_stale(world: World) -> None:
    world.created()
    plane = world.plane_on(a_rival(world, 1))

    def revise(_: ScheduleVersion) -> Definition:
        return a_definition("rate(1 hour)")

    with pytest.raises(StaleVersion):
        plane.change_schedule(KEY, seen=1, revise=revise, author="bo")


def test_a_pause_gives_up_after_losing_again_and_again(world: World) -> None:
    world.created()
    with pytest.raises(ContendedSchedule):
        world.plane_on(a_rival(world, 5)).pause_schedule(KEY, author="bo")


def test_a_cancel_gives_the_quota_back_once(world: World) -> None:
    world.created()
    world.plane.cancel_schedule(KEY, author="bo")
    assert world.plane.cancel_schedule(KEY, author="bo").shown.head.version == 2
    assert world.tenants.rows[TENANT].schedules == 0


def test_a_cancel_tells_what_runs_what_is_finished_and_what_is_already_out(
    world: World,
) -> None:
    minutely(world)
    at = [NINE + n * MINUTE for n in range(12)]
    world.put(
        a_run(an_occurrence(scheduled_for=at[1]), state=RunState.SUCCEEDED),
        a_run(an_occurrence(scheduled_for=at[2]), state=RunState.DEAD),
        a_run(an_occurrence(scheduled_for=at[3]), state=RunState.RETRY_WAIT),
        a_run(an_occurrence(scheduled_for=at[4])),
    )
    world.clock.advance(4 * MINUTE + timedelta(seconds=5))
    report = world.plane.cancel_schedule(KEY, author="bo")
    assert [run.occurrence.scheduled_for for run in report.running] == [at[4], at[3]]
    assert [run.occurrence.scheduled_for for run in report.finished] == [at[2], at[1]]
    assert [fire.occurrence.scheduled_for for fire in report.already_out] == at[5:11]
    assert all(isinstance(out, Fire) and out.voided for out in report.already_out)
    assert report.complete


def test_what_is_already_out_leaves_what_rows_tell_of(world: World) -> None:
    minutely(world)
    world.clock.advance(2 * MINUTE + timedelta(seconds=5))
    world.plane.cancel_schedule(KEY, author="bo")
    world.put(
        a_span(NINE + MINUTE, NINE + 2 * MINUTE, state=RunState.CANCELED),
        a_note(an_occurrence(scheduled_for=NINE + 3 * MINUTE)),
    )
    report = world.plane.cancel_schedule(KEY, author="bo")
    times = [fire.occurrence.scheduled_for for fire in report.already_out]
    assert times == [NINE + n * MINUTE for n in range(4, 11)]


def test_a_canceled_pause_reports_what_the_pause_left_out(world: World) -> None:
    minutely(world)
    world.clock.advance(MINUTE + timedelta(seconds=5))
    world.plane.pause_schedule(KEY, author="bo")
    report = world.plane.cancel_schedule(KEY, author="bo")
    times = [fire.occurrence.scheduled_for for fire in report.already_out]
    assert times == [NINE + n * MINUTE for n in range(1, 11)]


def test_a_later_cancel_leaves_out_what_nobody_had_planned_before_the_pause(world: World) -> None:
    minutely(world)
    world.clock.advance(MINUTE + timedelta(seconds=5))
    world.plane.pause_schedule(KEY, author="bo")
    world.clock.advance(30 * MINUTE)
    world.shards.announce(shard_of(KEY, 4), world.clock.now() + HORIZON)
    report = world.plane.cancel_schedule(KEY, author="bo")
    times = [fire.occurrence.scheduled_for for fire in report.already_out]
    assert times == [NINE + n * MINUTE for n in range(1, 12)]


def test_a_cancel_says_that_it_does_not_show_all(world: World) -> None:
    minutely(world)
    for n in range(1, 210):
        world.put(
            a_run(
                an_occurrence(scheduled_for=NINE + n * MINUTE),
                state=RunState.SUCCEEDED,
                write_id=f"w{n}",
            )
        )
    report = world.plane.cancel_schedule(KEY, author="bo")
    assert not report.complete
    assert len(report.finished) == 5


def test_a_cancel_does_not_forget_a_run_whose_lease_has_run_out(world: World) -> None:
    minutely(world)
    world.put(a_run(an_occurrence(scheduled_for=NINE + MINUTE)))
    world.clock.advance(30 * MINUTE)
    report = world.plane.cancel_schedule(KEY, author="bo")
    assert [run.occurrence.scheduled_for for run in report.running] == [NINE + MINUTE]


@pytest.mark.parametrize("edits", [19, 20, 23])
def test_a_cancel_says_that_it_has_not_looked_at_all_versions(world: World, edits: int) -> None:
    minutely(world)
    for seen in range(1, edits + 1):
        world.clock.advance(timedelta(seconds=5))
        changed(world, seen=seen, payload=seen)
    assert world.plane.cancel_schedule(KEY, author="bo").complete is (edits == 19)


def test_versions_that_ended_long_ago_need_no_look(world: World) -> None:
    minutely(world)
    for seen in range(1, 25):
        world.clock.advance(timedelta(hours=2))
        changed(world, seen=seen, payload=seen)
    assert world.plane.cancel_schedule(KEY, author="bo").complete


DAILY = Policies(window=timedelta(hours=24))


def daily_at_nine(world: World) -> datetime:
    """Create a daily schedule of a day's window; gives when its fire at nine may run."""
    world.created("0 9 * * *", policies=DAILY)
    available_at = world.schedules.version_rows[KEY, 1].fires.available_at(NINE)
    assert available_at > NINE + timedelta(hours=2), "else there is no window to be in"
    return available_at


@pytest.mark.parametrize(
    ("ahead", "is_out"),
    [
        (HORIZON + MINUTE, False),
        (HORIZON, True),
        (timedelta(0), True),
        (-59 * MINUTE, True),
        (-60 * MINUTE, False),
    ],
)
def test_what_is_already_out_goes_by_when_it_may_run(
    world: World,
    ahead: timedelta,
    is_out: bool,  # noqa: FBT001
) -> None:
    available_at = daily_at_nine(world)
    world.clock.advance(available_at - ahead - NINE)
    world.shards.announce(shard_of(KEY, 4), world.clock.now() + HORIZON)
    out = world.plane.cancel_schedule(KEY, author="bo").already_out
    assert [(fire.occurrence.scheduled_for, fire.available_at) for fire in out] == [
        (NINE, available_at)
    ] * is_out


def test_what_is_already_out_may_be_of_a_version_that_an_edit_ended_hours_ago(
    world: World,
) -> None:
    available_at = daily_at_nine(world)
    world.clock.advance(timedelta(hours=1))
    changed(world, "0 12 1 1 *")
    world.clock.advance(available_at - world.clock.now())
    world.shards.announce(shard_of(KEY, 4), world.clock.now() + HORIZON)
    (fire,) = world.plane.cancel_schedule(KEY, author="bo").already_out
    assert (fire.occurrence.version, fire.occurrence.scheduled_for) == (1, NINE)


def test_show_gives_the_version_that_stands(world: World) -> None:
    world.created()
    changed(world, payload=2)
    assert world.plane.show_schedule(KEY).version.payload == "2"
    with pytest.raises(UnknownSchedule):
        world.plane.show_schedule(ScheduleKey(tenant=TENANT, schedule=ScheduleId("other")))


@pytest.mark.parametrize(
    "lost",
    [
        lambda rule: replace(rule, time_zone="Mars/Phobos"),
        lambda rule: replace(rule, expression="junk"),
    ],
)
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_rule_that_can_fire_no_more_is_replaced_and_the_answer_tells_of_the_new_fires(
    world: World,
    lost: Callable[[Rule], Rule],
    dry_run: bool,  # noqa: FBT001 a parameter of the test
) -> None:
    """Its zone was dropped from the zone data, for instance."""
    world.created("0 12 * * *")
    row, head = world.schedules.version_rows[KEY, 1], world.schedules.head_rows[KEY]
    rule = lost(row.rule)
    world.schedules.version_rows[KEY, 1] = replace(row, rule=rule)
    world.schedules.head_rows[KEY] = replace(head, rule=rule)
    definition = a_definition("0 12 * * *", end_at=NINE + timedelta(days=2))
    made = world.plane.change_schedule(
        KEY, seen=1, revise=lambda _: definition, author="bo", dry_run=dry_run
    )
    changes = made.changes
    assert made.rule_changed
    assert changes.appear == tuple(NINE + timedelta(days=n, hours=3) for n in (0, 1))
    assert (changes.vanish, changes.move, changes.unchanged) == ((), (), 0)


def test_a_zone_that_is_dropped_is_refused_at_a_resume_before_anything_is_written(
    world: World,
) -> None:
    world.created("0 12 * * *")
    world.plane.pause_schedule(KEY, author="bo")
    row = world.schedules.version_rows[KEY, 2]
    rule = replace(row.rule, time_zone="Mars/Phobos")
    world.schedules.version_rows[KEY, 2] = replace(row, rule=rule)
    with pytest.raises(UnknownTimeZone, match="Mars/Phobos"):
        world.plane.resume_schedule(KEY, author="bo")
    assert world.schedules.head_rows[KEY].version == 2
