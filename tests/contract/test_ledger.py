"""The ledger: one run per scheduled time, and every write known again."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from botocore.exceptions import ClientError

from puntual.application.codec import schedule_key_text
from puntual.application.ports import Ledger
from puntual.domain.errors import Unavailable
from puntual.domain.occurrence import Kind
from puntual.domain.run import Note, Run, RunState, RunSwap, Span, Unchanged
from puntual.domain.schedule import ScheduleKey
from puntual.domain.slot import Place, Slot, SlotSwap
from tests.builders import (
    NINE,
    SCHEDULE,
    TENANT,
    a_note,
    a_place,
    a_run,
    a_slot,
    a_span,
    an_occurrence,
    written_as,
)
from tests.contract.conftest import RETENTION, Aws, World
from tests.contract.sdk import recording, refusing, repeating, timing_out
from tests.fakes.in_memory_ledger import InMemoryLedger

KEY = ScheduleKey(tenant=TENANT, schedule=SCHEDULE)
MINUTE = timedelta(minutes=1)


def everything(ledger: Ledger) -> tuple[Run | Span | Note, ...]:
    return ledger.between(KEY, first="2026-01-01", last="2026-12-31", limit=10)


@pytest.fixture
def ledger(world: World) -> Ledger:
    return world.ledger


def test_a_run_that_nobody_wrote_is_absent(ledger: Ledger) -> None:
    assert ledger.read(an_occurrence().key) is None


@pytest.mark.parametrize(
    "run",
    [
        a_run(),
        a_run(an_occurrence(kind=Kind.MANUAL, request_id="r-1", version=3), attempt=4),
        a_run(state=RunState.RETRY_WAIT, attempt=2, reason="HTTP 503"),
        replace(a_run(state=RunState.MISSED, attempt=0, reason="skip"), enqueued_at=None),
        replace(
            a_run(),
            authorised_version=7,
            round=2,
            available_at=NINE + timedelta(seconds=7),
            attempts=(replace(a_run().attempts[0], finished_at=NINE + MINUTE, result="¡olé!"),),
        ),
    ],
)
def test_a_run_is_read_as_it_was_written(ledger: Ledger, run: Run) -> None:
    assert ledger.swap(run, seen=None)
    assert ledger.read(run.occurrence.key) == run


def test_only_the_first_of_two_claims_of_an_absent_row_takes_it(ledger: Ledger) -> None:
    assert ledger.swap(a_run(write_id="one"), seen=None)
    assert not ledger.swap(a_run(write_id="two"), seen=None)
    assert ledger.read(an_occurrence().key) == a_run(write_id="one")


def test_versions_meet_on_the_same_row(ledger: Ledger) -> None:
    assert ledger.swap(a_run(an_occurrence(version=1), write_id="one"), seen=None)
    assert not ledger.swap(a_run(an_occurrence(version=2), write_id="two"), seen=None)


def test_a_swap_of_what_was_seen_succeeds_once(ledger: Ledger) -> None:
    seen = a_run(write_id="one")
    ledger.swap(seen, seen=None)
    assert ledger.swap(a_run(attempt=2, write_id="two"), seen=seen)
    assert not ledger.swap(a_run(attempt=2, write_id="three"), seen=seen)
    assert ledger.read(seen.occurrence.key) == a_run(attempt=2, write_id="two")


def test_a_swap_of_a_row_that_is_gone_is_lost(ledger: Ledger) -> None:
    assert not ledger.swap(a_run(write_id="two"), seen=a_run(write_id="one"))
    assert ledger.read(an_occurrence().key) is None


def test_a_swap_that_is_repeated_finds_its_own_row(ledger: Ledger) -> None:
    assert ledger.swap(a_run(write_id="one"), seen=None)
    assert ledger.swap(a_run(write_id="one"), seen=None)
    second = a_run(attempt=2, write_id="two")
    assert ledger.swap(second, seen=a_run(write_id="one"))
    assert ledger.swap(second, seen=a_run(write_id="one"))


def test_a_write_needs_an_id(ledger: Ledger) -> None:
    with pytest.raises(AssertionError):
        ledger.swap(a_run(write_id=""), seen=None)
    with pytest.raises(AssertionError):
        ledger.record(a_run(write_id=""))


def test_an_outcome_is_recorded_over_the_running_attempt(ledger: Ledger) -> None:
    ledger.swap(a_run(write_id="claim"), seen=None)
    outcome = a_run(state=RunState.SUCCEEDED, write_id="outcome")
    assert ledger.record(outcome)
    assert ledger.read(outcome.occurrence.key) == outcome


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (a_run(attempt=2), "another attempt"),
        (a_run(an_occurrence(version=2)), "another id"),
        (a_run(state=RunState.RETRY_WAIT), "not running"),
        (a_run(state=RunState.DEAD), "terminal"),
        (None, "absent"),
    ],
)
def test_an_outcome_is_lost_on(ledger: Ledger, row: Run | None, why: str) -> None:
    assert why
    before = a_run(write_id="other")
    if row is not None:
        before = written_as(row, "other")
        ledger.swap(before, seen=None)
    outcome = a_run(state=RunState.SUCCEEDED, write_id="outcome")
    assert not ledger.record(outcome)
    assert ledger.read(outcome.occurrence.key) == (before if row is not None else None)


def test_an_outcome_that_is_repeated_finds_its_own_row(ledger: Ledger) -> None:
    ledger.swap(a_run(write_id="claim"), seen=None)
    outcome = a_run(state=RunState.SUCCEEDED, write_id="outcome")
    assert ledger.record(outcome)
    assert ledger.record(outcome)


def test_a_note_is_put_once_and_leaves_its_key_to_the_run(ledger: Ledger) -> None:
    ledger.note(a_note(reason="first"))
    ledger.note(a_note(reason="second"))
    assert everything(ledger) == (a_note(reason="first"),)
    assert ledger.swap(a_run(), seen=None)


def test_notes_of_two_versions_stand_side_by_side(ledger: Ledger) -> None:
    notes = tuple(a_note(an_occurrence(version=version)) for version in (1, 2))
    for note in notes:
        ledger.note(note)
    assert everything(ledger) == notes


def test_a_span_is_cut_at_midnights(ledger: Ledger) -> None:
    span = a_span(NINE - timedelta(days=2), NINE)
    ledger.put_spans([span])
    assert everything(ledger) == tuple(span.cut_at_midnights())
    assert len(everything(ledger)) == 3


def test_of_two_spans_with_one_end_the_wider_is_kept(ledger: Ledger) -> None:
    wide, narrow = a_span(NINE - 5 * MINUTE, NINE), a_span(NINE - MINUTE, NINE)
    ledger.put_spans([narrow])
    assert everything(ledger) == (narrow,)
    ledger.put_spans([wide])
    ledger.put_spans([narrow, replace(wide, reason="later")])
    assert everything(ledger) == (wide,)


def test_canceled_spans_of_two_versions_stand_side_by_side(ledger: Ledger) -> None:
    spans = [
        a_span(NINE - MINUTE, NINE, version=version, state=RunState.CANCELED) for version in (1, 2)
    ]
    ledger.put_spans([*spans, a_span(NINE - MINUTE, NINE)])
    assert len(everything(ledger)) == 3


ENDED = replace(a_run(state=RunState.SUCCEEDED, write_id="outcome"), lease_until=None)
SECOND = an_occurrence(scheduled_for=NINE + MINUTE)
SLOT = a_slot(running=an_occurrence(), write_id="claim")
BOTH = a_slot(running=an_occurrence(), waiting=SECOND, write_id="wait")
EMPTY = a_slot(write_id="")


def in_slot(ledger: Ledger) -> Run:
    """Claim, together with the slot."""
    claim = a_run(write_id="claim")
    assert ledger.swap_with_slot(SlotSwap(slot=SLOT, seen=EMPTY), RunSwap(run=claim, seen=None))
    return claim


def test_a_slot_that_nobody_wrote_is_empty(ledger: Ledger) -> None:
    assert ledger.slot(KEY) == EMPTY


def test_a_claim_and_its_slot_are_written_together(ledger: Ledger) -> None:
    claim = in_slot(ledger)
    assert (ledger.read(claim.occurrence.key), ledger.slot(KEY)) == (claim, SLOT)


@pytest.mark.parametrize(
    "place",
    [
        a_place(an_occurrence(kind=Kind.MANUAL, request_id="r-1", version=3)),
        a_place(judged_version=9),
    ],
)
def test_a_slot_is_read_as_it_was_written(ledger: Ledger, place: Place) -> None:
    slot = replace(EMPTY, running=place, waiting=a_place(SECOND), write_id="one")
    assert ledger.swap_with_slot(SlotSwap(slot=slot, seen=EMPTY))
    assert ledger.slot(KEY) == slot


def test_two_claims_of_one_slot_never_both_take_it(ledger: Ledger) -> None:
    in_slot(ledger)
    other = a_slot(running=SECOND, write_id="two")
    run = RunSwap(run=a_run(SECOND, write_id="two"), seen=None)
    assert not ledger.swap_with_slot(SlotSwap(slot=other, seen=EMPTY), run)
    assert ledger.read(SECOND.key) is None
    assert ledger.slot(KEY) == SLOT


def test_a_claim_of_a_row_that_changed_takes_no_slot(ledger: Ledger) -> None:
    ledger.swap(a_run(write_id="other"), seen=None)
    swap = SlotSwap(slot=SLOT, seen=EMPTY)
    assert not ledger.swap_with_slot(swap, RunSwap(run=a_run(write_id="claim"), seen=None))
    assert ledger.slot(KEY) == EMPTY


def test_a_slot_that_only_must_be_as_it_was_seen_stays_so(ledger: Ledger) -> None:
    claim = in_slot(ledger)
    retry = a_run(attempt=2, write_id="retry")
    same = SlotSwap(slot=replace(SLOT, write_id="retry"), seen=SLOT)
    assert ledger.swap_with_slot(same, RunSwap(run=retry, seen=claim))
    assert ledger.slot(KEY) == SLOT
    assert ledger.swap_with_slot(SlotSwap(slot=BOTH, seen=SLOT))
    again = RunSwap(run=a_run(attempt=3, write_id="again"), seen=retry)
    late = SlotSwap(slot=replace(SLOT, write_id="again"), seen=SLOT)
    assert not ledger.swap_with_slot(late, again)
    assert ledger.read(claim.occurrence.key) == retry


def test_a_skip_on_a_slot_that_was_never_written_needs_it_absent(ledger: Ledger) -> None:
    same = SlotSwap(slot=replace(EMPTY, write_id="end"), seen=EMPTY)
    end = a_run(SECOND, state=RunState.MISSED, attempt=0, write_id="end")
    assert ledger.swap_with_slot(same, RunSwap(run=end, seen=None))
    assert ledger.slot(KEY) == EMPTY
    in_slot(ledger)
    third = a_run(an_occurrence(scheduled_for=NINE + 2 * MINUTE), write_id="end")
    assert not ledger.swap_with_slot(same, RunSwap(run=third, seen=None))


def test_a_waiting_place_is_taken_only_while_the_row_is_as_it_was_seen(ledger: Ledger) -> None:
    in_slot(ledger)
    absent = Unchanged(key=SECOND.key, seen=None)
    row = a_run(SECOND, state=RunState.RETRY_WAIT, write_id="row")
    ledger.swap(row, seen=None)
    assert not ledger.swap_with_slot(SlotSwap(slot=BOTH, seen=SLOT), absent)
    as_it_is = Unchanged(key=SECOND.key, seen=row)
    assert ledger.swap_with_slot(SlotSwap(slot=BOTH, seen=SLOT), as_it_is)
    assert ledger.slot(KEY) == BOTH


def test_a_request_to_end_goes_with_the_waiting_place(ledger: Ledger) -> None:
    claim = in_slot(ledger)
    asked = RunSwap(run=replace(claim, cancel_requested=True, write_id="wait"), seen=claim)
    absent = Unchanged(key=SECOND.key, seen=None)
    assert ledger.swap_with_slot(SlotSwap(slot=BOTH, seen=SLOT), absent, asked)
    assert ledger.read(claim.occurrence.key) == asked.run
    assert ledger.slot(KEY) == BOTH


def test_a_run_that_was_asked_to_end_records_its_end_but_no_retry(ledger: Ledger) -> None:
    asked = replace(a_run(write_id="claim"), cancel_requested=True)
    ledger.swap(asked, seen=None)
    assert not ledger.record(a_run(state=RunState.RETRY_WAIT, write_id="retry"))
    assert ledger.record(ENDED)


def test_a_terminal_outcome_frees_the_slot_for_who_waits(ledger: Ledger) -> None:
    claim = in_slot(ledger)
    ledger.swap_with_slot(SlotSwap(slot=BOTH, seen=SLOT))
    assert ledger.record_and_free(ENDED)
    assert ledger.read(claim.occurrence.key) == ENDED
    assert ledger.slot(KEY) == a_slot(waiting=SECOND, write_id="outcome")


@pytest.mark.parametrize("slot", [EMPTY, a_slot(running=SECOND, write_id="one")])
def test_an_outcome_of_a_run_that_is_not_in_the_slot_leaves_it_alone(
    ledger: Ledger, slot: Slot
) -> None:
    ledger.swap(a_run(), seen=None)
    if slot.write_id:
        ledger.swap_with_slot(SlotSwap(slot=slot, seen=EMPTY))
    assert ledger.record_and_free(ENDED)
    assert ledger.read(ENDED.occurrence.key) == ENDED
    assert ledger.slot(KEY) == slot


def test_an_outcome_that_is_lost_frees_nothing(ledger: Ledger) -> None:
    claim = in_slot(ledger)
    second = a_run(attempt=2, write_id="second")
    same = SlotSwap(slot=replace(SLOT, write_id="second"), seen=SLOT)
    ledger.swap_with_slot(same, RunSwap(run=second, seen=claim))
    assert not ledger.record_and_free(ENDED)
    assert (ledger.read(claim.occurrence.key), ledger.slot(KEY)) == (second, SLOT)


def test_transactions_that_are_repeated_find_their_own_rows(ledger: Ledger) -> None:
    in_slot(ledger)
    in_slot(ledger)
    asked = replace(a_run(), cancel_requested=True, write_id="wait")
    wait = (SlotSwap(slot=BOTH, seen=SLOT), RunSwap(run=asked, seen=a_run(write_id="claim")))
    assert ledger.swap_with_slot(*wait)
    assert ledger.swap_with_slot(*wait)
    assert ledger.record_and_free(ENDED)
    assert ledger.record_and_free(ENDED)
    assert not ledger.swap_with_slot(*wait)


def test_a_slot_is_no_row_between_any_keys(ledger: Ledger) -> None:
    claim = in_slot(ledger)
    assert ledger.between(KEY, first="0", last="~", limit=9) == (claim,)
    assert ledger.between(KEY, first="0", last="~", limit=9, newest_first=True) == (claim,)


def test_rows_between_two_keys_come_in_their_order(ledger: Ledger) -> None:
    runs = [a_run(an_occurrence(scheduled_for=NINE + n * MINUTE)) for n in range(5)]
    for run in reversed(runs):
        ledger.swap(run, seen=None)
    first, last = runs[1].occurrence.key.run, runs[3].occurrence.key.run
    assert ledger.between(KEY, first=first, last=last, limit=9) == tuple(runs[1:4])
    assert ledger.between(KEY, first=first, last=last, limit=2) == tuple(runs[1:3])
    newest = ledger.between(KEY, first=first, last=last, limit=2, newest_first=True)
    assert newest == (runs[3], runs[2])


def test_rows_of_other_schedules_do_not_show(ledger: Ledger) -> None:
    ledger.swap(a_run(an_occurrence(schedule="invoices-2")), seen=None)
    ledger.swap(a_run(an_occurrence(tenant="other")), seen=None)
    assert everything(ledger) == ()


def test_a_run_stands_before_its_spans_and_notes(ledger: Ledger) -> None:
    ledger.note(a_note())
    ledger.put_spans([a_span(NINE - MINUTE, NINE)])
    ledger.swap(a_run(), seen=None)
    rows = everything(ledger)
    assert [type(row).__name__ for row in rows] == ["Run", "Span", "Note"]


def test_the_fake_can_forget_its_own_writes() -> None:
    ledger = InMemoryLedger(knows_own_writes=False)
    assert ledger.swap(a_run(), seen=None)
    assert not ledger.swap(a_run(), seen=None)
    assert ledger.record(a_run(state=RunState.DEAD, write_id="two"))
    assert not ledger.record(a_run(state=RunState.DEAD, write_id="two"))


def test_a_claim_that_the_sdk_repeats_is_a_success(aws: Aws) -> None:
    with repeating(aws.dynamodb, "PutItem"):
        assert aws.world.ledger.swap(a_run(write_id="claim"), seen=None)
        assert aws.world.ledger.record(a_run(state=RunState.DEAD, write_id="outcome"))
        assert not aws.world.ledger.swap(a_run(write_id="late"), seen=None)


def test_a_claim_that_timed_out_is_unavailable_and_can_be_repeated(aws: Aws) -> None:
    with timing_out(aws.dynamodb, "PutItem"), pytest.raises(Unavailable):
        aws.world.ledger.swap(a_run(), seen=None)
    assert aws.world.ledger.swap(a_run(), seen=None)


def test_a_transaction_that_the_sdk_repeats_is_a_success(aws: Aws) -> None:
    with repeating(aws.dynamodb, "TransactWriteItems"):
        in_slot(aws.world.ledger)
        assert aws.world.ledger.record_and_free(ENDED)


def test_a_transaction_carries_its_write_id_as_token(aws: Aws) -> None:
    with recording(aws.dynamodb, "TransactWriteItems") as calls:
        in_slot(aws.world.ledger)
        aws.world.ledger.record_and_free(ENDED)
    assert [call["ClientRequestToken"] for call in calls] == ["claim", "outcome"]


@pytest.mark.parametrize(
    ("code", "reasons"),
    [
        ("TransactionCanceledException", ("None", "TransactionConflict")),
        ("TransactionCanceledException", ("ConditionalCheckFailed", "TransactionConflict")),
        ("TransactionInProgressException", ()),
    ],
)
def test_conflicts_with_other_transactions_are_waited_out(
    aws: Aws, code: str, reasons: tuple[str, ...]
) -> None:
    with refusing(aws.dynamodb, "TransactWriteItems", code, reasons=reasons, times=2):
        in_slot(aws.world.ledger)
    assert aws.naps == [0.05, 0.1]


def test_conflicts_that_last_are_unavailable(aws: Aws) -> None:
    reasons = ("None", "TransactionConflict")
    with (
        refusing(
            aws.dynamodb, "TransactWriteItems", "TransactionCanceledException", reasons=reasons
        ),
        pytest.raises(Unavailable),
    ):
        in_slot(aws.world.ledger)


def test_a_transaction_that_can_never_succeed_is_our_own_fault(aws: Aws) -> None:
    reasons = ("None", "ValidationError")
    with (
        refusing(
            aws.dynamodb, "TransactWriteItems", "TransactionCanceledException", reasons=reasons
        ),
        pytest.raises(ClientError),
    ):
        in_slot(aws.world.ledger)


def test_a_slot_never_expires(aws: Aws) -> None:
    in_slot(aws.world.ledger)
    rows = aws.dynamodb.scan(TableName="occurrences")["Items"]
    assert {row["row"]["S"]: "expires_at" in row for row in rows} == {"run": True, "slot": False}


def test_a_throttle_is_unavailable(aws: Aws) -> None:
    with refusing(aws.dynamodb, "Query", "ThrottlingException"), pytest.raises(Unavailable):
        everything(aws.world.ledger)


@pytest.mark.parametrize(
    ("run", "expires_from"),
    [
        (a_run(), NINE),
        (replace(a_run(), enqueued_at=NINE + timedelta(days=90)), NINE + timedelta(days=90)),
    ],
)
def test_a_row_expires_a_retention_after_its_own_time(
    aws: Aws, run: Run, expires_from: datetime
) -> None:
    aws.world.ledger.swap(run, seen=None)
    aws.world.ledger.put_spans([a_span(NINE - MINUTE, NINE)])
    rows = aws.dynamodb.scan(TableName="occurrences")["Items"]
    expiries = {row["row"]["S"]: int(row["expires_at"]["N"]) for row in rows}
    assert expiries["run"] == (expires_from + RETENTION).timestamp()
    assert expiries["span"] == (NINE + RETENTION).timestamp()
    assert {row["tenant_schedule"]["S"] for row in rows} == {schedule_key_text(KEY)}
