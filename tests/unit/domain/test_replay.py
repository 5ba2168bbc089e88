"""What a replay does to a row, and which rows it may not touch."""

from dataclasses import replace
from datetime import timedelta

import pytest

from puntual.domain.judgement import Claim, Standing, is_of_an_earlier_round, judge, succeeded
from puntual.domain.lane import Lane
from puntual.domain.message import message_of
from puntual.domain.policies import ATTEMPTS_MAX
from puntual.domain.replay import (
    REQUESTS_KEPT_MAX,
    NotReplayable,
    page_of,
    reopened,
    run_in,
    why_not_replayable,
)
from puntual.domain.run import Attempt, Run, RunState
from puntual.domain.schedule import ScheduleState
from puntual.domain.timeline import Fire
from tests.builders import (
    NINE,
    a_message,
    a_note,
    a_page,
    a_planned,
    a_run,
    a_schedule,
    a_span,
    a_version,
    an_occurrence,
)

LATER = NINE + timedelta(hours=3)
HEAD = a_schedule(a_version(version=4), min_valid_version=3)
DEAD = replace(
    a_run(state=RunState.DEAD, attempt=2, reason="HTTP 503"), died_at=NINE, lease_until=None
)


def why(run: Run, *, state: ScheduleState = ScheduleState.ACTIVE, force: bool = False) -> str:
    head = a_schedule(a_version(version=4, state=state))
    return why_not_replayable(run, head, force=force) or ""


@pytest.mark.parametrize(
    "state", [RunState.DEAD, RunState.MISSED, RunState.CANCELED, RunState.SKIPPED_OVERLAP]
)
def test_what_has_ended_without_success_can_be_replayed(state: RunState) -> None:
    assert not why(a_run(state=state))


def test_what_succeeded_is_replayed_by_force_alone() -> None:
    done = a_run(state=RunState.SUCCEEDED)
    assert why(done) == "it has SUCCEEDED; force true delivers it once more"
    assert not why(done, force=True)


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.RETRY_WAIT])
def test_what_has_not_ended_is_refused_by_its_state_whatever_the_force(state: RunState) -> None:
    assert state in why(a_run(state=state), force=True)


@pytest.mark.parametrize("state", [ScheduleState.PAUSED, ScheduleState.COMPLETED])
def test_a_schedule_that_fires_no_more_can_have_its_runs_replayed(state: ScheduleState) -> None:
    assert not why(DEAD, state=state)


def test_nothing_of_a_canceled_schedule_is_replayed() -> None:
    assert why(DEAD, state=ScheduleState.CANCELED, force=True) == "its schedule is CANCELED"


def test_the_attempts_of_an_occurrence_are_bounded_over_all_rounds() -> None:
    assert not why(replace(DEAD, attempt=ATTEMPTS_MAX - 1))
    assert "20 attempts" in why(replace(DEAD, attempt=ATTEMPTS_MAX))


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (a_span(NINE, LATER), "MISSED within a range and has no row; a backfill"),
        (a_note(), "a backfill"),
        (Fire(occurrence=an_occurrence(), available_at=LATER), "SCHEDULED"),
        (Fire(occurrence=an_occurrence(), available_at=NINE), "ENQUEUED"),
    ],
)
def test_what_has_no_row_is_refused_and_told_why(entry: object, told: str) -> None:
    with pytest.raises(NotReplayable, match=told):
        run_in(entry, "2026-11-30T09:00:00.000Z", NINE + timedelta(minutes=1))  # type: ignore[arg-type]  # each of them in turn


def test_a_replay_opens_a_round_under_the_same_id_with_a_fresh_budget() -> None:
    asked = replace(DEAD, cancel_requested=True, authorised_version=2)
    run = reopened(asked, HEAD, not_before=LATER)
    assert run.occurrence == DEAD.occurrence
    assert (run.state, run.round, run.round_attempt) == (RunState.RETRY_WAIT, 1, 0)
    assert (run.attempt, run.attempts) == (2, DEAD.attempts)
    assert (run.not_before, run.authorised_version) == (LATER, 4)
    assert (run.cancel_requested, run.died_at, run.reason) == (False, None, "replay")


def test_a_row_remembers_the_latest_requests() -> None:
    run = DEAD
    for number in range(REQUESTS_KEPT_MAX + 2):
        run = reopened(run, HEAD, not_before=LATER, request=str(number))
    assert len(run.requests) == REQUESTS_KEPT_MAX
    assert run.requests[-1] == str(REQUESTS_KEPT_MAX + 1)
    assert reopened(run, HEAD, not_before=LATER).requests == run.requests


def test_its_page_takes_it_to_the_recovery_lane_when_it_may_begin() -> None:
    run = reopened(DEAD, HEAD, not_before=LATER)
    page = page_of(run, HEAD, shard=3, now=NINE + timedelta(seconds=7))
    message = message_of(page.planned[0], now=NINE)
    assert (page.shard, page.bucket) == (3, NINE)
    assert message.lane is Lane.RECOVERY
    assert (message.available_at, message.round) == (LATER, 1)
    assert message.judged_version == 4


def test_pages_of_two_rounds_are_two_pages() -> None:
    rounds = [a_page(replace(a_planned(), round=number)) for number in range(12)]
    assert len({page.id for page in rounds}) == 12
    assert rounds[0].id == a_page(a_planned()).id


def test_the_rows_authorisation_counts_for_a_duplicate_that_has_none() -> None:
    own = a_version(until=NINE + timedelta(hours=1))
    standing = Standing(asked_at=LATER, head=HEAD, version=own, until=own.until)
    run = reopened(DEAD, HEAD, not_before=LATER)
    claim = judge(a_message(), run, standing, LATER)
    assert isinstance(claim, Claim)
    assert (claim.run.attempt, claim.run.round_attempt, claim.run.round) == (3, 1, 1)
    assert claim.run.attempts[-1].round == 1


@pytest.mark.parametrize(("sent_for", "earlier"), [(0, True), (1, True), (2, False)])
def test_a_message_is_of_an_earlier_round_than_the_rows(sent_for: int, *, earlier: bool) -> None:
    message = replace(a_message(), round=sent_for)
    assert is_of_an_earlier_round(message, replace(DEAD, round=2)) is earlier
    assert not is_of_an_earlier_round(message, None)


def test_the_last_error_is_the_last_failure_of_the_round() -> None:
    def tried(number: int, result: str, round_: int) -> Attempt:
        return Attempt(
            number=number, started_at=NINE, finished_at=NINE, result=result, round=round_
        )

    dead = replace(DEAD, attempts=(tried(1, "HTTP 500", 0), tried(2, "HTTP 503", 0)))
    assert dead.last_error == "HTTP 503"
    replayed = reopened(dead, HEAD, not_before=LATER)
    assert replayed.last_error == ""
    again = replace(replayed, attempts=(*dead.attempts, tried(3, "HTTP 404", 1)))
    assert again.last_error == "HTTP 404"
    done = succeeded(
        replace(again, attempts=(*again.attempts, Attempt(number=4, started_at=NINE, round=1))),
        detail="HTTP 200",
        now=LATER,
    )
    assert done.last_error == "HTTP 404"
    assert replace(DEAD, attempts=(), reason="undeliverable").last_error == "undeliverable"
