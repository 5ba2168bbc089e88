"""Planning anew what another release of the zone data moves."""

from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from puntual.application.ports import HeadPage, UnreadableHead
from puntual.application.replan_zones import HEADS_PER_PAGE, Refused, Replanned, ReplanReport
from puntual.domain.errors import Unavailable
from puntual.domain.expression import Rule
from puntual.domain.fire_differences import FireDifferences, fire_differences
from puntual.domain.schedule import Schedule, ScheduleKey, ScheduleState, ScheduleVersion
from puntual.domain.zone_releases import (
    FORMER_PLANNERS_GONE_AFTER,
    FormerPlannersAtWork,
    OvertakenRun,
    ReleasesInUse,
)
from puntual.domain.zone_rules import ClockDifference, ZoneRules
from tests.builders import NINE, a_rule, a_schedule, a_shard, a_version
from tests.fakes.hostile import Rates
from tests.fakes.in_memory_schedules import InMemorySchedules
from tests.unit.application.world import World, dies, io_points
from tests.zone_data import (
    DEPLOYED,
    FORMER,
    NO_SUMMER_TIME,
    NO_WINTER_TIME,
    rules_with,
    rules_with_berlin,
)

SINCE = NINE - timedelta(hours=2)
IN_USE = ReleasesInUse(current=DEPLOYED, since=SINCE, former=frozenset({FORMER}))
CAUGHT_UP = replace(IN_USE, former=frozenset())
LATER = NINE + timedelta(days=1)
OLD = NINE - timedelta(days=30)

WITHOUT_SUMMER_TIME = rules_with_berlin(NO_SUMMER_TIME)
WITHOUT_WINTER_TIME = rules_with_berlin(NO_WINTER_TIME)


def a_daily(
    name: str = "daily",
    *,
    expression: str = "0 9 * * *",
    time_zone: str = "Europe/Berlin",
    tzdata: str = FORMER,
    effective_from: datetime = OLD,
    state: ScheduleState = ScheduleState.ACTIVE,
) -> ScheduleVersion:
    version = a_version(
        schedule=name,
        rule=a_rule(expression, time_zone=time_zone),
        effective_from=effective_from,
        state=state,
    )
    return replace(version, tzdata=tzdata)


def upgraded(*versions: ScheduleVersion, former: ZoneRules = WITHOUT_SUMMER_TIME) -> World:
    """Give a world that runs new zone data, and has schedules from the time of the former."""
    world = World()
    world.shards.ensure(a_shard())
    world.zone_releases.row = IN_USE
    world.zone_releases.keep(former)
    for version in versions:
        world.holds(version)
    return world


def replan(
    world: World, *, token: str | None = None, dry_run: bool = False, deadline: datetime = LATER
) -> ReplanReport:
    return world.replan_zones(token=token, dry_run=dry_run, deadline=deadline)


def to_the_end(world: World, *, dry_run: bool = False, deadline: datetime = LATER) -> ReplanReport:
    """Do all slices, and give the last one's report with the changes of all."""
    changed: list[Replanned] = []
    refused: list[Refused] = []
    report = replan(world, dry_run=dry_run, deadline=deadline)
    while report.token is not None:
        changed += report.replanned
        refused += report.refused
        report = replan(world, token=report.token, dry_run=dry_run, deadline=deadline)
    report.replanned[:0] = changed
    report.refused[:0] = refused
    return report


def versions_of(world: World, version: ScheduleVersion) -> list[ScheduleVersion]:
    rows = world.schedules.version_rows
    return [row for (key, _), row in sorted(rows.items(), key=lambda item: item[0][1])
            if key == version.key]  # fmt: skip


def test_a_schedule_whose_fires_move_gets_a_version_and_the_alarm_ends() -> None:
    daily = a_daily()
    world = upgraded(daily)
    report = replan(world)
    first, second = versions_of(world, daily)
    assert first.until == second.effective_from == NINE
    assert (second.tzdata, second.author) == (DEPLOYED, f"tzdata {DEPLOYED}")
    assert (second.rule, second.target, second.payload) == (daily.rule, daily.target, daily.payload)
    assert world.head(daily).version == 2
    assert report.former == (FORMER,)
    assert "Europe/Berlin" in report.zones
    assert report.looked_at == 1
    [changed] = report.replanned
    assert changed.version == second
    assert changed.differences.first_vanished == datetime(2027, 3, 28, 8, tzinfo=UTC)
    assert report.caught_up
    assert world.zone_releases.row == CAUGHT_UP
    assert not world.note_zone_release().is_behind(DEPLOYED)


