from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from puntual.domain.instant import MILLISECOND
from puntual.domain.judgement import (
    FOREIGN_WAIT,
    RECORD_TIME,
    AskAgain,
    Claim,
    Drop,
    End,
    Forget,
    Park,
    Standing,
    Verdict,
    before_head,
    before_row,
    buried,
    failed,
    judge,
    succeeded,
)
from puntual.domain.message import Message
from puntual.domain.occurrence import Kind, Occurrence
from puntual.domain.policies import (
    ATTEMPTS_MAX,
    Completion,
    CompletionPolicy,
    Misfire,
    MisfirePolicy,
    Policies,
    RetryPolicy,
)
from puntual.domain.run import LEASE_MARGIN, RUN_AGE_MAX, Note, Run, RunState
from puntual.domain.schedule import ScheduleVersion
from puntual.domain.target import Failed
from tests.builders import NINE, TARGET, a_message, a_run, a_schedule, a_version, an_occurrence

SECOND = timedelta(seconds=1)
FIRE = NINE + timedelta(minutes=5)
SOON = FIRE + SECOND
MINE = an_occurrence(scheduled_for=FIRE)
TERMINAL = [state for state in RunState if state.is_terminal]
LONG_AFTER = FIRE + timedelta(minutes=2)
"""After any lease of `a_run` has run out."""


def standing(
    version: ScheduleVersion | None = None,
    *,
    head_version: int = 1,
    min_valid_version: int = 0,
    until: datetime | None = None,
) -> Standing:
    own = version or a_version(until=until)
    head = own if head_version == own.version else a_version(version=head_version)
    return Standing(
        asked_at=SOON,
        head=a_schedule(head, min_valid_version=min_valid_version),
        version=own,
        until=until,
    )


def verdict(
    row: Run | None = None,
    *,
    occurrence: Occurrence = MINE,
    at: Standing | None = None,
    now: datetime = SOON,
    asked_at: datetime | None = None,
    available_at: datetime | None = None,
    authorised_version: int | None = None,
) -> Verdict:
    """Judge as the use case does: by the message, by the row, by the head."""
    message = a_message(
        occurrence, available_at=available_at, authorised_version=authorised_version
    )
    return (
        before_row(message, now)
        or before_head(message, row, now)
        or judge(message, row, replace(at or standing(), asked_at=asked_at or now), now)
    )


def late(policy: Misfire, *, max_lateness: timedelta | None = None) -> ScheduleVersion:
    misfire = MisfirePolicy(policy=policy, max_lateness=max_lateness)
    return a_version(policies=Policies(misfire=misfire))


def ended(found: Verdict) -> tuple[RunState, str]:
    assert isinstance(found, End)
    return found.run.state, found.run.reason


# By the message


def test_nothing_starts_before_it_is_available_not_by_a_millisecond() -> None:
    assert verdict(now=FIRE - MILLISECOND) == Park(until=FIRE, why="too early")
    assert isinstance(verdict(now=FIRE), Claim)


# By the row


@pytest.mark.parametrize("state", TERMINAL)
def test_a_message_of_a_terminal_row_is_forgotten(state: RunState) -> None:
    assert verdict(a_run(MINE, state=state)) == Forget()


@pytest.mark.parametrize("state", TERMINAL)
def test_p6_a_message_is_forgotten_if_another_version_has_run_at_its_time(state: RunState) -> None:
    other = a_run(an_occurrence(version=2, scheduled_for=FIRE), state=state)
    assert verdict(other) == Forget()


def test_p7_a_message_that_meets_a_live_lease_parks_until_it_has_surely_run_out() -> None:
    row = a_run(MINE)
    assert row.lease_until is not None
    parked = verdict(row)
    assert parked == Park(until=row.lease_until + LEASE_MARGIN + SECOND, why="live lease")
    assert not row.has_live_lease(parked.until)


def test_p5_a_pause_or_cancel_parks_on_a_live_lease() -> None:
    voided = standing(head_version=2, min_valid_version=2, until=FIRE + timedelta(hours=1))
    assert isinstance(verdict(a_run(MINE), at=voided), Park)


