"""Trigger now: one run beside the rule, under an id of its own."""

from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from puntual.application.send_request import SendRequest
from puntual.application.trigger_schedule import TriggerSchedule
from puntual.domain.lane import Lane
from puntual.domain.occurrence import Kind
from puntual.domain.page import Planned
from puntual.domain.request import IdempotencyKeyReused, Request
from puntual.domain.run import RUN_AGE_MAX, Run, RunState
from puntual.domain.run_request import RunRequest
from puntual.domain.schedule import (
    NothingRuns,
    ScheduleKey,
    ScheduleState,
    StaleVersion,
    UnknownSchedule,
)
from puntual.domain.tenant import ScheduleId
from puntual.domain.timeline import OccurrenceState, state_of
from tests.builders import NINE, TENANT
from tests.control_plane_world import AUTHOR, KEY, World
from tests.fakes.hostile import HostileLedger, HostileOutbox, HostileRequests, Hostility
from tests.fakes.in_memory_requests import InMemoryRequests

DAILY = "0 12 * * *"
LATER = timedelta(seconds=20, milliseconds=300)
NOW = NINE + timedelta(milliseconds=700)
KEYED = Request(key="k-1", body="trigger")


class Died(BaseException):
    """The process ends here."""


@pytest.fixture
def world() -> World:
    world = World()
    world.created(DAILY)
    world.clock.advance_to(NOW)
    return world


def on_pages(world: World) -> list[Planned]:
    """What the outbox takes to the lanes, each once."""
    planned = [each for page in world.outbox.pages.values() for each in page.planned]
    return list({each.occurrence.id: each for each in planned}.values())


def rows(world: World) -> list[Run]:
    return [row for row in world.ledger.rows.get(KEY, {}).values() if isinstance(row, Run)]


def test_it_is_on_a_page_and_in_the_ledger_before_it_is_answered(world: World) -> None:
    asked = world.plane.trigger_schedule(KEY)
    (planned,), (row,) = on_pages(world), rows(world)
    assert planned.occurrence == row.occurrence == asked.planned[0].occurrence
    assert (planned.occurrence.kind, planned.occurrence.scheduled_for) == (Kind.MANUAL, NINE)
    assert (planned.authorised_version, row.authorised_version) == (1, 1)
    assert planned.lane_at(NOW) is Lane.STRICT
    assert (row.state, row.attempt) == (RunState.RETRY_WAIT, 0)
    assert state_of(row, NOW) is OccurrenceState.ENQUEUED


def test_it_can_be_shown_and_is_listed_at_once(world: World) -> None:
    run = world.plane.trigger_schedule(KEY).planned[0].occurrence.key.run
    shown = world.plane.show_occurrence(KEY, run.replace("#", "~")).entry
    listed = world.plane.list_occurrences(
        KEY, start=None, end=None, state=OccurrenceState.ENQUEUED, limit=10, token=None
    )
    assert listed.entries == (shown,)


def test_ten_within_a_second_are_ten(world: World) -> None:
    ids = {world.plane.trigger_schedule(KEY).planned[0].occurrence.id for _ in range(10)}
    assert len(ids) == len(on_pages(world)) == len(rows(world)) == 10


def test_a_repeated_key_gives_the_same_occurrence_however_late(world: World) -> None:
    first = world.plane.trigger_schedule(KEY, request=KEYED)
    world.clock.advance(LATER)
    assert world.plane.trigger_schedule(KEY, request=KEYED) == first
    assert len(rows(world)) == 1
    world.outbox.pages.clear()
    world.clock.advance(RUN_AGE_MAX)
    assert world.plane.trigger_schedule(KEY, request=KEYED) == first
    assert not world.outbox.pages, "the ledger may have forgotten that it ran"


def test_a_key_that_stood_for_something_else_is_refused(world: World) -> None:
    world.plane.trigger_schedule(KEY, request=KEYED)
    with pytest.raises(IdempotencyKeyReused):
        world.plane.trigger_schedule(KEY, request=replace(KEYED, body="backfill"))