def test_a_next_fire_that_moves_is_planned_at_its_new_time_and_no_more_at_its_old() -> None:
    """At two in the afternoon by the rules of today, an hour sooner by the former ones."""
    daily = a_daily(expression="0 14 * * *")
    world = upgraded(daily, former=WITHOUT_WINTER_TIME)
    old = world.is_due(daily, NINE + timedelta(hours=3))
    replan(world)
    [new] = [cursor for _, cursor in world.agenda.cursors() if cursor != old]
    assert (new.version, new.scheduled_for) == (2, NINE + timedelta(hours=4))
    world.clock.advance(timedelta(hours=4))
    world.plan_shard(0, deadline=LATER)
    assert world.planned_fires() == [NINE + timedelta(hours=4)]


def test_p1_a_fire_that_planners_have_passed_already_is_planned_inline() -> None:
    daily = a_daily(expression="5 10 * * *")
    world = upgraded(daily, former=WITHOUT_WINTER_TIME)
    replan(world)
    assert world.planned_fires() == [NINE + timedelta(minutes=5)]


@pytest.mark.parametrize(
    "untouched",
    [
        a_daily(time_zone="Europe/Madrid"),
        a_daily(time_zone="UTC"),
        a_daily(expression="rate(1 day)"),
        a_daily(expression="*/15 * * * *"),
        a_daily(expression="0 9 * 1 *"),
        a_daily(expression="at(2027-01-01T09:00:00)"),
        a_daily(state=ScheduleState.PAUSED),
        a_daily(state=ScheduleState.CANCELED),
        a_daily(state=ScheduleState.COMPLETED),
        a_daily(tzdata=DEPLOYED, effective_from=SINCE + FORMER_PLANNERS_GONE_AFTER),
    ],
    ids=lambda version: f"{version.rule.expression} {version.state}",
)
def test_what_does_not_move_is_left_as_it_is(untouched: ScheduleVersion) -> None:
    world = upgraded(untouched)
    report = replan(world)
    assert report.replanned == []
    assert versions_of(world, untouched) == [untouched]
    assert report.caught_up


def test_a_schedule_that_is_spelt_as_an_alias_keeps_its_spelling() -> None:
    daily = a_daily(time_zone="Europe/Copenhagen")
    world = upgraded(daily)
    replan(world)
    assert world.head(daily).version == 2
    assert world.head(daily).rule.time_zone == "Europe/Copenhagen"


def test_what_an_old_planner_may_have_moved_on_is_looked_at_whatever_it_carries() -> None:
    """A new release was deployed for a while, then the old one again."""
    created_before = a_daily(tzdata=DEPLOYED)
    world = upgraded(created_before)
    assert len(replan(world).replanned) == 1


@pytest.mark.parametrize("expression", ["at(2027-03-28T02:30:00)", "cron(30 2 28 3 ? 2027)"])
def test_a_last_fire_that_the_clocks_now_jump_over_runs_when_it_was_planned(
    expression: str,
) -> None:
    once = a_daily(expression=expression)
    world = upgraded(once)
    planned = datetime(2027, 3, 28, 1, 30, tzinfo=UTC)
    world.is_due(once, planned)
    report = replan(world)
    assert (report.replanned, report.caught_up) == ([], True)
    world.clock.advance_to(planned - timedelta(minutes=5))
    world.shards.announce(0, planned - timedelta(minutes=6))
    world.plan_shard(0, deadline=planned)
    assert world.planned_fires() == [planned]
    assert world.agenda.cursors() == ()


def test_running_again_changes_nothing_and_says_how_many_are_done() -> None:
    daily = a_daily()
    world = upgraded(daily)
    replan(world)
    world.zone_releases.row = IN_USE
    report = replan(world)
    assert (report.replanned, report.looked_at, report.already) == ([], 1, 1)
    assert len(versions_of(world, daily)) == 2


def test_nothing_is_looked_at_where_nothing_is_behind() -> None:
    world = upgraded(a_daily())
    world.zone_releases.row = CAUGHT_UP
    report = replan(world)
    assert (report.former, report.zones, report.looked_at, report.caught_up) == ((), (), 0, True)
    assert "schedules.active_in" not in world.calls
    assert world.zone_releases.row == CAUGHT_UP


def test_a_release_that_moves_no_clock_is_settled_without_a_look() -> None:
    world = upgraded(a_daily(), former=rules_with({}))
    report = replan(world)
    assert (report.zones, report.looked_at, report.caught_up) == ((), 0, True)
    assert world.zone_releases.row == CAUGHT_UP


