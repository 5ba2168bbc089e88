from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puntual.domain.agenda import Cursor, first_cursor
from puntual.domain.expression import Fold, Gap, Rule
from puntual.domain.instant import LAST_INSTANT, MILLISECOND
from puntual.domain.planning import CursorPlan, is_last_fire, plan_cursor
from puntual.domain.policies import WINDOW_MAX, Misfire, MisfirePolicy, Policies
from puntual.domain.recovery import Granted, plan_slice, slice_of
from puntual.domain.run import RunState, Span
from puntual.domain.schedule import Schedule, ScheduleVersion
from puntual.domain.smallest_interval import smallest_interval
from tests.builders import NINE, a_cursor, a_rule, a_schedule, a_version

FIVE = timedelta(minutes=5)
SECOND = timedelta(seconds=1)
FIRST_FIRE = NINE + FIVE


def fires(*numbers: int) -> list[datetime]:
    return [NINE + number * FIVE for number in numbers]


def policies(
    misfire: Misfire = Misfire.FIRE_ONCE,
    *,
    max_lateness: timedelta | None = None,
    window: timedelta = timedelta(0),
) -> Policies:
    lateness = MisfirePolicy(policy=misfire, max_lateness=max_lateness)
    return Policies(misfire=lateness, window=window)


def ending(version: ScheduleVersion, end_at: datetime) -> ScheduleVersion:
    return replace(version, rule=replace(version.rule, end_at=end_at))


def plan(version: ScheduleVersion, *, now: datetime, cursor: Cursor | None = None) -> CursorPlan:
    """Plan the first fire of a version that is still the head's."""
    return plan_cursor(
        cursor or a_cursor(FIRST_FIRE, version=version),
        head=a_schedule(version),
        ended=None,
        now=now,
    )


def plan_stale(
    ended: ScheduleVersion, *, now: datetime, voided: bool = False, fire: datetime = FIRST_FIRE
) -> CursorPlan:
    """Plan a cursor of version 1 while the head is at version 2."""
    head = a_schedule(a_version(version=2), min_valid_version=2 if voided else 0)
    return plan_cursor(a_cursor(fire, version=ended), head=head, ended=ended, now=now)


def planned_fires(found: CursorPlan) -> list[datetime]:
    return [planned.occurrence.scheduled_for for planned in found.planned]


def spans(found: CursorPlan) -> list[tuple[str, datetime, datetime, str]]:
    return [(span.state, span.first, span.last, span.reason) for span in found.spans]


def next_fire(found: CursorPlan) -> datetime | None:
    return None if found.next_cursor is None else found.next_cursor.scheduled_for


@pytest.mark.parametrize("ahead", [timedelta(minutes=10), timedelta(0), -timedelta(seconds=60)])
def test_a_fire_that_is_not_late_is_planned_and_followed_by_the_next(ahead: timedelta) -> None:
    found = plan(a_version(), now=FIRST_FIRE - ahead)
    assert planned_fires(found) == fires(1)
    assert next_fire(found) == NINE + 2 * FIVE
    assert (found.spans, found.accounted) == ((), None)


def test_a_planned_occurrence_carries_what_relay_and_executor_need() -> None:
    version = a_version(version=3, policies=policies(window=timedelta(minutes=2)))
    (planned,) = plan(version, now=NINE).planned
    assert planned.occurrence.version == 3
    assert planned.flexible
    assert planned.available_at == a_cursor(FIRST_FIRE, version=version).available_at
    assert planned.misfire_after == timedelta(seconds=60)
    assert not plan(a_version(), now=NINE).planned[0].flexible


def test_the_last_fire_of_a_bounded_rule_has_no_cursor_after_it() -> None:
    found = plan(ending(a_version(), FIRST_FIRE), now=NINE)
    assert planned_fires(found) == fires(1)
    assert next_fire(found) is None
    assert found.accounted is None, "its executor completes the schedule"


def test_under_skip_what_is_late_is_missed_and_the_rest_goes_on() -> None:
    version = a_version(policies=policies(Misfire.SKIP))
    found = plan(version, now=NINE + 4 * FIVE + timedelta(seconds=60))
    assert planned_fires(found) == []
    assert spans(found) == [("MISSED", *fires(1, 3), "skip")]
    assert next_fire(found) == NINE + 4 * FIVE, "a minute late is not yet late"