def test_e3_a_message_waits_behind_the_waiting_row_of_another_id() -> None:
    other = a_run(an_occurrence(version=2, scheduled_for=FIRE), state=RunState.RETRY_WAIT)
    assert verdict(other) == Park(until=SOON + FOREIGN_WAIT, why="row of another id")


def test_e3_a_voided_message_leaves_the_row_of_another_id_alone() -> None:
    other = a_run(an_occurrence(version=3, scheduled_for=FIRE), state=RunState.RETRY_WAIT)
    voided = standing(head_version=3, min_valid_version=2, until=FIRE + timedelta(hours=1))
    assert isinstance(verdict(other, at=voided), Park)


# By the head: voided


def test_p3_a_voided_message_of_what_was_due_before_the_end_becomes_canceled() -> None:
    voided = standing(head_version=2, min_valid_version=2, until=FIRE + MILLISECOND)
    assert ended(verdict(at=voided)) == (RunState.CANCELED, "voided")


def test_p3_a_voided_message_of_an_instant_that_another_version_owns_leaves_a_note() -> None:
    voided = standing(head_version=2, min_valid_version=2, until=FIRE)
    note = Note(occurrence=MINE, reason="voided", noted_at=SOON)
    assert verdict(at=voided) == Drop(note=note, why="voided")


def test_p3_a_voided_manual_run_leaves_a_note() -> None:
    manual = an_occurrence(scheduled_for=FIRE, kind=Kind.MANUAL, request_id="r1")
    voided = standing(head_version=2, min_valid_version=2, until=FIRE + timedelta(hours=1))
    found = verdict(occurrence=manual, at=voided)
    assert isinstance(found, Drop)
    assert found.note is not None


def test_p3_a_message_is_judged_by_the_version_that_authorised_it() -> None:
    at = standing(head_version=3, min_valid_version=3, until=FIRE + timedelta(hours=1))
    assert isinstance(verdict(at=at, authorised_version=3), Claim)
    assert isinstance(verdict(at=at, authorised_version=2), End)


def test_e2_the_rows_own_authorised_version_counts_where_an_old_duplicate_carries_none() -> None:
    row = replace(a_run(MINE, state=RunState.RETRY_WAIT), authorised_version=3)
    at = standing(head_version=3, min_valid_version=3, until=FIRE + timedelta(hours=1))
    assert isinstance(verdict(row, at=at), Claim)


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.RETRY_WAIT])
def test_p5_a_pause_or_cancel_ends_a_waiting_or_expired_row_after_its_attempts(
    state: RunState,
) -> None:
    voided = standing(head_version=2, min_valid_version=2, until=FIRE + timedelta(hours=1))
    found = verdict(a_run(MINE, state=state, attempt=2), at=voided, now=LONG_AFTER)
    assert ended(found) == (RunState.CANCELED, "voided after attempt 2")
    assert isinstance(found, End)
    assert (found.run.lease_until, found.run.not_before) == (None, None)


def test_p3_a_version_at_the_bound_is_valid() -> None:
    assert isinstance(verdict(at=standing(min_valid_version=1)), Claim)


# By the head: superseded


@pytest.mark.parametrize("after", [timedelta(0), MILLISECOND])
def test_p3_a_superseded_message_is_dropped_since_the_next_version_owns_its_time(
    after: timedelta,
) -> None:
    at = standing(head_version=2, until=FIRE - after)
    assert verdict(at=at) == Drop(note=None, why="superseded")


def test_p3_an_edit_drops_no_run_that_was_due_before_it() -> None:
    assert isinstance(verdict(at=standing(head_version=2, until=FIRE + MILLISECOND)), Claim)


def test_p5_supersession_no_longer_applies_once_there_is_a_row() -> None:
    row = a_run(MINE, state=RunState.RETRY_WAIT)
    assert isinstance(verdict(row, at=standing(head_version=2, until=FIRE)), Claim)