def test_a_dry_run_tells_the_same_and_writes_nothing() -> None:
    daily = a_daily()
    world = upgraded(daily)
    dry = replan(world, dry_run=True)
    assert set(world.calls) == {
        "zone_releases.in_use", "zone_releases.rules", "schedules.active_in", "schedules.head",
        "schedules.version",
    }  # fmt: skip
    assert versions_of(world, daily) == [daily]
    assert not dry.caught_up
    assert dry.replanned == replan(world).replanned


def test_a_dry_run_before_the_first_tick_of_a_release_notes_nothing() -> None:
    world = upgraded(a_daily())
    world.zone_releases.row = ReleasesInUse(current=FORMER, since=OLD)
    report = replan(world, dry_run=True)
    assert (report.former, len(report.replanned)) == ((FORMER,), 1)
    assert world.zone_releases.row == ReleasesInUse(current=FORMER, since=OLD)


def test_a_run_before_the_first_tick_of_a_release_notes_it_and_waits() -> None:
    world = upgraded(a_daily())
    world.zone_releases.row = ReleasesInUse(current=FORMER, since=OLD)
    with pytest.raises(FormerPlannersAtWork) as caught:
        replan(world)
    assert caught.value.until == NINE + FORMER_PLANNERS_GONE_AFTER
    world.clock.advance(FORMER_PLANNERS_GONE_AFTER)
    assert len(replan(world).replanned) == 1


def test_all_former_releases_count() -> None:
    berlin, tokyo = a_daily("berlin"), a_daily("tokyo", time_zone="Asia/Tokyo")
    world = upgraded(berlin, tokyo)
    world.zone_releases.keep(rules_with({"Asia/Tokyo": "JST-10"}, release="2026.4"))
    world.zone_releases.row = replace(IN_USE, former=frozenset({FORMER, "2026.4"}))
    assert {changed.version.schedule for changed in replan(world).replanned} == {"berlin", "tokyo"}


def test_rules_that_are_gone_are_no_reason_to_call_it_settled() -> None:
    world = upgraded(a_daily())
    world.zone_releases.kept.clear()
    with pytest.raises(LookupError, match=FORMER):
        replan(world)
    assert world.zone_releases.row == IN_USE


def compared(world: World, monkeypatch: pytest.MonkeyPatch) -> list[Rule]:
    """Replan, and give the rules that were compared one by one."""
    rules: list[Rule] = []

    def listening(
        rule: Rule, clocks: ClockDifference, *, after: datetime
    ) -> FireDifferences | None:
        rules.append(rule)
        return fire_differences(rule, clocks, after=after)

    monkeypatch.setattr("puntual.application.replan_zones.fire_differences", listening)
    replan(world)
    return rules