def trigger_that_dies(world: World, at: int) -> TriggerSchedule:
    """Give the use case of a process that dies at its I/O of this number."""
    count = iter(range(1_000))

    def at_io(_: str) -> None:
        if next(count) == at:
            raise Died

    hostility = Hostility(source=Random(1), at_io=at_io)
    send: SendRequest = world.plane.trigger_schedule.send
    return TriggerSchedule(
        send=replace(
            send,
            requests=HostileRequests(world.requests, hostility),
            outbox=HostileOutbox(world.outbox, hostility),
            ledger=HostileLedger(world.ledger, hostility),
        )
    )


IO_POINTS = 8
"""Before and after: read the request, put it, put the page, put the row."""


@pytest.mark.parametrize("at", range(IO_POINTS))
def test_a_repetition_after_any_crash_makes_one_occurrence(world: World, at: int) -> None:
    with pytest.raises(Died):
        trigger_that_dies(world, at)(KEY, request=KEYED)
    world.clock.advance(LATER)
    asked = world.plane.trigger_schedule(KEY, request=KEYED)
    assert [each.occurrence for each in on_pages(world)] == [asked.planned[0].occurrence]
    assert [row.occurrence for row in rows(world)] == [asked.planned[0].occurrence]


def test_there_are_no_other_places_to_die_at(world: World) -> None:
    trigger_that_dies(world, IO_POINTS)(KEY, request=KEYED)


@pytest.mark.parametrize("at", range(IO_POINTS - 4))
def test_without_a_key_a_row_is_never_left_that_no_page_stands_behind(
    world: World, at: int
) -> None:
    with pytest.raises(Died):
        trigger_that_dies(world, at)(KEY)
    assert len(rows(world)) <= len(on_pages(world))


def test_two_at_once_under_one_key_are_one(world: World) -> None:
    """The second has looked before the first one was remembered."""

    class Unseen(InMemoryRequests):
        def read(self, key: ScheduleKey, request_id: str) -> RunRequest | None:  # noqa: ARG002
            return None

    first = world.plane.trigger_schedule(KEY, request=KEYED)
    unseen = Unseen()
    unseen.rows = world.requests.rows
    world.clock.advance(LATER)
    second = TriggerSchedule(send=replace(world.plane.trigger_schedule.send, requests=unseen))
    assert second(KEY, request=KEYED) == first
    assert len(rows(world)) == 1


def test_the_head_at_the_request_decides_what_runs(world: World) -> None:
    world.plane.pause_schedule(KEY, author=AUTHOR)
    asked = world.plane.trigger_schedule(KEY)
    assert (asked.authorised_version, asked.fires[0].version) == (2, 2)


def test_a_completed_schedule_runs_and_stays_completed(world: World) -> None:
    world.schedules.complete(KEY, 1)
    world.plane.trigger_schedule(KEY)
    assert world.schedules.head_rows[KEY].state is ScheduleState.COMPLETED


def test_a_canceled_schedule_runs_no_more(world: World) -> None:
    world.plane.cancel_schedule(KEY, author=AUTHOR)
    before = world.writes()
    with pytest.raises(NothingRuns, match="CANCELED"):
        world.plane.trigger_schedule(KEY, request=KEYED)
    assert world.writes() == before


def test_a_cancel_tells_of_what_was_triggered_and_not_claimed_yet(world: World) -> None:
    asked = world.plane.trigger_schedule(KEY)
    canceled = world.plane.cancel_schedule(KEY, author=AUTHOR)
    assert [run.occurrence for run in canceled.already_out if isinstance(run, Run)] == [
        asked.planned[0].occurrence
    ]
    assert canceled.running == ()


def test_another_version_than_the_caller_saw_is_refused(world: World) -> None:
    with pytest.raises(StaleVersion):
        world.plane.trigger_schedule(KEY, seen=2)
    world.plane.trigger_schedule(KEY, seen=1)


def test_an_unknown_schedule_is_refused(world: World) -> None:
    with pytest.raises(UnknownSchedule):
        world.plane.trigger_schedule(ScheduleKey(tenant=TENANT, schedule=ScheduleId("none")))


def test_the_live_cursor_stays_where_it_is(world: World) -> None:
    before = world.agenda.cursors()
    world.plane.trigger_schedule(KEY)
    assert world.agenda.cursors() == before
