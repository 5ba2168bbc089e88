"""Backfill: past instants once more, in the recovery lane, at the tenant's rate."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from puntual.application import backfill_schedule
from puntual.application.backfill_schedule import Range
from puntual.domain.backfill import BACKFILL_AGE_MAX, BACKFILL_MAX
from puntual.domain.budget import CATCH_UPS, BudgetKey
from puntual.domain.errors import Rejected
from puntual.domain.instant import MILLISECOND
from puntual.domain.lane import Lane
from puntual.domain.occurrence import Kind
from puntual.domain.page import Planned
from puntual.domain.request import IdempotencyKeyReused, Request
from puntual.domain.run import Run, RunState
from puntual.domain.run_request import RunRequest
from puntual.domain.schedule import NothingRuns, StaleVersion
from puntual.domain.tenant import DEFAULT_QUOTAS, UnknownTenant
from tests.builders import NINE, TENANT, a_run, a_span, a_tenant, an_occurrence
from tests.control_plane_world import AUTHOR, KEY, World, a_definition

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
FIVE = 5 * MINUTE
TEN = NINE + HOUR
KEYED = Request(key="k-1", body="a range")
BUDGET = BudgetKey(tenant=TENANT, name=CATCH_UPS)


@pytest.fixture
def world() -> World:
    """It fires every five minutes from nine, not included; it is ten."""
    world = World()
    world.created("rate(5 minutes)")
    world.clock.advance_to(TEN)
    return world


def everything(start: datetime = NINE, end: datetime = TEN, *, limit: int = 1000) -> Range:
    return Range(start=start, end=end, limit=limit, only_missing=False)


def missing(start: datetime = NINE, end: datetime = TEN, *, limit: int = 1000) -> Range:
    return replace(everything(start, end, limit=limit), only_missing=True)


def instants(asked: RunRequest) -> list[datetime]:
    return [fire.scheduled_for for fire in asked.fires]


def on_pages(world: World) -> list[Planned]:
    planned = [each for page in world.outbox.pages.values() for each in page.planned]
    return [each for each in planned if each.occurrence.kind is Kind.BACKFILL]


def rows(world: World) -> list[Run]:
    found = world.ledger.rows.get(KEY, {}).values()
    return [row for row in found if isinstance(row, Run) and row.occurrence.kind is Kind.BACKFILL]


def fire(number: int) -> datetime:
    return NINE + number * FIVE


def succeeded_at(number: int) -> Run:
    return a_run(an_occurrence(scheduled_for=fire(number)), state=RunState.SUCCEEDED)


def test_all_instants_of_a_range_its_ends_included(world: World) -> None:
    asked = world.plane.backfill_schedule(KEY, everything(fire(2), fire(4)))
    assert instants(asked) == [fire(2), fire(3), fire(4)]
    assert sorted(each.occurrence.scheduled_for for each in on_pages(world)) == instants(asked)
    assert {each.lane_at(TEN) for each in on_pages(world)} == {Lane.RECOVERY}
    assert len({each.occurrence.id for each in on_pages(world)}) == 3
    assert [row.occurrence.scheduled_for for row in rows(world)] == instants(asked)
    assert {row.authorised_version for row in rows(world)} == {1}


def test_only_what_is_missing(world: World) -> None:
    world.put(succeeded_at(1), a_span(fire(2), fire(4)), succeeded_at(3), succeeded_at(6))
    asked = world.plane.backfill_schedule(KEY, missing())
    assert instants(asked) == [fire(2), fire(4)]
    assert asked.survey is not None
    assert (asked.survey.looked_at, asked.survey.ran, asked.survey.pending) == (12, 3, 7)
    assert asked.survey.rest_from is None


def test_a_second_backfill_of_what_is_missing_finds_nothing(world: World) -> None:
    world.put(a_span(fire(2), fire(4)))
    world.plane.backfill_schedule(KEY, missing())
    assert world.plane.backfill_schedule(KEY, missing()).fires == ()


def test_spans_and_rows_of_several_days_are_all_read() -> None:
    world = World()
    world.created("0 */6 * * *")
    days = timedelta(days=1)
    world.clock.advance_to(NINE + 20 * days)
    first = NINE.replace(hour=12)
    world.put(a_span(first, NINE + 9 * days))
    ran = first + 3 * days
    world.put(a_run(an_occurrence(scheduled_for=ran), state=RunState.SUCCEEDED))
    asked = world.plane.backfill_schedule(KEY, missing(NINE, NINE + 9 * days))
    wanted = [first + number * 6 * HOUR for number in range(36)]
    assert instants(asked) == [instant for instant in wanted if instant != ran]


def test_each_instant_belongs_to_the_version_that_owned_it(world: World) -> None:
    world.plane.change_schedule(
        KEY, seen=1, revise=lambda _: a_definition("*/10 * * * *"), author=AUTHOR
    )
    world.clock.advance(30 * MINUTE)
    world.plane.pause_schedule(KEY, author=AUTHOR)
    world.clock.advance(HOUR)
    asked = world.plane.backfill_schedule(KEY, everything(fire(10), world.clock.now()))
    times = [(each.version, (each.scheduled_for - NINE) // MINUTE) for each in asked.fires]
    assert times == [(1, 50), (1, 55), (2, 60), (2, 70), (2, 80)], "a pause has no fires"
    assert asked.authorised_version == 3


def test_it_is_spread_at_the_rate_behind_what_others_have_reserved(world: World) -> None:
    quotas = replace(DEFAULT_QUOTAS, catch_ups_per_minute=30)
    world.tenants.register(replace(a_tenant(), quotas=quotas))
    first = world.plane.backfill_schedule(KEY, everything(limit=3))
    second = world.plane.backfill_schedule(KEY, everything(limit=2))
    available = [each.available_at - TEN for each in (*first.planned, *second.planned)]
    assert available == [number * 2 * SECOND for number in range(5)]


def test_a_limit_takes_the_earliest_and_says_where_the_rest_begins(world: World) -> None:
    world.put(a_span(fire(2), fire(6)))
    asked = world.plane.backfill_schedule(KEY, missing(limit=2))
    assert instants(asked) == [fire(2), fire(3)]
    assert asked.survey is not None
    assert asked.survey.rest_from == fire(4)
    rest = world.plane.backfill_schedule(KEY, missing(fire(4), limit=3))
    assert instants(rest) == [fire(4), fire(5), fire(6)]
    assert rest.survey is not None
    assert rest.survey.rest_from is None, "what does not run does not count"


def test_no_backfill_looks_at_more_than_it_may(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill_schedule, "LOOKED_AT_MAX", 5)
    asked = world.plane.backfill_schedule(KEY, everything())
    assert asked.survey is not None
    assert (len(asked.fires), asked.survey.rest_from) == (5, fire(6))


def test_rows_beyond_the_bound_are_looked_at_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill_schedule, "ROWS_PER_LOOK_MAX", 4)
    world.put(*(succeeded_at(number) for number in range(1, 12) if number != 7))
    world.put(a_run(an_occurrence(scheduled_for=fire(7)), state=RunState.MISSED, attempt=0))
    assert instants(world.plane.backfill_schedule(KEY, missing())) == [fire(7)]


def test_a_thousand_go_out_on_ten_pages() -> None:
    world = World()
    world.created("* * * * *")
    world.clock.advance_to(NINE + 17 * HOUR)
    asked = world.plane.backfill_schedule(
        KEY, everything(NINE, NINE + 17 * HOUR, limit=BACKFILL_MAX)
    )
    pages = [page for page in world.outbox.pages.values() if page.planned[0].authorised_version]
    assert [len(page.planned) for page in pages] == [100] * 10
    assert len(asked.fires) == len(rows(world)) == BACKFILL_MAX


def test_a_dry_run_says_the_same_and_writes_nothing(world: World) -> None:
    world.put(a_span(fire(2), fire(6)))
    before = world.writes()
    told = world.plane.backfill_schedule(KEY, missing(), request=KEYED, dry_run=True)
    assert world.writes() == before
    assert replace(world.plane.backfill_schedule(KEY, missing()), id=told.id) == replace(
        told, fingerprint=""
    )


def test_a_repeated_key_gives_the_same_ones_at_the_same_times(world: World) -> None:
    first = world.plane.backfill_schedule(KEY, everything(limit=3), request=KEYED)
    taken = world.budgets.read(BUDGET)
    world.clock.advance(HOUR)
    again = world.plane.backfill_schedule(KEY, everything(limit=3), request=KEYED)
    assert again == first
    assert len(rows(world)) == 3
    assert world.budgets.read(BUDGET) == taken
    with pytest.raises(IdempotencyKeyReused):
        world.plane.backfill_schedule(KEY, everything(), request=replace(KEYED, body="other"))


def test_a_backfill_of_nothing_reserves_nothing_and_is_remembered(world: World) -> None:
    nothing = world.plane.backfill_schedule(KEY, missing(), request=KEYED)
    assert nothing.fires == ()
    assert world.budgets.rows == {}
    world.put(a_span(fire(2), fire(6)))
    assert world.plane.backfill_schedule(KEY, missing(), request=KEYED) == nothing


def test_the_live_cursor_stays_where_it_is(world: World) -> None:
    before = world.agenda.cursors()
    world.plane.backfill_schedule(KEY, everything())
    assert world.agenda.cursors() == before


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (everything(TEN - BACKFILL_AGE_MAX - MILLISECOND), "from"),
        (everything(NINE, TEN + MILLISECOND), "until"),
        (everything(TEN, NINE), "until"),
    ],
)
def test_a_range_that_is_not_past_or_not_remembered_is_refused(
    world: World, wanted: Range, field: str
) -> None:
    before = world.writes()
    with pytest.raises(Rejected) as caught:
        world.plane.backfill_schedule(KEY, wanted, request=KEYED)
    assert caught.value.field == field
    assert world.writes() == before


def test_what_would_take_more_than_a_day_is_refused() -> None:
    world = World()
    world.tenants.register(
        replace(a_tenant(), quotas=replace(DEFAULT_QUOTAS, catch_ups_per_minute=1))
    )
    world.created("* * * * *")
    world.clock.advance_to(NINE + 17 * HOUR)
    world.plane.backfill_schedule(KEY, everything(NINE, NINE + 16 * HOUR))
    before = world.writes()
    with pytest.raises(Rejected, match="catch_ups_per_minute"):
        world.plane.backfill_schedule(KEY, everything(NINE, NINE + 16 * HOUR))
    assert world.writes() == before


def test_a_canceled_schedule_runs_no_more(world: World) -> None:
    world.plane.cancel_schedule(KEY, author=AUTHOR)
    with pytest.raises(NothingRuns):
        world.plane.backfill_schedule(KEY, everything())


def test_another_version_than_the_caller_saw_is_refused(world: World) -> None:
    with pytest.raises(StaleVersion):
        world.plane.backfill_schedule(KEY, everything(), seen=2)


def test_an_unknown_tenant_is_refused(world: World) -> None:
    world.tenants.rows.clear()
    with pytest.raises(UnknownTenant):
        world.plane.backfill_schedule(KEY, everything())