def test_e3_a_replayed_row_that_has_no_attempt_yet_belongs_to_its_id() -> None:
    row = a_run(MINE, state=RunState.RETRY_WAIT, attempt=0)
    assert isinstance(verdict(row, at=standing(head_version=2, until=FIRE)), Claim)


def test_what_a_person_asked_for_is_never_superseded() -> None:
    manual = an_occurrence(scheduled_for=FIRE, kind=Kind.MANUAL, request_id="r1")
    at = standing(head_version=2, until=FIRE)
    assert isinstance(verdict(occurrence=manual, at=at), Claim)


# By the head: missed


@pytest.mark.parametrize(
    ("policy", "late_by", "reason"),
    [
        (Misfire.SKIP, timedelta(seconds=60), None),
        (Misfire.SKIP, timedelta(seconds=60, milliseconds=1), "skip"),
        (Misfire.FIRE_ONCE, timedelta(minutes=4), None),
        (Misfire.FIRE_ONCE, timedelta(minutes=5) - MILLISECOND, None),
        (Misfire.FIRE_ONCE, timedelta(minutes=5), "fire_once"),
    ],
)
def test_e5_the_misfire_policy_is_applied_at_a_first_claim(
    policy: Misfire, late_by: timedelta, reason: str | None
) -> None:
    found = verdict(at=standing(late(policy)), now=FIRE + late_by)
    if reason is None:
        assert isinstance(found, Claim)
    else:
        assert ended(found) == (RunState.MISSED, reason)


def test_e5_the_latest_fire_is_asked_for_up_to_the_versions_end_only() -> None:
    version = replace(late(Misfire.FIRE_ONCE), until=FIRE + timedelta(minutes=5))
    at = Standing(
        asked_at=SOON,
        head=a_schedule(a_version(version=2)),
        version=version,
        until=FIRE + timedelta(minutes=5),
    )
    assert isinstance(verdict(at=at, now=FIRE + timedelta(minutes=9)), Claim)


def flexible(*, until: datetime | None = None) -> tuple[ScheduleVersion, datetime]:
    """Give a version whose windows leave no pause between fires, and when its fire may run."""
    version = a_version(policies=Policies(window=timedelta(minutes=5)), until=until)
    available_at = version.fires.available_at(FIRE)
    assert FIRE + SECOND < available_at < FIRE + timedelta(minutes=4), "else it proves nothing"
    return version, available_at


def test_e5_the_latest_fire_is_the_one_that_is_the_last_to_be_available() -> None:
    version, mine = flexible()
    following = version.fires.available_at(FIRE + timedelta(minutes=5))
    assert following > max(FIRE + timedelta(minutes=5), mine + timedelta(seconds=61))
    at = standing(version)
    in_its_window = verdict(at=at, available_at=mine, now=following - MILLISECOND)
    assert isinstance(in_its_window, Claim), "the next fire has come but may not run yet"
    by_then = verdict(at=at, available_at=mine, now=following)
    assert ended(by_then) == (RunState.MISSED, "fire_once")


def test_p3_a_run_before_the_end_of_its_version_starts_though_it_is_available_after() -> None:
    version, mine = flexible(until=FIRE + SECOND)
    at = standing(version, head_version=2, until=version.until)
    assert isinstance(verdict(at=at, available_at=mine, now=mine), Claim)
    at = standing(version, head_version=2, min_valid_version=2, until=version.until)
    voided = verdict(at=at, available_at=mine, now=mine)
    assert ended(voided) == (RunState.CANCELED, "voided")


def test_e5_what_became_late_after_the_head_was_asked_asks_again() -> None:
    """An edit may have given the instant to the next version in the meantime."""
    at = standing(late(Misfire.SKIP))
    in_time, too_late = FIRE + timedelta(seconds=60), FIRE + timedelta(seconds=61)
    assert verdict(at=at, asked_at=in_time, now=too_late) == AskAgain()
    assert ended(verdict(at=at, asked_at=too_late, now=too_late)) == (RunState.MISSED, "skip")


