"""Dead letters in the ledger: a sparse index of them, and the way back into a lane."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from puntual.application.ports import Ledger
from puntual.domain.errors import Unavailable
from puntual.domain.occurrence import Kind
from puntual.domain.page import Page
from puntual.domain.replay import DeadLetterFilter, page_of, reopened
from puntual.domain.run import Run, RunState
from puntual.domain.tenant import ScheduleId
from tests.builders import NINE, TENANT, a_run, a_schedule, a_version, an_occurrence
from tests.contract.conftest import RETENTION, Aws, World
from tests.contract.sdk import recording, refusing, repeating

MINUTE = timedelta(minutes=1)
HEAD = a_schedule(a_version(version=3))
EVERY = DeadLetterFilter()
LATER = NINE + timedelta(days=20)


@pytest.fixture
def ledger(world: World) -> Ledger:
    return world.ledger


def a_dead_one(minute: int = 0, *, schedule: str = "invoices", tenant: str = TENANT) -> Run:
    """Give one of nine o'clock's minutes that died a second after its time."""
    at = NINE + minute * MINUTE
    dead = a_run(
        an_occurrence(tenant=tenant, schedule=schedule, scheduled_for=at),
        state=RunState.DEAD,
        reason="HTTP 503",
        write_id=f"dead-{schedule}-{minute}",
    )
    return replace(dead, died_at=at + timedelta(seconds=1))


def put(ledger: Ledger, *runs: Run) -> None:
    for run in runs:
        assert ledger.swap(run, seen=None)


def dead(
    ledger: Ledger, which: DeadLetterFilter = EVERY, *, before: str | None = None, limit: int = 9
) -> tuple[Run, ...]:
    return ledger.dead(TENANT, which, before=before, limit=limit).runs


def replayed(run: Run, *, not_before: datetime = LATER, write_id: str = "replay") -> Run:
    return replace(reopened(run, HEAD, not_before=not_before), write_id=write_id)


def page(run: Run) -> Page:
    return page_of(run, HEAD, shard=2, now=LATER)


def pages(world: World) -> tuple[Page, ...]:
    return world.outbox.left(2, written_before=LATER + MINUTE, limit=9)


def test_dead_letters_of_a_tenant_are_listed_the_last_to_have_died_first(ledger: Ledger) -> None:
    runs = [a_dead_one(minute) for minute in range(4)]
    put(ledger, *runs, a_dead_one(7, tenant="other"))
    assert dead(ledger) == tuple(reversed(runs))


@pytest.mark.parametrize("state", [each for each in RunState if each is not RunState.DEAD])
def test_no_other_row_is_among_them(ledger: Ledger, state: RunState) -> None:
    put(ledger, a_run(state=state))
    assert dead(ledger) == ()


def test_all_that_a_row_says_is_listed(ledger: Ledger) -> None:
    of = an_occurrence(kind=Kind.MANUAL, request_id="r-1", version=3)
    run = replace(a_dead_one(), occurrence=of, attempt=4, round=2, authorised_version=3)
    put(ledger, run)
    assert dead(ledger) == (run,)


def test_they_can_be_asked_for_by_schedule_and_by_when_they_died(ledger: Ledger) -> None:
    runs = [a_dead_one(minute) for minute in range(5)]
    others = [a_dead_one(minute, schedule="sync") for minute in range(5)]
    put(ledger, *runs, *others)
    which = DeadLetterFilter(
        schedule=ScheduleId("sync"), since=others[1].died_at, until=others[3].died_at
    )
    assert dead(ledger, which) == (others[3], others[2], others[1])
    nothing = replace(which, since=NINE - 2 * MINUTE, until=NINE - MINUTE)
    assert dead(ledger, nothing) == ()


@pytest.mark.parametrize("schedule", [None, ScheduleId("invoices")])
@pytest.mark.parametrize("limit", [1, 3, 40])
def test_pages_give_each_of_them_once_in_order(
    ledger: Ledger, schedule: ScheduleId | None, limit: int
) -> None:
    runs = [a_dead_one(minute) for minute in range(12)]
    put(ledger, *runs, *(a_dead_one(minute, schedule="sync") for minute in range(12)))
    which, before, found = DeadLetterFilter(schedule=schedule), None, list[Run]()
    for _ in range(60):
        part = ledger.dead(TENANT, which, before=before, limit=limit)
        assert len(part.runs) <= limit
        found += part.runs
        before = part.before
        if before is None:
            break
    assert before is None
    of_invoices = [run for run in found if run.occurrence.schedule == "invoices"]
    assert of_invoices == list(reversed(runs))
    assert len(found) == (12 if schedule else 24)


def test_a_replayed_row_leaves_the_index_and_its_page_is_in_the_outbox(world: World) -> None:
    run = a_dead_one()
    put(world.ledger, run)
    again = replayed(run)
    assert world.ledger.reopen(again, seen=run, page=page(again))
    assert world.ledger.read(run.occurrence.key) == again
    assert dead(world.ledger) == ()
    assert pages(world) == (page(again),)


def test_e2_a_row_that_changed_is_not_reopened_and_no_page_is_put(world: World) -> None:
    run = a_dead_one()
    put(world.ledger, run)
    first, second = replayed(run, write_id="first"), replayed(run, write_id="second")
    assert world.ledger.reopen(first, seen=run, page=page(first))
    world.outbox.delete(page(first))
    assert not world.ledger.reopen(second, seen=run, page=page(second))
    assert world.ledger.read(run.occurrence.key) == first
    assert pages(world) == ()


def test_e2_rounds_that_end_alike_are_told_apart(world: World) -> None:
    """Same state and attempt: the write id is what differs."""
    run = a_dead_one()
    put(world.ledger, run)
    first = replayed(run, write_id="first")
    assert world.ledger.reopen(first, seen=run, page=page(first))
    skipped = replace(first, state=RunState.DEAD, died_at=LATER, write_id="again")
    assert world.ledger.swap(skipped, seen=first)
    late = replayed(run, write_id="late")
    assert not world.ledger.reopen(late, seen=run, page=page(late))
    assert not world.ledger.swap(replace(first, write_id="stale"), seen=run)


def test_p9_a_replay_that_is_repeated_finds_its_own_row(world: World) -> None:
    run = a_dead_one()
    put(world.ledger, run)
    again = replayed(run)
    for _ in range(2):
        assert world.ledger.reopen(again, seen=run, page=page(again))
    assert len(pages(world)) == 1


def test_p9_the_sdk_may_repeat_a_replay(aws: Aws) -> None:
    run = a_dead_one()
    put(aws.world.ledger, run)
    again = replayed(run)
    with (
        repeating(aws.dynamodb, "TransactWriteItems"),
        recording(aws.dynamodb, "TransactWriteItems") as calls,
    ):
        assert aws.world.ledger.reopen(again, seen=run, page=page(again))
    assert {call["ClientRequestToken"] for call in calls} == {"replay"}


def test_a_row_outlives_the_round_that_is_opened_at_the_end_of_its_time(aws: Aws) -> None:
    run = a_dead_one()
    put(aws.world.ledger, run)
    again = replayed(run)
    aws.world.ledger.reopen(again, seen=run, page=page(again))
    [row] = aws.dynamodb.scan(TableName="occurrences")["Items"]
    assert int(row["expires_at"]["N"]) == (LATER + RETENTION).timestamp()


def test_a_list_that_is_throttled_is_unavailable(aws: Aws) -> None:
    with refusing(aws.dynamodb, "Query", "ThrottlingException"), pytest.raises(Unavailable):
        dead(aws.world.ledger)
