"""Dead letters of a tenant: the list of them, and the replay of many."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from puntual.application.replay_dead_letters import NO_TIME, TIME_MAX, ReplayedDeadLetters
from puntual.domain.budget import CATCH_UPS, BudgetKey
from puntual.domain.errors import Rejected, Unavailable
from puntual.domain.page_token import ForeignPageToken
from puntual.domain.replay import REPLAYS_MAX, DeadLetterFilter
from puntual.domain.run import Run, RunState
from puntual.domain.tenant import Quotas, ScheduleId, TenantId, UnknownTenant
from tests.builders import NINE, TENANT, a_forged_page_token, a_run, a_tenant, an_occurrence
from tests.control_plane_world import AUTHOR, KEY, World
from tests.fakes.in_memory_ledger import InMemoryLedger
from tests.fakes.manual_clock import ManualClock

NOW = NINE + timedelta(hours=2)
EVERY = DeadLetterFilter()
RATE = 30
GAP = timedelta(seconds=2)
MINUTE = timedelta(minutes=1)
NOBODY = TenantId("nobody")


def a_dead_one(number: int, *, schedule: str = "invoices") -> Run:
    at = NINE + number * 5 * MINUTE
    dead = a_run(
        an_occurrence(schedule=schedule, scheduled_for=at),
        state=RunState.DEAD,
        write_id=f"{schedule}-{number}",
    )
    return replace(dead, died_at=at + timedelta(seconds=3))


@pytest.fixture
def world() -> World:
    world = World()
    world.tenants.register(a_tenant(quotas=Quotas(schedules_max=9, catch_ups_per_minute=RATE)))
    world.created()
    world.created(schedule="sync")
    world.put(*(a_dead_one(number) for number in range(4)))
    world.clock.advance_to(NOW)
    return world


def listed(world: World, which: DeadLetterFilter = EVERY, **page: object) -> list[Run]:
    asked = {"limit": 9, "token": None, **page}
    return list(world.plane.list_dead_letters(TENANT, which, **asked).runs)  # type: ignore[arg-type]


def replayed(world: World, which: DeadLetterFilter = EVERY, **call: object) -> ReplayedDeadLetters:
    asked = {"limit": REPLAYS_MAX, "token": None, "dry_run": False, **call}
    return world.plane.replay_dead_letters.matching(TENANT, which, **asked)  # type: ignore[arg-type]


def times(done: ReplayedDeadLetters) -> list[datetime | None]:
    return [result.run.not_before if result.run else None for result in done.results]


def test_a_list_goes_on_where_its_token_says(world: World) -> None:
    first = world.plane.list_dead_letters(TENANT, EVERY, limit=3, token=None)
    second = world.plane.list_dead_letters(TENANT, EVERY, limit=3, token=first.page_token)
    assert [*first.runs, *second.runs] == [a_dead_one(number) for number in (3, 2, 1, 0)]
    assert second.page_token is None


def test_a_list_may_be_of_one_schedule_and_of_a_time(world: World) -> None:
    world.put(a_dead_one(1, schedule="sync"))
    assert listed(world, DeadLetterFilter(schedule=ScheduleId("sync"))) == [
        a_dead_one(1, schedule="sync")
    ]
    which = DeadLetterFilter(since=NINE + MINUTE, until=NINE + 11 * MINUTE)
    assert len(listed(world, which)) == 3


@pytest.mark.parametrize(
    "token",
    [
        "no token",
        a_forged_page_token(b'["\\u00f1"]', listing=("dead-letters", TENANT, "", "", "")),
        a_forged_page_token(b'[""]', listing=("dead-letters", TENANT, "", "", "")),
        a_forged_page_token(b'["#"]', listing=("dead-letters", TENANT, "", "", "")),
        a_forged_page_token(b'["2026"]', listing=("dead-letters", "other", "", "", "")),
    ],
)
def test_only_its_own_tokens_go_on_with_a_list(world: World, token: str) -> None:
    with pytest.raises(ForeignPageToken):
        listed(world, token=token)
    with pytest.raises(Rejected, match="resume_token"):
        replayed(world, token=token)


def test_a_token_from_before_the_first_is_foreign(world: World) -> None:
    listing = ("dead-letters", TENANT, "", "2026-11-30T09:00:00.000Z", "")
    token = a_forged_page_token(b'["2026-11-29"]', listing=listing)
    with pytest.raises(ForeignPageToken):
        listed(world, DeadLetterFilter(since=NINE), token=token)


def test_what_ends_before_it_begins_is_refused(world: World) -> None:
    which = DeadLetterFilter(since=NINE, until=NINE - MINUTE)
    for call in (listed, replayed):
        with pytest.raises(Rejected, match="until"):
            call(world, which)


def test_nobody_has_no_dead_letters(world: World) -> None:
    with pytest.raises(UnknownTenant):
        world.plane.list_dead_letters(NOBODY, EVERY, limit=1, token=None)
    many = world.plane.replay_dead_letters
    with pytest.raises(UnknownTenant):
        many.matching(NOBODY, EVERY, limit=1, token=None, dry_run=True)


def test_many_are_replayed_at_the_tenants_catch_up_rate(world: World) -> None:
    done = replayed(world)
    assert times(done) == [NOW + number * GAP for number in range(4)]
    assert [result.why for result in done.results] == [None] * 4
    assert listed(world) == []
    assert {page.planned[0].available_at for page in world.outbox.pages.values()} >= set(
        times(done)
    )


def test_a_second_call_waits_behind_the_first_ones_tokens(world: World) -> None:
    replayed(world, limit=2)
    done = replayed(world, limit=2)
    assert times(done) == [NOW + 2 * GAP, NOW + 3 * GAP]
    assert world.budgets.read(BudgetKey(tenant=TENANT, name=CATCH_UPS)).taken_through > NOW


def test_the_token_of_a_call_goes_on_behind_it(world: World) -> None:
    first = replayed(world, limit=3)
    assert (len(first.results), first.token is None) == (3, False)
    second = replayed(world, limit=3, token=first.token)
    assert [result.key for result in second.results] == [a_dead_one(0).occurrence.key]
    assert second.token is None


def test_a_dry_run_says_what_would_be_and_writes_nothing(world: World) -> None:
    world.created(schedule="gone")
    world.put(a_dead_one(9, schedule="gone"))
    world.plane.cancel_schedule(replace(KEY, schedule=ScheduleId("gone")), author=AUTHOR)
    before = world.writes()
    done = replayed(world, dry_run=True)
    assert [result.why for result in done.results] == ["its schedule is CANCELED", *([None] * 4)]
    assert [result.run for result in done.results] == [None] * 5
    assert world.writes() == before
    assert world.budgets.rows == {}


def test_a_refusal_takes_no_token(world: World) -> None:
    world.created(schedule="gone")
    world.put(a_dead_one(9, schedule="gone"))
    world.plane.cancel_schedule(replace(KEY, schedule=ScheduleId("gone")), author=AUTHOR)
    assert times(replayed(world)) == [None, *(NOW + number * GAP for number in range(4))]


class SlowLedger(InMemoryLedger):
    """Each read of a row takes six seconds."""

    clock: ManualClock

    def between(self, *args: object, **kwargs: object) -> tuple[object, ...]:  # type: ignore[override]  # handed on
        self.clock.advance_to(self.clock.now() + timedelta(seconds=6))
        return super().between(*args, **kwargs)  # type: ignore[arg-type]


def slow(world: World) -> InMemoryLedger:
    ledger = SlowLedger(outbox=world.outbox)
    ledger.rows, ledger.clock = world.ledger.rows, world.clock
    world.plane = world.plane_on(world.schedules, ledger)
    return ledger


def test_a_call_stops_in_time_and_its_token_goes_on(world: World) -> None:
    """Four reads fill the time, so nothing is left for the writes but to say so."""
    slow(world)
    with pytest.raises(Unavailable, match="no time"):
        replayed(world)
    assert world.clock.now() - NOW <= TIME_MAX + timedelta(seconds=6)
    first = replayed(world, limit=3)
    assert [result.run is not None for result in first.results] == [True] * 3
    assert first.token is not None
    second = replayed(world, limit=3, token=first.token)
    assert len(second.results) == 1


def test_those_of_a_list_that_were_not_reached_say_so(world: World) -> None:
    slow(world)
    refs = [(ScheduleId("invoices"), a_dead_one(n).occurrence.key.run) for n in range(4)]
    done = world.plane.replay_dead_letters.named(TENANT, refs, dry_run=False)
    assert [result.why for result in done.results] == [NO_TIME] * 4


def named(world: World, *refs: tuple[str, str]) -> Sequence[str | None]:
    pairs = [(ScheduleId(schedule), ref) for schedule, ref in refs]
    done = world.plane.replay_dead_letters.named(TENANT, pairs, dry_run=False)
    return [result.why for result in done.results]


def test_a_list_of_refs_is_replayed_each_once(world: World) -> None:
    ref = "2026-11-30T09:05:00.000Z"
    assert named(world, ("invoices", ref), ("invoices", ref)) == [None]
    assert len(listed(world)) == 3


def test_each_of_a_list_is_refused_for_itself(world: World) -> None:
    done = a_run(an_occurrence(scheduled_for=NINE + 25 * MINUTE), state=RunState.SUCCEEDED)
    world.put(done)
    found = named(
        world,
        ("nobody", "2026-11-30T09:05:00.000Z"),
        ("invoices", "2026-11-30T09:05:00.000Z"),
        ("invoices", "2026-11-30T09:25:00.000Z"),
        ("invoices", "2026-11-30T23:00:00.000Z"),
    )
    assert found == [
        "the tenant has no such schedule",
        None,
        "it has SUCCEEDED; force true delivers it once more",
        "it has no row of its own; a backfill can run it",
    ]


@pytest.mark.parametrize("count", [0, REPLAYS_MAX + 1])
def test_a_list_has_so_many_and_no_more(world: World, count: int) -> None:
    with pytest.raises(Rejected, match="1 to 100"):
        named(world, *[("invoices", "2026-11-30T09:05:00.000Z")] * count)