def test_beyond_max_lateness_nothing_starts() -> None:
    version = late(Misfire.FIRE_ONCE, max_lateness=timedelta(minutes=2))
    found = verdict(at=standing(version), now=FIRE + timedelta(minutes=2, milliseconds=1))
    assert ended(found) == (RunState.MISSED, "max_lateness")
    assert isinstance(verdict(at=standing(version), now=FIRE + timedelta(minutes=2)), Claim)


@pytest.mark.parametrize("kind", [Kind.MANUAL, Kind.BACKFILL])
def test_e5_misfire_applies_to_regular_occurrences_only(kind: Kind) -> None:
    asked = an_occurrence(scheduled_for=FIRE, kind=kind, request_id="r1")
    at = standing(late(Misfire.SKIP, max_lateness=timedelta(minutes=2)))
    assert isinstance(verdict(occurrence=asked, at=at, now=FIRE + timedelta(days=3)), Claim)


def test_e5_misfire_applies_at_the_first_claim_only() -> None:
    row = a_run(MINE, state=RunState.RETRY_WAIT)
    assert isinstance(verdict(row, at=standing(late(Misfire.SKIP)), now=LONG_AFTER), Claim)


@pytest.mark.parametrize("kind", list(Kind))
def test_nothing_starts_that_the_ledger_may_soon_forget(kind: Kind) -> None:
    request_id = "" if kind is Kind.REGULAR else "r1"
    old = an_occurrence(scheduled_for=FIRE, kind=kind, request_id=request_id)
    found = verdict(occurrence=old, now=FIRE + RUN_AGE_MAX + MILLISECOND)
    assert ended(found) == (RunState.MISSED, "older than the ledger remembers")


# By the head: claim


def test_a_first_claim_takes_attempt_one_and_a_lease_for_timeout_and_record() -> None:
    message = a_message(MINE, enqueued_at=FIRE, authorised_version=1)
    found = judge(message, None, standing(), SOON)
    assert isinstance(found, Claim)
    run = found.run
    assert (run.state, run.attempt, run.round_attempt) == (RunState.RUNNING, 1, 1)
    assert run.lease_until == SOON + TARGET.timeout + RECORD_TIME
    assert (run.enqueued_at, run.authorised_version) == (FIRE, 1)
    assert [(attempt.number, attempt.started_at) for attempt in run.attempts] == [(1, SOON)]


def test_p5_a_row_that_waits_is_claimed_from_its_not_before_on() -> None:
    row = replace(a_run(MINE, state=RunState.RETRY_WAIT), not_before=SOON)
    assert verdict(row, now=SOON - MILLISECOND) == Park(until=SOON, why="backoff")
    found = verdict(row, now=SOON)
    assert isinstance(found, Claim)
    assert (found.run.attempt, found.run.round_attempt) == (2, 2)
    assert (found.run.not_before, found.run.reason) == (None, "")


def test_p7_what_had_its_longest_duration_says_so() -> None:
    completion = CompletionPolicy(policy=Completion.CALLBACK, max_duration=timedelta(minutes=1))
    row = a_run(MINE)
    row = replace(row, lease_until=row.attempts[0].started_at + timedelta(minutes=1))
    policies = Policies(completion=completion)
    for how, ends in (
        (standing(a_version(policies=policies)), 2),
        (standing(a_version(policies=replace(policies, retry=RetryPolicy(max_attempts=1)))), 1),
        (standing(a_version(policies=policies), min_valid_version=2), 1),
    ):
        found = judge(a_message(MINE), row, how, LONG_AFTER)
        assert isinstance(found, Claim | End)
        assert found.run.attempts[0].result == "max_duration"
        assert len(found.run.attempts) == ends


