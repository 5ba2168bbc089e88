"""What `catch_up` makes of an outage: tables of ten minutes, three hours and a day."""

from datetime import datetime, timedelta

import pytest

from puntual.domain.catch_up import BEYOND_LIMIT, FORGOTTEN, TOO_LATE
from puntual.domain.catch_up_preview import preview_of_outage
from puntual.domain.instant import MINUTE, minute_of
from puntual.domain.planning import CursorPlan, plan_cursor
from puntual.domain.policies import Misfire, MisfirePolicy, Policies
from puntual.domain.recovery import Granted, SlicePlan, plan_slice, slice_of
from puntual.domain.run import RunState
from puntual.domain.schedule import ScheduleVersion
from tests.builders import NINE, a_cursor, a_rule, a_schedule, a_version

HOURLY, FIVE_MINUTELY = "0 * * * *", "*/5 * * * *"
TEN_MINUTES, THREE_HOURS, A_DAY = (timedelta(minutes=10), timedelta(hours=3), timedelta(days=1))
SECOND = timedelta(seconds=1)
RATE = 60


def a_version_of(
    expression: str,
    misfire: Misfire = Misfire.CATCH_UP,
    *,
    limit: int = 100,
    max_lateness: timedelta | None = None,
    end_at: datetime | None = None,
    until: datetime | None = None,
) -> ScheduleVersion:
    policy = MisfirePolicy(policy=misfire, limit=limit, max_lateness=max_lateness)
    return a_version(
        rule=a_rule(expression, end_at=end_at),
        policies=Policies(misfire=policy),
        until=until,
        effective_from=NINE - timedelta(days=40),
    )


def plan_late(version: ScheduleVersion, *, now: datetime, first: datetime = NINE) -> CursorPlan:
    return plan_cursor(
        a_cursor(first, version=version), head=a_schedule(version), ended=None, now=now
    )


def drained(version: ScheduleVersion, plan: CursorPlan, *, now: datetime) -> list[datetime]:
    """Plan slice after slice, a minute and sixty tokens each; gives all that runs, in order."""
    assert plan.recovery is not None
    cursor, fires = plan.recovery, list[datetime]()
    for number in range(1000):
        at = now + number * MINUTE
        found = slice_of(cursor, head=a_schedule(version), ended=None, now=at, at_most=RATE)
        tokens = Granted(count=RATE, first_at=at, every=SECOND)
        part = plan_slice(found, granted=tokens, now=at)
        fires += [planned.occurrence.scheduled_for for planned in part.planned]
        if part.next_cursor is None:
            return fires
        assert part.next_cursor.available_at == minute_of(at) + MINUTE
        cursor = part.next_cursor
    raise AssertionError


@pytest.mark.parametrize(
    ("expression", "outage", "missed"),
    [
        (HOURLY, TEN_MINUTES, 1),
        (HOURLY, THREE_HOURS, 3),
        (HOURLY, A_DAY, 24),
        (FIVE_MINUTELY, TEN_MINUTES, 2),
        (FIVE_MINUTELY, THREE_HOURS, 36),
        (FIVE_MINUTELY, A_DAY, 288),
    ],
)
def test_each_policy_makes_of_an_outage_exactly_what_it_says(
    expression: str, outage: timedelta, missed: int
) -> None:
    """The last fire that was missed lies some minutes, or a whole interval, before the end."""
    now = NINE + outage - 2 * MINUTE
    fires = list(a_rule(expression).fires_between(NINE - SECOND, now, limit=1_000))
    assert len(fires) == missed

    skipped = plan_late(a_version_of(expression, Misfire.SKIP), now=now)
    [span] = skipped.spans
    assert (span.first, span.last, span.state) == (fires[0], fires[-1], RunState.MISSED)
    assert (skipped.planned, skipped.recovery) == ((), None)

    once = plan_late(a_version_of(expression, Misfire.FIRE_ONCE), now=now)
    assert [planned.occurrence.scheduled_for for planned in once.planned] == fires[-1:]
    assert [(each.first, each.last) for each in once.spans] == (
        [(fires[0], fires[-2])] if missed > 1 else []
    )

    version = a_version_of(expression)
    caught = plan_late(version, now=now)
    assert caught.planned == ()
    assert caught.next_cursor is not None
    assert caught.next_cursor.scheduled_for > now - MINUTE
    assert caught.recovery is not None
    assert caught.recovery.bucket == minute_of(now)
    assert drained(version, caught, now=now) == fires[:100]
    assert [(each.first, each.last, each.reason) for each in caught.spans] == (
        [(fires[100], fires[-1], BEYOND_LIMIT)] if missed > 100 else []
    )