def test_under_skip_a_bounded_rule_that_ends_without_a_run_is_accounted_for() -> None:
    version = ending(a_version(policies=policies(Misfire.SKIP)), NINE + 2 * FIVE)
    found = plan(version, now=NINE + timedelta(hours=9))
    assert spans(found) == [("MISSED", *fires(1, 2), "skip")]
    assert (next_fire(found), found.accounted) == (None, NINE + 2 * FIVE)


def test_under_fire_once_only_the_latest_runs_and_the_rest_is_missed() -> None:
    found = plan(a_version(), now=NINE + 12 * FIVE + SECOND)
    assert planned_fires(found) == fires(12)
    assert spans(found) == [("MISSED", *fires(1, 11), "fire_once")]
    assert next_fire(found) == NINE + 13 * FIVE


def test_under_fire_once_a_single_late_fire_runs_and_nothing_is_missed() -> None:
    found = plan(a_version(), now=FIRST_FIRE + timedelta(seconds=61))
    assert (planned_fires(found), found.spans) == (fires(1), ())


def test_under_fire_once_the_last_fire_of_a_bounded_rule_runs_however_late() -> None:
    found = plan(ending(a_version(), NINE + 3 * FIVE), now=NINE + timedelta(days=9))
    assert planned_fires(found) == fires(3)
    assert spans(found) == [("MISSED", *fires(1, 2), "fire_once")]
    assert (next_fire(found), found.accounted) == (None, None)


def test_beyond_max_lateness_even_the_latest_is_missed() -> None:
    daily = a_version(rule=a_rule("0 9 * * *"), policies=policies(max_lateness=timedelta(hours=1)))
    found = plan(daily, now=NINE + timedelta(hours=1, seconds=1), cursor=a_cursor(version=daily))
    assert planned_fires(found) == []
    assert spans(found) == [("MISSED", NINE, NINE, "max_lateness")]
    assert next_fire(found) == NINE + timedelta(days=1)


def test_within_max_lateness_the_latest_runs() -> None:
    daily = a_version(rule=a_rule("0 9 * * *"), policies=policies(max_lateness=timedelta(hours=1)))
    found = plan(daily, now=NINE + timedelta(hours=1), cursor=a_cursor(version=daily))
    assert planned_fires(found) == [NINE]


def test_beyond_max_lateness_a_rule_that_ends_is_accounted_for() -> None:
    version = ending(a_version(policies=policies(max_lateness=FIVE)), NINE + 2 * FIVE)
    found = plan(version, now=NINE + timedelta(days=1))
    assert spans(found) == [("MISSED", *fires(1, 2), "max_lateness")]
    assert found.accounted == NINE + 2 * FIVE


def test_lateness_counts_from_the_end_of_the_jitter() -> None:
    version = a_version(policies=policies(Misfire.SKIP, window=FIVE))
    cursor = a_cursor(FIRST_FIRE, version=version)
    assert cursor.available_at > FIRST_FIRE, "a fire without jitter proves nothing"
    on_time = cursor.available_at + timedelta(seconds=60)
    assert planned_fires(plan(version, now=on_time)) == fires(1)
    assert planned_fires(plan(version, now=on_time + MILLISECOND)) == []


def test_a_window_ends_what_is_late_and_what_is_the_latest_alike() -> None:
    version = a_version(policies=policies(window=FIVE))
    third, fourth = (version.fires.available_at(fire) for fire in fires(3, 4))
    assert third + timedelta(seconds=61) < fourth - SECOND, "a fire without jitter proves nothing"
    found = plan(version, now=fourth - SECOND)
    assert planned_fires(found) == fires(3), "the fourth has come, but may not run yet"
    assert spans(found) == [("MISSED", *fires(1, 2), "fire_once")]
    assert found.next_cursor == a_cursor(NINE + 4 * FIVE, version=version)
    assert planned_fires(plan(version, now=fourth)) == fires(4)


def test_under_skip_what_is_still_in_its_window_is_not_missed() -> None:
    version = a_version(policies=policies(Misfire.SKIP, window=FIVE))
    fourth = version.fires.available_at(NINE + 4 * FIVE)
    late = timedelta(seconds=60)
    assert spans(plan(version, now=fourth + late)) == [("MISSED", *fires(1, 3), "skip")]
    assert spans(plan(version, now=fourth + late + MILLISECOND)) == [
        ("MISSED", *fires(1, 4), "skip")
    ]