def test_p5_a_lease_is_taken_over_only_once_it_has_surely_run_out() -> None:
    row = a_run(MINE)
    assert row.lease_until is not None
    assert isinstance(verdict(row, now=row.lease_until + LEASE_MARGIN), Park)
    found = verdict(row, now=row.lease_until + LEASE_MARGIN + MILLISECOND)
    assert isinstance(found, Claim)
    first, second = found.run.attempts
    assert first.result == "lease ran out"
    assert second.number == found.run.attempt == 2


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.RETRY_WAIT])
def test_a_row_with_no_attempt_left_in_its_round_is_dead(state: RunState) -> None:
    found = verdict(a_run(MINE, state=state, attempt=5), now=LONG_AFTER)
    assert ended(found) == (RunState.DEAD, "attempts used up")


def test_a_new_round_has_a_fresh_budget_but_the_fence_never_resets() -> None:
    row = replace(a_run(MINE, state=RunState.RETRY_WAIT, attempt=7), round_attempt=0)
    found = verdict(row, now=LONG_AFTER)
    assert isinstance(found, Claim)
    assert (found.run.attempt, found.run.round_attempt) == (8, 1)


def test_no_occurrence_has_more_attempts_than_the_bound_over_all_its_rounds() -> None:
    row = replace(a_run(MINE, state=RunState.RETRY_WAIT, attempt=ATTEMPTS_MAX), round_attempt=0)
    assert ended(verdict(row, now=LONG_AFTER)) == (RunState.DEAD, "attempts used up")


# Outcomes


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.RETRY_WAIT])
def test_e4_an_undeliverable_message_makes_its_own_row_dead(state: RunState) -> None:
    row = a_run(MINE, state=state)
    dead = buried(a_message(MINE), row, LONG_AFTER)
    assert (dead.state, dead.reason, dead.attempt) == (RunState.DEAD, "undeliverable", 1)
    assert (dead.lease_until, dead.not_before) == (None, None)


def test_e4_an_undeliverable_message_without_a_row_leaves_a_dead_one() -> None:
    message: Message = a_message(MINE, enqueued_at=FIRE, authorised_version=4)
    dead = buried(message, None, SOON)
    assert (dead.state, dead.attempt, dead.attempts) == (RunState.DEAD, 0, ())
    assert (dead.enqueued_at, dead.authorised_version) == (FIRE, 4)


def test_a_delivered_attempt_makes_the_run_succeeded() -> None:
    run = succeeded(a_run(MINE), detail="HTTP 204", now=SOON)
    assert (run.state, run.lease_until) == (RunState.SUCCEEDED, None)
    assert (run.attempts[-1].finished_at, run.attempts[-1].result) == (SOON, "HTTP 204")


def fail(run: Run, *, retryable: bool = True, retry_after: timedelta | None = None) -> Run:
    failure = Failed(detail="HTTP 503", retryable=retryable, retry_after=retry_after)
    return failed(run, failure, retry=RetryPolicy(), chance=0.5, now=SOON)


def test_a_failed_attempt_waits_for_its_backoff() -> None:
    run = fail(a_run(MINE, attempt=2))
    assert (run.state, run.reason, run.lease_until) == (RunState.RETRY_WAIT, "HTTP 503", None)
    assert run.not_before == SOON + timedelta(seconds=10)
    assert run.attempts[-1].result == "HTTP 503"


def test_a_failed_attempt_honours_the_receivers_retry_after() -> None:
    run = fail(a_run(MINE), retry_after=timedelta(seconds=77))
    assert run.not_before == SOON + timedelta(seconds=77)


@pytest.mark.parametrize(
    "run",
    [
        a_run(MINE, attempt=5),
        replace(a_run(MINE, attempt=ATTEMPTS_MAX), round_attempt=1),
    ],
)
def test_a_failure_that_was_the_last_try_is_dead(run: Run) -> None:
    dead = fail(run)
    assert (dead.state, dead.reason, dead.lease_until) == (RunState.DEAD, "HTTP 503", None)
    assert dead.not_before is None


def test_a_failure_that_no_repeat_can_mend_is_dead_at_once() -> None:
    assert fail(a_run(MINE), retryable=False).state is RunState.DEAD


def test_backoff_counts_the_failures_of_the_round_only() -> None:
    run = fail(replace(a_run(MINE, attempt=9), round_attempt=1))
    assert run.not_before == SOON + timedelta(seconds=5)
