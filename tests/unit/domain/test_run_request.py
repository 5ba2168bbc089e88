from dataclasses import replace
from datetime import timedelta

import pytest

from puntual.domain.gate import BY_FIRES
from puntual.domain.instant import MILLISECOND
from puntual.domain.judgement import Claim, End, Standing, judge
from puntual.domain.occurrence import Kind
from puntual.domain.page import OCCURRENCES_PER_PAGE_MAX
from puntual.domain.policies import Misfire, MisfirePolicy, Policies
from puntual.domain.run import RUN_AGE_MAX, Run, RunState
from puntual.domain.run_request import OwnedFire, asked_run
from puntual.domain.timeline import OccurrenceState, merged, state_of
from tests.builders import (
    NINE,
    a_message,
    a_note,
    a_request,
    a_run,
    a_schedule,
    a_version,
    an_occurrence,
)

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


def fires(count: int) -> list[OwnedFire]:
    return [OwnedFire(1, NINE - (count - number) * MINUTE) for number in range(count)]


def asked(kind: Kind = Kind.MANUAL, *, authorised_version: int = 1) -> Run:
    (planned,) = a_request(kind=kind, authorised_version=authorised_version).planned
    return asked_run(planned)


def test_ten_requests_of_one_second_are_ten_occurrences() -> None:
    planned = [a_request(id_=f"r-{number}").planned[0] for number in range(10)]
    assert len({each.occurrence.id for each in planned}) == 10
    assert len({each.occurrence.key for each in planned}) == 10


def test_a_request_gives_the_same_pages_whenever_they_are_written() -> None:
    request = a_request(*fires(250), kind=Kind.BACKFILL)
    first = list(request.pages(3, written_at=NINE))
    later = list(request.pages(3, written_at=NINE + MINUTE))
    assert [page.id for page in first] == [page.id for page in later]
    assert [page.bucket for page in first] == [page.bucket for page in later]
    assert [len(page.planned) for page in first] == [OCCURRENCES_PER_PAGE_MAX] * 2 + [50]
    assert [each for page in first for each in page.planned] == list(request.planned)


@pytest.mark.parametrize(
    ("per_minute", "number", "after"),
    [
        (60, 0, timedelta(0)),
        (60, 59, 59 * SECOND),
        (1, 2, 2 * MINUTE),
        (7, 1, timedelta(milliseconds=8572)),
    ],
)
def test_a_backfill_is_spread_at_the_rate_in_whole_milliseconds(
    per_minute: int, number: int, after: timedelta
) -> None:
    request = a_request(*fires(60), kind=Kind.BACKFILL, per_minute=per_minute)
    assert request.planned[number].available_at == NINE + after


def test_a_request_is_not_sent_again_once_the_ledger_may_have_forgotten_it() -> None:
    assert a_request().may_be_on_its_way(NINE + RUN_AGE_MAX)
    assert not a_request().may_be_on_its_way(NINE + RUN_AGE_MAX + MILLISECOND)


def test_what_was_asked_for_is_to_come_until_it_is_claimed() -> None:
    row = asked()
    assert state_of(row, NINE - SECOND) is OccurrenceState.SCHEDULED
    assert state_of(row, NINE) is OccurrenceState.ENQUEUED
    waiting = a_run(state=RunState.RETRY_WAIT)
    assert state_of(waiting, NINE) is OccurrenceState.RETRY_WAIT


def standing(*, min_valid_version: int = 0, head_version: int = 1) -> Standing:
    policies = Policies(misfire=MisfirePolicy(policy=Misfire.SKIP))
    own = a_version(policies=policies, until=NINE if head_version > 1 else None)
    head = own if head_version == 1 else a_version(version=head_version, policies=policies)
    return Standing(
        asked_at=NINE,
        head=a_schedule(head, min_valid_version=min_valid_version),
        version=own,
        until=own.until,
    )


@pytest.mark.parametrize("kind", [Kind.MANUAL, Kind.BACKFILL])
@pytest.mark.parametrize("has_row", [True, False])
def test_misfire_and_supersession_do_not_apply_to_what_was_asked_for(
    kind: Kind,
    has_row: bool,  # noqa: FBT001 a case
) -> None:
    row = asked(kind)
    message = a_message(row.occurrence, authorised_version=1, enqueued_at=NINE)
    now = NINE + timedelta(days=1)
    verdict = judge(message, row if has_row else None, standing(head_version=2), now)
    assert isinstance(verdict, Claim)
    assert (verdict.run.attempt, verdict.run.enqueued_at) == (1, NINE)


@pytest.mark.parametrize("has_row", [True, False])
def test_what_was_asked_for_tells_who_held_it(
    has_row: bool,  # noqa: FBT001 a case
) -> None:
    row, until = asked(), NINE + MINUTE
    message = replace(
        a_message(row.occurrence, authorised_version=1), held_until=until, held_by=BY_FIRES
    )
    verdict = judge(message, row if has_row else None, standing(), until)
    assert isinstance(verdict, Claim)
    assert (verdict.run.held_by, verdict.run.held_until) == (BY_FIRES, until)


@pytest.mark.parametrize(("authorised", "canceled"), [(1, True), (2, True), (3, False)])
def test_p3_it_is_judged_by_the_version_that_authorised_it(
    authorised: int,
    canceled: bool,  # noqa: FBT001 a case
) -> None:
    row = asked(Kind.BACKFILL, authorised_version=authorised)
    message = a_message(row.occurrence, authorised_version=authorised)
    verdict = judge(message, row, standing(min_valid_version=3, head_version=3), NINE)
    if not canceled:
        assert isinstance(verdict, Claim)
        return
    assert isinstance(verdict, End)
    assert (verdict.run.state, verdict.run.reason) == (RunState.CANCELED, "voided")


def test_a_note_beside_an_asked_run_is_told_only_without_its_row() -> None:
    own = an_occurrence(kind=Kind.MANUAL, request_id="r-1")
    regular, note, row = a_run(), a_note(own), a_run(own)
    assert merged([regular, note], [], spans=[]) == [regular, note]
    assert merged([regular, row, note], [], spans=[]) == [regular, row]
