from dataclasses import replace
from datetime import timedelta

import pytest

from puntual.domain.errors import Conflict, Rejected
from puntual.domain.judgement import succeeded
from puntual.domain.occurrence import UnknownOccurrence
from puntual.domain.page import Page
from puntual.domain.replay import ContendedOccurrence, NotReplayable
from puntual.domain.request import Request
from puntual.domain.run import Run, RunState
from puntual.domain.schedule import UnknownSchedule
from puntual.domain.tenant import ScheduleId
from tests.builders import NINE, a_run, a_span, an_occurrence
from tests.control_plane_world import AUTHOR, KEY, World
from tests.fakes.in_memory_ledger import InMemoryLedger

FIRE = NINE + timedelta(minutes=5)
REF = "2026-11-30T09:05:00.000Z"
NOW = NINE + timedelta(hours=1)
DEAD = replace(
    a_run(an_occurrence(scheduled_for=FIRE), state=RunState.DEAD, reason="HTTP 503"),
    died_at=FIRE + timedelta(seconds=9),
)


@pytest.fixture
def world() -> World:
    world = World()
    world.created()
    world.put(DEAD)
    world.clock.advance_to(NOW)
    world.outbox.pages.clear()
    return world


def replay(world: World, *, force: bool = False, request: str | None = None) -> Run:
    asked = None if request is None else Request(key=request, body="{}")
    return world.plane.replay_occurrence(KEY, REF, force=force, request=asked)


def test_a_dead_letter_is_reopened_together_with_its_page(world: World) -> None:
    run = replay(world)
    assert (run.state, run.round, run.not_before) == (RunState.RETRY_WAIT, 1, NOW)
    assert run.authorised_version == 1
    assert world.ledger.read(DEAD.occurrence.key) == run
    [page] = world.outbox.pages.values()
    [planned] = page.planned
    assert (planned.occurrence, planned.round, planned.available_at) == (DEAD.occurrence, 1, NOW)


def test_the_heads_version_authorises_it(world: World) -> None:
    world.plane.pause_schedule(KEY, author=AUTHOR)
    assert replay(world).authorised_version == 2


def test_what_may_not_be_replayed_leaves_everything_as_it_was(world: World) -> None:
    world.plane.cancel_schedule(KEY, author=AUTHOR)
    before = world.writes()
    with pytest.raises(NotReplayable, match="its schedule is CANCELED") as caught:
        replay(world)
    assert isinstance(caught.value, Conflict)
    assert caught.value.ref == REF
    assert world.writes() == before


def test_what_is_waiting_is_not_replayed_once_more(world: World) -> None:
    replay(world)
    with pytest.raises(NotReplayable, match="RETRY_WAIT"):
        replay(world)


def test_an_instant_of_a_span_is_left_to_a_backfill(world: World) -> None:
    world.put(a_span(FIRE + timedelta(minutes=5), FIRE + timedelta(minutes=10)))
    with pytest.raises(NotReplayable, match="a backfill can run it"):
        world.plane.replay_occurrence(KEY, "2026-11-30T09:10:00.000Z", force=False)


def test_what_is_to_come_has_not_begun(world: World) -> None:
    with pytest.raises(NotReplayable, match="SCHEDULED"):
        world.plane.replay_occurrence(KEY, "2026-11-30T11:00:00.000Z", force=False)


def test_what_never_was_is_unknown(world: World) -> None:
    with pytest.raises(UnknownOccurrence):
        world.plane.replay_occurrence(KEY, "2026-11-30T09:07:00.000Z", force=False)
    with pytest.raises(Rejected):
        world.plane.replay_occurrence(KEY, "yesterday", force=False)
    nobody = replace(KEY, schedule=ScheduleId("nobody"))
    with pytest.raises(UnknownSchedule):
        world.plane.replay_occurrence(nobody, REF, force=False)


def test_e2_a_request_opens_one_round_even_after_that_has_ended_and_others_came(
    world: World,
) -> None:
    first = replay(world, request="one")
    _ends(world, first)
    assert replay(world, request="one").round == 1
    second = replay(world, request="two")
    assert second.round == 2
    _ends(world, second)
    for request in ("one", "two"):
        assert replay(world, request=request).round == 2
    assert replay(world, request="three").round == 3


def _ends(world: World, run: Run) -> None:
    ended = replace(run, state=RunState.DEAD, died_at=NOW, write_id=f"ended-{run.round}")
    assert world.ledger.swap(ended, seen=run)


def test_a_success_is_forced_into_another_round(world: World) -> None:
    done = succeeded(replace(DEAD, state=RunState.RUNNING), detail="HTTP 200", now=NOW)
    world.ledger.swap(replace(done, died_at=None, write_id="done"), seen=DEAD)
    with pytest.raises(NotReplayable, match="force"):
        replay(world)
    assert replay(world, force=True).round == 1


class ChangesBeforeEachReplay(InMemoryLedger):
    """Another one writes the row each time between the reading and the writing."""

    def reopen(self, run: Run, *, seen: Run, page: Page) -> bool:
        changed = replace(seen, write_id=f"{run.write_id}-other")
        assert self.swap(changed, seen=seen)
        return super().reopen(run, seen=seen, page=page)


def test_a_row_that_others_change_each_time_is_contended(world: World) -> None:
    ledger = ChangesBeforeEachReplay(outbox=world.outbox)
    ledger.rows = world.ledger.rows
    plane = world.plane_on(world.schedules, ledger)
    with pytest.raises(ContendedOccurrence):
        plane.replay_occurrence(KEY, REF, force=False)
    assert not world.outbox.pages