def test_p3_a_fire_before_the_end_of_its_version_is_planned_though_it_may_run_only_after() -> None:
    version = a_version(policies=policies(window=FIVE), until=FIRST_FIRE + MILLISECOND)
    assert version.fires.available_at(FIRST_FIRE) > FIRST_FIRE + SECOND
    now = FIRST_FIRE + SECOND
    found = plan_stale(version, now=now)
    assert [planned.available_at for planned in found.planned] == [
        version.fires.available_at(FIRST_FIRE)
    ]
    assert spans(plan_stale(version, now=now, voided=True)) == [
        ("CANCELED", FIRST_FIRE, FIRST_FIRE, "voided")
    ]


def test_p10_a_cursor_that_other_zone_rules_put_later_is_followed_by_one_behind_it() -> None:
    version = a_version()
    cursor = replace(a_cursor(FIRST_FIRE, version=version), available_at=FIRST_FIRE + 2 * FIVE)
    found = plan(version, now=NINE, cursor=cursor)
    assert found.next_cursor is not None
    assert found.next_cursor.scheduled_for == FIRST_FIRE + FIVE
    assert found.next_cursor.available_at == cursor.available_at + SECOND


def test_a_long_outage_costs_two_looks_and_not_one_per_missed_fire() -> None:
    looks: list[datetime] = []

    def counting(rule: Rule, after: datetime) -> datetime | None:
        looks.append(after)
        return rule.next_fire(after)

    version = a_version()
    found = plan_cursor(
        a_cursor(FIRST_FIRE, version=version),
        head=a_schedule(version),
        ended=None,
        now=NINE + timedelta(days=3650),
        next_fire=counting,
    )
    assert len(found.planned) == 1
    assert len(looks) == 1


def test_p3_a_cursor_of_an_ended_version_plans_what_was_due_before_its_end() -> None:
    found = plan_stale(a_version(until=NINE + 3 * FIVE), now=NINE)
    assert planned_fires(found) == fires(1)
    assert found.planned[0].occurrence.version == 1
    assert next_fire(found) == NINE + 2 * FIVE


@pytest.mark.parametrize("until", [NINE + 2 * FIVE, NINE + 2 * FIVE - MILLISECOND])
def test_p3_the_fire_at_the_end_of_a_version_is_not_its_own(until: datetime) -> None:
    assert next_fire(plan_stale(a_version(until=until), now=NINE)) is None


def test_p3_the_fire_just_before_the_end_of_a_version_is_its_own() -> None:
    version = a_version(until=NINE + 2 * FIVE + MILLISECOND)
    assert next_fire(plan_stale(version, now=NINE)) == NINE + 2 * FIVE


@pytest.mark.parametrize("voided", [False, True])
def test_p3_a_cursor_at_or_beyond_its_versions_end_is_dropped(voided: bool) -> None:  # noqa: FBT001
    found = plan_stale(a_version(until=FIRST_FIRE), now=FIRST_FIRE + FIVE, voided=voided)
    assert found == CursorPlan()


def test_p3_an_ended_version_is_late_by_its_own_policy_and_up_to_its_own_end() -> None:
    skipping = a_version(policies=policies(Misfire.SKIP), until=NINE + 3 * FIVE + SECOND)
    found = plan_stale(skipping, now=NINE + timedelta(hours=9))
    assert spans(found) == [("MISSED", *fires(1, 3), "skip")]
    assert (planned_fires(found), next_fire(found)) == ([], None)


def test_e5_the_latest_of_an_ended_version_is_its_last_before_its_end() -> None:
    found = plan_stale(a_version(until=NINE + 4 * FIVE), now=NINE + timedelta(hours=9))
    assert planned_fires(found) == fires(3)
    assert spans(found) == [("MISSED", *fires(1, 2), "fire_once")]
    assert next_fire(found) is None


def test_e8_a_voided_cursor_leaves_one_canceled_range_up_to_its_versions_end() -> None:
    found = plan_stale(a_version(until=NINE + 4 * FIVE), now=NINE + 2 * FIVE, voided=True)
    assert spans(found) == [("CANCELED", *fires(1, 3), "voided")]
    assert (found.planned, next_fire(found), found.accounted) == ((), None, None)


def test_a_version_above_the_void_ones_is_planned_though_the_head_moved_on() -> None:
    version = a_version(until=NINE + 4 * FIVE)
    head = a_schedule(a_version(version=3), min_valid_version=1)
    found = plan_cursor(a_cursor(FIRST_FIRE, version=version), head=head, ended=version, now=NINE)
    assert planned_fires(found) == fires(1)


