from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from puntual.domain.errors import Conflict
from puntual.domain.instant import MILLISECOND
from puntual.domain.schedule import (
    NotPausable,
    NotResumable,
    Schedule,
    ScheduleEnded,
    ScheduleState,
    ScheduleVersion,
    canceled,
    edited,
    effective_from_of,
    paused,
    replanned,
    resumed,
    settled,
)
from tests.builders import NINE, a_rule, a_schedule, a_version

LATER = NINE + timedelta(hours=1)
Change = Callable[..., tuple[Schedule, ScheduleVersion]]


def at(state: ScheduleState) -> tuple[Schedule, ScheduleVersion]:
    """Give head and version 3 in a state; versions below 2 are void."""
    version = a_version(version=3, state=state, effective_from=NINE, request="fingerprint")
    return a_schedule(version, min_valid_version=2), version


def edit(head: Schedule, current: ScheduleVersion, *, now: datetime, author: str) -> object:
    proposed = replace(current, effective_from=effective_from_of(head, now), author=author)
    return edited(head, proposed)


def resume(
    head: Schedule, current: ScheduleVersion, *, now: datetime, author: str
) -> tuple[Schedule, ScheduleVersion]:
    return resumed(head, current, now=now, author=author, tzdata="2026.6")


def replan(
    head: Schedule, current: ScheduleVersion, *, now: datetime, author: str
) -> tuple[Schedule, ScheduleVersion]:
    return replanned(head, current, now=now, author=author, tzdata="2026.6")


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        (edit, ScheduleState.ACTIVE, ScheduleState.ACTIVE),
        (edit, ScheduleState.PAUSED, ScheduleState.PAUSED),
        (edit, ScheduleState.COMPLETED, ScheduleState.ACTIVE),
        (paused, ScheduleState.ACTIVE, ScheduleState.PAUSED),
        (resume, ScheduleState.PAUSED, ScheduleState.ACTIVE),
        (replan, ScheduleState.ACTIVE, ScheduleState.ACTIVE),
        (canceled, ScheduleState.ACTIVE, ScheduleState.CANCELED),
        (canceled, ScheduleState.PAUSED, ScheduleState.CANCELED),
        (canceled, ScheduleState.COMPLETED, ScheduleState.CANCELED),
    ],
)
def test_every_change_makes_the_next_version(
    change: Change, before: ScheduleState, after: ScheduleState
) -> None:
    head, current = at(before)
    new_head, version = change(head, current, now=LATER, author="eva")
    assert (new_head.version, new_head.state) == (4, after)
    assert (version.version, version.state) == (4, after)
    assert (version.effective_from, version.until, version.author) == (LATER, None, "eva")
    assert new_head.created_at == head.created_at


@pytest.mark.parametrize(
    ("change", "before", "refusal"),
    [
        (edit, ScheduleState.CANCELED, ScheduleEnded),
        (canceled, ScheduleState.CANCELED, ScheduleEnded),
        (paused, ScheduleState.CANCELED, NotPausable),
        (paused, ScheduleState.PAUSED, NotPausable),
        (paused, ScheduleState.COMPLETED, NotPausable),
        (resume, ScheduleState.CANCELED, NotResumable),
        (resume, ScheduleState.ACTIVE, NotResumable),
        (resume, ScheduleState.COMPLETED, NotResumable),
    ],
)
def test_a_change_that_the_state_does_not_allow_is_a_conflict(
    change: Change, before: ScheduleState, refusal: type[Conflict]
) -> None:
    head, current = at(before)
    with pytest.raises(refusal):
        change(head, current, now=LATER, author="eva")