def test_what_is_beyond_max_lateness_is_cut_off_the_head_and_takes_none_of_the_limit() -> None:
    version = a_version_of(FIVE_MINUTELY, limit=2, max_lateness=timedelta(minutes=20))
    now = NINE + timedelta(minutes=61)
    plan = plan_late(version, now=now)
    fires = [NINE + 5 * number * MINUTE for number in range(13)]
    assert [(span.first, span.last, span.reason) for span in plan.spans] == [
        (fires[0], fires[8], TOO_LATE),
        (fires[11], fires[11], BEYOND_LIMIT),
    ]
    assert drained(version, plan, now=now) == fires[9:11]


def test_a_slice_leaves_out_what_became_too_late_while_it_waited() -> None:
    version = a_version_of(FIVE_MINUTELY, max_lateness=timedelta(minutes=20))
    now = NINE + timedelta(minutes=18)
    plan = plan_late(version, now=now)
    assert plan.recovery is not None
    later = now + timedelta(minutes=5)
    found = slice_of(plan.recovery, head=a_schedule(version), ended=None, now=later, at_most=9)
    part = plan_slice(found, granted=Granted(count=9, first_at=later, every=SECOND), now=later)
    assert [(span.first, span.last, span.reason) for span in part.spans] == [(NINE, NINE, TOO_LATE)]
    assert [each.occurrence.scheduled_for for each in part.planned] == [
        NINE + 5 * MINUTE,
        NINE + 10 * MINUTE,
        NINE + 15 * MINUTE,
    ]


def test_what_the_ledger_may_have_forgotten_is_missed() -> None:
    version = a_version_of("0 9 * * *")
    plan = plan_late(version, now=NINE, first=NINE - timedelta(days=30))
    [span] = plan.spans
    assert (span.last, span.reason) == (NINE - timedelta(days=29), FORGOTTEN)


def test_tokens_are_spread_over_the_slice_and_what_has_none_waits() -> None:
    version = a_version_of(FIVE_MINUTELY)
    now = NINE + timedelta(minutes=61)
    plan = plan_late(version, now=now)
    assert plan.recovery is not None
    found = slice_of(plan.recovery, head=a_schedule(version), ended=None, now=now, at_most=9)
    part = plan_slice(found, granted=Granted(count=3, first_at=now, every=SECOND), now=now)
    assert [each.caught_up_at for each in part.planned] == [now + n * SECOND for n in range(3)]
    assert part.next_cursor is not None
    assert part.next_cursor.scheduled_for == NINE + 15 * MINUTE
    assert part.next_cursor.recovery is not None
    assert part.next_cursor.recovery.left == 97


def after_an_edit(*, voided: bool) -> SlicePlan:
    version = a_version_of(FIVE_MINUTELY)
    now = NINE + timedelta(minutes=61)
    cursor = plan_late(version, now=now).recovery
    assert cursor is not None
    head = a_schedule(a_version(version=2), min_valid_version=2 if voided else 0)
    ended = a_version_of(FIVE_MINUTELY, until=NINE + timedelta(minutes=20))
    found = slice_of(cursor, head=head, ended=ended, now=now, at_most=99)
    tokens = Granted(count=len(found.fires), first_at=now, every=SECOND)
    return plan_slice(found, granted=tokens, now=now)