def test_e11_only_the_last_fire_of_the_heads_own_version_is_the_last() -> None:
    head = a_schedule(ending(a_version(version=2), NINE + 2 * FIVE))
    assert is_last_fire(head, 2, NINE + 2 * FIVE, Rule.next_fire)
    assert not is_last_fire(head, 2, NINE + FIVE, Rule.next_fire)
    assert not is_last_fire(head, 1, NINE + 2 * FIVE, Rule.next_fire)


def durations(least: timedelta, most: timedelta) -> st.SearchStrategy[timedelta]:
    """Whole milliseconds, as every clock and every stored instant has them."""
    return st.integers(least // MILLISECOND, most // MILLISECOND).map(lambda ms: ms * MILLISECOND)


@st.composite
def situations(draw: st.DrawFn) -> tuple[ScheduleVersion, datetime, bool, bool]:
    """Give a version, an instant to plan at, and whether it has ended and was voided."""
    minutes = draw(st.sampled_from([1, 2, 5, 7, 60, 1440]))
    interval = timedelta(minutes=minutes)
    span = 40 * interval
    rule = a_rule(f"rate({minutes} minute{'s' if minutes > 1 else ''})")
    within = durations(timedelta(0), span).map(lambda by: NINE + by)
    end_at = draw(st.none() | within)
    if end_at is not None and end_at < NINE + interval:
        end_at = NINE + interval
    window = draw(st.just(timedelta(0)) | durations(timedelta(0), interval))
    misfire = MisfirePolicy(
        policy=draw(st.sampled_from(Misfire)),
        after=draw(durations(timedelta(0), 3 * interval)),
        max_lateness=draw(st.none() | durations(timedelta(0), span)),
    )
    ended = draw(st.booleans())
    version = a_version(
        rule=replace(rule, end_at=end_at),
        policies=Policies(misfire=misfire, window=window),
        until=draw(within) if ended else None,
    )
    now = NINE + draw(durations(-interval, 2 * span))
    return version, now, ended, ended and draw(st.booleans())


def _instants(span: Span, owned: list[datetime]) -> list[datetime]:
    return [fire for fire in owned if span.first <= fire <= span.last]


def _left_to_recover(found: CursorPlan, owned: list[datetime]) -> list[datetime]:
    """Give the fires of the range that is made up for later (P8)."""
    cursor = found.recovery
    if cursor is None:
        return []
    assert cursor.recovery is not None
    fires = [each for each in owned if cursor.scheduled_for <= each <= cursor.recovery.last]
    assert len(fires) <= cursor.recovery.left
    return fires


@given(situation=situations(), first=st.integers(0, 10))
def test_nothing_is_lost_and_nothing_planned_twice(
    situation: tuple[ScheduleVersion, datetime, bool, bool], first: int
) -> None:
    version, now, ended, voided = situation
    every = version.rule.fires_between(NINE, NINE + timedelta(days=200), limit=400)
    fire = every[min(first, len(every) - 1)]
    head = a_schedule(a_version(version=2) if ended else version, min_valid_version=2 * voided)
    cursor = a_cursor(fire, version=version)

    found = plan_cursor(cursor, head=head, ended=version if ended else None, now=now)

    owned = [each for each in every if version.until is None or each < version.until]
    following = next_fire(found)
    missed = [each for span in found.spans for each in _instants(span, owned)]
    accounted_for = sorted(planned_fires(found) + missed + _left_to_recover(found, owned))
    assert accounted_for == [
        each for each in owned if fire <= each and (following is None or each < following)
    ]
    assert following is None or (following in owned and following > fire)
    for span in found.spans:
        assert {span.first, span.last} <= set(owned), "a span starts and ends with fires"
    if found.accounted is not None:
        assert following is None
        assert found.accounted == every[-1]


@given(situation=situations(), first=st.integers(0, 10))
def test_nothing_is_planned_later_than_its_policy_allows(
    situation: tuple[ScheduleVersion, datetime, bool, bool], first: int
) -> None:
    version, now, ended, voided = situation
    every = version.rule.fires_between(NINE, NINE + timedelta(days=200), limit=400)
    cursor = a_cursor(every[min(first, len(every) - 1)], version=version)
    head = a_schedule(a_version(version=2) if ended else version, min_valid_version=2 * voided)
    misfire = version.policies.misfire

    found = plan_cursor(cursor, head=head, ended=version if ended else None, now=now)

    for planned in found.planned:
        late = now - planned.available_at
        if late > misfire.after:
            assert misfire.policy is Misfire.FIRE_ONCE
            assert misfire.max_lateness is None or late <= misfire.max_lateness
    for span in found.spans:
        assert (span.state is RunState.CANCELED) == voided


CLOCKS_CHANGE = (
    datetime(2026, 3, 28, 12, tzinfo=UTC),  # Europe and Troll go forward, Troll by two hours
    datetime(2026, 10, 24, 12, tzinfo=UTC),
    datetime(2011, 12, 28, tzinfo=UTC),  # Apia skips a day
)


@st.composite
def flexible_versions(draw: st.DrawFn) -> ScheduleVersion:
    """Give a version whose window is as large as it may be, or smaller, near a clock change."""
    rule = Rule(
        expression=draw(
            st.sampled_from(
                [
                    "59 1 * * *",
                    "0,50 * * * *",
                    "10,40,59 1-4 * * *",
                    "30 1,3 * * *",
                    "0 0,12 * * *",
                    "0 9 * * 1",
                    "rate(50 minutes)",
                ]
            )
        ),
        time_zone=draw(
            st.sampled_from(["UTC", "Europe/Madrid", "Antarctica/Troll", "Pacific/Apia"])
        ),
        gap=draw(st.sampled_from(Gap)),
        fold=draw(st.sampled_from(Fold)),
        anchor=datetime(2011, 1, 1, 0, 0, 7, tzinfo=UTC),
    )
    start = draw(st.sampled_from(CLOCKS_CHANGE))
    most = min(WINDOW_MAX, smallest_interval(rule) or WINDOW_MAX)
    window = draw(st.sampled_from([most, most, most / 2, SECOND]))
    misfire = MisfirePolicy(
        policy=draw(st.sampled_from(Misfire)), limit=draw(st.sampled_from([1, 3, 100]))
    )
    return a_version(
        version=draw(st.integers(1, 50)),
        rule=replace(rule, end_at=start + timedelta(days=3)),
        policies=Policies(misfire=misfire, window=window),
        effective_from=start,
    )


def recovered_fires(cursor: Cursor, head: Schedule, *, now: datetime) -> list[datetime]:
    """Plan slices of a recovery, of none to three fires each, to its end; gives all planned."""
    following: Cursor | None = cursor
    planned: list[datetime] = []
    for granted in cycle((2, 0, 3, 1)):
        if following is None:
            return planned
        found = slice_of(following, head=head, ended=None, now=now, at_most=3)
        tokens = Granted(count=granted, first_at=now, every=SECOND)
        part = plan_slice(found, granted=tokens, now=now)
        planned += [each.occurrence.scheduled_for for each in part.planned]
        following = part.next_cursor
    raise AssertionError


@given(
    version=flexible_versions(),
    lags=st.lists(st.sampled_from([-600, -600, 0, 61, 4_000, 100_000]), min_size=1, max_size=9),
)
def test_p10_cursors_strictly_rise_and_every_fire_is_planned_or_missed_exactly_once(
    version: ScheduleVersion, lags: list[int]
) -> None:
    head, cursor = a_schedule(version), first_cursor(version)
    start = version.effective_from - MILLISECOND
    every = list(version.rule.fires_between(start, LAST_INSTANT, limit=200))
    accounted_for: list[datetime] = []
    for lag in cycle(lags):
        if cursor is None:
            break
        now = cursor.available_at + lag * SECOND
        found = plan_cursor(cursor, head=head, ended=None, now=now)
        for span in found.spans:
            accounted_for += _instants(span, every)
        if found.recovery is not None:
            accounted_for += recovered_fires(found.recovery, head, now=now)
        for planned in found.planned:
            fire = planned.occurrence.scheduled_for
            accounted_for.append(fire)
            following = version.rule.next_fire(fire)
            assert fire <= planned.available_at < fire + version.policies.window
            assert following is None or planned.available_at < following
            assert planned.available_at <= max(now, cursor.available_at), "a queue can hold it"
        if found.next_cursor is not None:
            assert found.next_cursor.available_at > cursor.available_at
            assert found.next_cursor == a_cursor(found.next_cursor.scheduled_for, version=version)
        cursor = found.next_cursor
    assert sorted(accounted_for) == every
