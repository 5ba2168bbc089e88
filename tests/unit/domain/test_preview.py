"""The fires and notes that a preview puts together, and how far it looks."""

from datetime import UTC, datetime, timedelta

import pytest

from puntual.domain.clock_changes import ChangeKind, FireNoteKind
from puntual.domain.expression import Gap, Rule
from puntual.domain.instant import FIRST_INSTANT, LAST_INSTANT, YEAR
from puntual.domain.preview import PREVIEW_FIRES_MAX, Preview, preview_of

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)
BERLIN = "Europe/Berlin"


def a_rule(expression: str, time_zone: str = BERLIN, **parts: datetime) -> Rule:
    return Rule(
        expression=expression,
        time_zone=time_zone,
        gap=Gap.FIRE_AFTER,
        anchor=NOW,
        start_at=parts.get("start_at"),
        end_at=parts.get("end_at"),
    )


def preview(rule: Rule, *, after: datetime = NOW, count: int = 5) -> Preview:
    return preview_of(rule, after=after, count=count, available_at=lambda fire: fire)


def test_the_fires_are_those_of_the_engine() -> None:
    rule = a_rule("0 9 * * 1-5")
    fires = tuple(fire.instant for fire in preview(rule).fires)
    assert fires == rule.fires_between(NOW, LAST_INSTANT, limit=5)


def test_a_fire_says_from_when_it_may_run() -> None:
    jittered = preview_of(
        a_rule("0 9 * * *"),
        after=NOW,
        count=2,
        available_at=lambda fire: fire + timedelta(minutes=3),
    )
    for fire in jittered.fires:
        assert fire.available_at - fire.instant == timedelta(minutes=3)


def test_a_change_in_march_is_seen_in_november() -> None:
    seen = preview(a_rule("30 2 * * *"))
    assert seen.fires[-1].instant < datetime(2026, 12, 10, tzinfo=UTC)
    assert seen.notes_through == seen.fires[-1].instant + YEAR
    assert [(change.kind, change.first.month) for change in seen.clock_changes] == [
        (ChangeKind.SHIFTED, 3),
        (ChangeKind.COLLAPSED, 10),
    ]


def test_an_odd_fire_carries_its_note() -> None:
    spring = datetime(2027, 3, 27, 12, tzinfo=UTC)
    first, second = preview(a_rule("30 2 * * *"), after=spring, count=2).fires
    assert [note.kind for note in first.notes] == [FireNoteKind.SHIFTED]
    assert first.instant == datetime(2027, 3, 28, 1, tzinfo=UTC)
    assert second.notes == ()
    autumn = datetime(2027, 10, 30, 23, 50, tzinfo=UTC)
    passes = [
        note.kind
        for fire in preview(a_rule("*/30 * * * *"), after=autumn, count=6).fires
        for note in fire.notes
    ]
    assert passes == [FireNoteKind.FIRST] * 2 + [FireNoteKind.SECOND] * 2


def test_without_a_fire_left_it_looks_a_year_ahead_all_the_same() -> None:
    seen = preview(a_rule("cron(30 2 ? * * 2027)"), after=datetime(2028, 1, 1, tzinfo=UTC))
    assert (seen.fires, seen.clock_changes) == ((), ())
    assert seen.notes_through == datetime(2028, 1, 1, tzinfo=UTC) + YEAR


def test_a_rule_that_ended_before_a_change_has_no_note_on_it() -> None:
    seen = preview(a_rule("30 2 * * *", end_at=NOW + timedelta(days=9)), count=100)
    assert len(seen.fires) == 9
    assert seen.clock_changes == ()


@pytest.mark.parametrize(
    ("expression", "zone", "after"),
    [
        ("0 0 29 2 *", "America/New_York", FIRST_INSTANT),
        ("0 0 * 2 1#5", "Africa/Casablanca", NOW),
        ("* * * * *", "Antarctica/Troll", datetime(2399, 12, 31, tzinfo=UTC)),
        ("0 0 31 12 *", "Pacific/Kiritimati", datetime(2399, 12, 1, tzinfo=UTC)),
        ("rate(999999 days)", "UTC", NOW),
    ],
)
def test_the_ends_of_the_calendar_can_be_previewed(
    expression: str, zone: str, after: datetime
) -> None:
    seen = preview(a_rule(expression, zone), after=after, count=PREVIEW_FIRES_MAX)
    instants = [fire.instant for fire in seen.fires]
    assert instants == sorted(set(instants))
    assert all(after < instant <= LAST_INSTANT for instant in instants)
    assert seen.notes_through <= LAST_INSTANT