def test_p8_a_recovery_survives_an_edit_up_to_its_version_s_end() -> None:
    part = after_an_edit(voided=False)
    fires = [planned.occurrence.scheduled_for for planned in part.planned]
    assert fires == [NINE + 5 * number * MINUTE for number in range(4)]
    assert (part.next_cursor, part.spans) == (None, ())


def test_e8_a_recovery_that_was_voided_leaves_one_canceled_span() -> None:
    part = after_an_edit(voided=True)
    [span] = part.spans
    assert (span.state, span.first, span.last) == (
        RunState.CANCELED,
        NINE,
        NINE + timedelta(minutes=15),
    )
    assert (part.planned, part.next_cursor) == ((), None)


@pytest.mark.parametrize(("limit", "accounted"), [(2, True), (100, False)])
def test_e11_a_range_that_ends_a_rule_without_a_run_completes_it(
    limit: int, *, accounted: bool
) -> None:
    last = NINE + timedelta(minutes=15)
    version = a_version_of(FIVE_MINUTELY, limit=limit, end_at=last)
    now = NINE + timedelta(minutes=61)
    plan = plan_late(version, now=now)
    assert plan.next_cursor is None
    assert plan.accounted is None, "its recovery is still to come"
    assert plan.recovery is not None
    found = slice_of(plan.recovery, head=a_schedule(version), ended=None, now=now, at_most=99)
    tokens = Granted(count=len(found.fires), first_at=now, every=SECOND)
    part = plan_slice(found, granted=tokens, now=now)
    assert part.accounted == (last if accounted else None)


def test_e11_a_range_that_is_too_late_as_a_whole_completes_its_rule_at_once() -> None:
    last = NINE + timedelta(minutes=15)
    version = a_version_of(FIVE_MINUTELY, max_lateness=timedelta(minutes=5), end_at=last)
    plan = plan_late(version, now=NINE + timedelta(minutes=61))
    assert (plan.recovery, plan.next_cursor, plan.accounted) == (None, None, last)


def test_the_preview_says_of_each_policy_what_the_planner_would_do() -> None:
    head = a_schedule(a_version_of(FIVE_MINUTELY, limit=100))
    start, end = NINE - SECOND, NINE + A_DAY - 2 * MINUTE
    found = preview_of_outage(head, start=start, end=end, per_minute=RATE, shown=2)
    assert (found.fires, found.on_time) == (288, 0)
    skip, once, caught = found.outcomes
    assert (skip.runs, [missed.count for missed in skip.missed]) == (0, [288])
    assert (once.runs, [missed.count for missed in once.missed]) == (1, [287])
    assert caught.fires == (NINE, NINE + 5 * MINUTE)
    assert (caught.runs, caught.last) == (100, NINE + 99 * 5 * MINUTE)
    assert [(missed.count, missed.reason) for missed in caught.missed] == [(188, BEYOND_LIMIT)]
    assert caught.drains_in == timedelta(seconds=99)


def test_what_is_not_late_yet_when_the_outage_ends_runs_under_every_policy() -> None:
    head = a_schedule(a_version_of(FIVE_MINUTELY))
    end = NINE + timedelta(minutes=10, seconds=30)
    found = preview_of_outage(head, start=NINE - SECOND, end=end, per_minute=RATE, shown=9)
    assert (found.fires, found.on_time) == (3, 1)
    assert [outcome.runs for outcome in found.outcomes] == [0, 1, 2]


def test_an_outage_without_fires_makes_nothing_late() -> None:
    head = a_schedule(a_version_of(HOURLY))
    found = preview_of_outage(head, start=NINE, end=NINE + MINUTE, per_minute=RATE, shown=9)
    assert (found.fires, found.on_time) == (0, 0)
    assert all(outcome.runs == 0 and not outcome.missed for outcome in found.outcomes)