def test_bounds_that_do_not_matter_do_not_make_another_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first difference is in March: four ends before the end of June matter."""
    versions = []
    for number in range(40):
        version = a_daily(f"s-{number:02}", effective_from=OLD)
        rule = replace(
            version.rule,
            start_at=OLD - timedelta(days=number),
            end_at=NINE + timedelta(days=50 * (number + 1)),
            anchor=OLD - timedelta(days=number),
        )
        versions.append(replace(version, rule=rule))
    world = upgraded(*versions)
    assert len(compared(world, monkeypatch)) == 1 + 4
    # The first two end before the first difference.
    assert [world.head(version).version for version in versions] == [1, 1] + [2] * 38


# --- what cannot be planned anew ------------------------------------------------------------


def spoilt(world: World, name: str) -> None:
    """Make a schedule one whose expression says nothing."""
    [version] = [row for row in world.schedules.version_rows.values() if row.schedule == name]
    world.holds(replace(version, rule=replace(version.rule, expression="junk")))


class HasAnUnreadableHead(InMemorySchedules):
    def active_in(
        self, zones: Collection[str], *, after: ScheduleKey | None, limit: int
    ) -> HeadPage:
        page = super().active_in(zones, after=after, limit=limit)
        return replace(
            page,
            heads=tuple(
                UnreadableHead(key=head.key)
                if isinstance(head, Schedule) and head.schedule == "s-1"
                else head
                for head in page.heads
            ),
        )


def spoil_rule(world: World) -> None:
    spoilt(world, "s-1")


def spoil_version(world: World) -> None:
    del world.schedules.version_rows[many()[1].key, 1]


def spoil_head(world: World) -> None:
    spoilt_schedules = HasAnUnreadableHead(agenda=world.agenda, tenants=world.tenants)
    spoilt_schedules.head_rows = world.schedules.head_rows
    spoilt_schedules.version_rows = world.schedules.version_rows
    world.schedules = spoilt_schedules


@pytest.mark.parametrize("deadline", [NINE, LATER])
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (spoil_rule, "InvalidExpression: "),
        (spoil_version, "AssertionError: "),
        (spoil_head, "its head cannot be read"),
    ],
)
def test_a_schedule_that_raises_is_named_and_never_stops_the_others(
    spoil: Callable[[World], None], reason: str, deadline: datetime
) -> None:
    world = upgraded(*many(3))
    spoil(world)
    for dry_run in (True, False):
        report = to_the_end(world, dry_run=dry_run, deadline=deadline)
        assert [changed.version.schedule for changed in report.replanned] == ["s-0", "s-2"]
        [refused] = report.refused
        assert refused.key.schedule == "s-1"
        assert refused.reason.startswith(reason)
        assert (report.left, report.caught_up) == (1, False)
    assert world.zone_releases.row == IN_USE
    again = replan(world)
    assert (len(again.refused), again.already, again.caught_up) == (1, 2, False)


def test_a_schedule_that_others_change_all_the_time_is_refused() -> None:
    world = upgraded(*many(2))

    def change(name: str) -> None:
        head = world.schedules.head_rows[many()[0].key]
        if name == "schedules.advance" and head.version < 12:
            current = world.schedules.version_rows[head.key, head.version]
            world.is_followed(
                replace(current, version=head.version + 1, effective_from=OLD + timedelta(days=1))
            )

    world.at_io = change
    report = replan(world)
    assert [refused.key.schedule for refused in report.refused] == ["s-0"]
    assert len(report.replanned) == 1


def test_an_outage_is_no_reason_to_refuse_anything() -> None:
    world = upgraded(*many(2))
    world.rates = Rates(throttled=1.0)
    with pytest.raises(Unavailable):
        replan(world)


def test_a_slice_that_fails_has_told_of_what_it_wrote() -> None:
    world = upgraded(*many(3))
    told: list[str] = []
    with pytest.raises(Unavailable):
        world.replan_zones(
            token=None,
            dry_run=False,
            deadline=LATER,
            tell=lambda replanned: fails_after(world, told, replanned.version.schedule),
        )
    assert told == ["s-0"]


def fails_after(world: World, told: list[str], name: str) -> None:
    told.append(name)
    world.rates = Rates(throttled=1.0)


def test_names_that_are_gone_are_told_with_their_schedules_which_are_left() -> None:
    phobos, rated, berlin = (
        a_daily("phobos", time_zone="Mars/Phobos"),
        a_daily("rated", time_zone="Mars/Phobos", expression="rate(1 day)"),
        a_daily("berlin"),
    )
    zones = {"Mars/Phobos": NO_SUMMER_TIME, "Europe/Berlin": NO_SUMMER_TIME}
    world = upgraded(phobos, rated, berlin, former=rules_with(zones))
    report = replan(world)
    assert report.dropped == ("Mars/Phobos",)
    assert [refused.key.schedule for refused in report.refused] == ["phobos", "rated"]
    assert all("no zone Mars/Phobos" in refused.reason for refused in report.refused)
    assert [changed.version.schedule for changed in report.replanned] == ["berlin"]
    assert (report.looked_at, report.left, report.caught_up) == (3, 2, False)
    mended = a_daily("phobos", tzdata=DEPLOYED, effective_from=NINE, time_zone="Europe/Madrid")
    world.is_followed(replace(mended, version=2))
    canceled = a_daily("rated", state=ScheduleState.CANCELED, effective_from=NINE)
    world.is_followed(replace(canceled, version=2))
    assert replan(world).caught_up


def test_a_name_that_is_gone_and_has_no_schedule_is_no_matter() -> None:
    world = upgraded(a_daily(), former=rules_with({"Mars/Phobos": NO_SUMMER_TIME}))
    report = replan(world)
    assert (report.dropped, report.looked_at, report.caught_up) == (("Mars/Phobos",), 0, True)


# --- slices ---------------------------------------------------------------------------------


def many(count: int = 5) -> list[ScheduleVersion]:
    return [a_daily(f"s-{number}") for number in range(count)]


def test_a_slice_ends_at_its_deadline_and_the_next_one_goes_on() -> None:
    world = upgraded(*many())
    first = replan(world, deadline=NINE)
    assert [changed.version.schedule for changed in first.replanned] == ["s-0"]
    assert not first.caught_up
    assert world.zone_releases.row == IN_USE
    report = to_the_end(world, deadline=NINE)
    assert [changed.version.schedule for changed in report.replanned] == [
        "s-1", "s-2", "s-3", "s-4",
    ]  # fmt: skip
    assert report.caught_up


def test_pages_without_a_schedule_to_look_at_are_passed_over() -> None:
    others = [a_daily(f"a-{n:04}", time_zone="UTC") for n in range(HEADS_PER_PAGE + 1)]
    world = upgraded(*others, a_daily("z"))
    report = replan(world)
    assert (report.looked_at, len(report.replanned), report.caught_up) == (1, 1, True)


def test_a_token_is_of_no_use_to_another_run() -> None:
    world = upgraded(*many())
    token = replan(world, deadline=NINE).token
    with pytest.raises(OvertakenRun):
        replan(world, token=token, dry_run=True)
    world.zone_releases.row = replace(IN_USE, since=SINCE + timedelta(minutes=1))
    with pytest.raises(OvertakenRun, match="run it again"):
        replan(world, token=token)


def test_a_deployment_in_the_middle_leaves_the_alarm_on() -> None:
    world = upgraded(a_daily())
    deployed_anew = replace(IN_USE, since=NINE)

    def deploy(name: str) -> None:
        if name == "schedules.active_in":
            world.zone_releases.row = deployed_anew

    world.at_io = deploy
    assert not replan(world).caught_up
    assert world.zone_releases.row == deployed_anew


# --- races and crashes ----------------------------------------------------------------------


def once_before_the_write(world: World, act: Callable[[], None]) -> None:
    def at_io(name: str) -> None:
        if name == "schedules.advance":
            world.at_io = lambda _: None
            act()

    world.at_io = at_io


def test_a_lost_race_against_an_edit_is_no_loss() -> None:
    daily = a_daily()
    world = upgraded(daily)
    edited = replace(
        a_daily(expression="0 10 * * *", tzdata=DEPLOYED, effective_from=NINE), version=2
    )
    once_before_the_write(world, lambda: world.is_followed(edited))
    report = replan(world)
    assert report.replanned == []
    assert report.already == 1
    assert versions_of(world, daily)[1:] == [edited]


def test_a_lost_race_against_a_pause_leaves_the_pause() -> None:
    daily = a_daily()
    world = upgraded(daily)
    paused = replace(daily, version=2, state=ScheduleState.PAUSED, effective_from=NINE)
    once_before_the_write(world, lambda: world.is_followed(paused))
    assert replan(world).replanned == []
    assert world.head(daily).state is ScheduleState.PAUSED


def test_a_completion_in_the_middle_is_left_alone() -> None:
    daily = a_daily()
    world = upgraded(daily)
    completed = replace(a_schedule(daily), state=ScheduleState.COMPLETED)

    def complete(name: str) -> None:
        if name == "schedules.head":
            world.schedules.head_rows[daily.key] = completed

    world.at_io = complete
    assert replan(world).replanned == []
    assert world.head(daily) == completed


def two_of_three_move() -> World:
    return upgraded(
        a_daily("a", expression="5 10 * * *"),
        a_daily("b", time_zone="UTC"),
        a_daily("c", expression="0 14 * * *"),
        former=WITHOUT_WINTER_TIME,
    )


POINTS = io_points(two_of_three_move(), replan)


@pytest.mark.parametrize("at", POINTS)
def test_wherever_it_dies_running_again_ends_with_each_moved_once(at: int) -> None:
    world = two_of_three_move()
    dies(world, replan, at=at)
    report = replan(world)
    assert report.caught_up
    assert world.zone_releases.row == CAUGHT_UP
    numbers = {key.schedule: head.version for key, head in world.schedules.head_rows.items()}
    assert numbers == {"a": 2, "b": 1, "c": 2}
    world.plan_shard(0, deadline=LATER)
    assert NINE + timedelta(minutes=5) in world.planned_fires(), "found by the next pass (P4)"
    [moved] = [cursor for _, cursor in world.agenda.cursors() if cursor.schedule == "c"]
    assert moved.scheduled_for == NINE + timedelta(hours=4)


def test_dying_was_tried_at_every_step() -> None:
    world = two_of_three_move()
    replan(world)
    assert {
        "zone_releases.in_use", "zone_releases.rules", "schedules.active_in", "schedules.head",
        "schedules.version", "shards.ensure", "schedules.advance", "shards.get",
        "schedules.heads", "outbox.put", "agenda.put", "agenda.delete", "zone_releases.swap",
    } <= set(world.calls)  # fmt: skip