@pytest.mark.parametrize(
    ("change", "before", "min_valid_version"),
    [
        (edit, ScheduleState.ACTIVE, 2),
        (resume, ScheduleState.PAUSED, 2),
        (replan, ScheduleState.ACTIVE, 2),
        (paused, ScheduleState.ACTIVE, 4),
        (canceled, ScheduleState.ACTIVE, 4),
    ],
)
def test_p3_only_pause_and_cancel_void_what_was_before(
    change: Change, before: ScheduleState, min_valid_version: int
) -> None:
    head, current = at(before)
    new_head, _ = change(head, current, now=LATER, author="eva")
    assert new_head.min_valid_version == min_valid_version


@pytest.mark.parametrize("late", [timedelta(0), MILLISECOND, timedelta(hours=1)])
def test_effective_from_strictly_rises_though_the_clock_stands_still_or_falls(
    late: timedelta,
) -> None:
    head, _ = at(ScheduleState.ACTIVE)
    assert effective_from_of(head, NINE - late) == NINE + MILLISECOND
    assert effective_from_of(head, NINE + timedelta(seconds=1)) == NINE + timedelta(seconds=1)


def test_a_successor_is_not_the_answer_to_the_request_that_made_its_predecessor() -> None:
    head, current = at(ScheduleState.ACTIVE)
    _, version = paused(head, current, now=LATER, author="eva")
    assert version.request == ""


def test_a_successor_keeps_rule_policies_target_and_payload() -> None:
    head, current = at(ScheduleState.ACTIVE)
    _, version = paused(head, current, now=LATER, author="eva")
    kept = (version.rule, version.policies, version.target, version.payload)
    assert kept == (current.rule, current.policies, current.target, current.payload)


@pytest.mark.parametrize(
    ("change", "before"), [(resume, ScheduleState.PAUSED), (replan, ScheduleState.ACTIVE)]
)
def test_whose_fires_are_computed_anew_carries_the_release_they_are_computed_with(
    change: Change, before: ScheduleState
) -> None:
    head, current = at(before)
    _, version = change(head, current, now=LATER, author="eva")
    assert (current.tzdata, version.tzdata) == ("2026.1", "2026.6")


def test_e11_planning_anew_what_has_no_fire_left_completes() -> None:
    version = a_version(rule=replace(a_rule(), end_at=NINE))
    head, after = replan(a_schedule(version), version, now=LATER, author="eva")
    assert head.state is after.state is ScheduleState.COMPLETED


def test_a_version_owns_the_fire_at_its_very_start() -> None:
    daily = a_rule("0 9 * * *")
    assert a_version(rule=daily, effective_from=NINE).first_fire == NINE
    tomorrow = NINE + timedelta(days=1)
    assert a_version(rule=daily, effective_from=NINE + MILLISECOND).first_fire == tomorrow


def test_e11_a_version_with_no_fire_left_is_completed_at_once() -> None:
    spent = replace(a_rule(), end_at=NINE)
    version = a_version(rule=spent, effective_from=LATER)
    assert settled(version).state is ScheduleState.COMPLETED
    assert settled(a_version()).state is ScheduleState.ACTIVE


def test_e11_a_paused_version_with_no_fire_left_stays_paused() -> None:
    version = a_version(rule=replace(a_rule(), end_at=NINE), state=ScheduleState.PAUSED)
    assert settled(version).state is ScheduleState.PAUSED


def test_e11_resuming_after_the_last_fire_completes() -> None:
    version = a_version(rule=replace(a_rule(), end_at=NINE), state=ScheduleState.PAUSED)
    head, after = resume(a_schedule(version), version, now=LATER, author="eva")
    assert head.state is after.state is ScheduleState.COMPLETED


def test_e11_an_edit_to_a_rule_with_no_fire_left_completes() -> None:
    head, current = at(ScheduleState.ACTIVE)
    spent = replace(current, rule=replace(a_rule(), end_at=NINE), effective_from=LATER)
    new_head, version = edited(head, spent)
    assert new_head.state is version.state is ScheduleState.COMPLETED


def test_a_version_does_not_show_its_payload_where_it_is_printed() -> None:
    assert "secret" not in repr(a_version(payload='"secret"'))
