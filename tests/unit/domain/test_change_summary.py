"""An edit in one sentence: how many fires come, go, move and stay."""

from datetime import datetime, timedelta

import pytest

from puntual.domain.change_summary import summary_of
from puntual.domain.expression import Rule
from puntual.domain.fire_changes import fire_changes
from tests.builders import NINE, a_rule

SPAN = timedelta(days=90)


def summary(old: Rule | str, new: Rule | str, start: datetime = NINE) -> str:
    old, new = (a_rule(rule) if isinstance(rule, str) else rule for rule in (old, new))
    changes = fire_changes(old, new, start=start, span=SPAN)
    return summary_of(changes, rule_changed=old != new)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("0 9 * * *", "0 10 * * *", "90 fires move, each 1 h later."),
        ("0 10 * * *", "30 7 * * *", "90 fires move, each 2 h 30 min earlier; 1 vanishes."),
        ("0 9 * * *", "0 9 * * MON-FRI", "25 fires vanish, 65 stay."),
        ("0 9 1 * *", "0 9 2 * *", "3 fires move, each 1 d later."),
        ("0 9 1 12 *", "30 10 1 12 *", "1 fire moves, 1 h 30 min later."),
        ("at(2026-12-01T09:00:00)", "at(2026-12-03T10:00:05)", "moves, 2 d 1 h 5 s later."),
        ("0 9 1 12 *", "0 9 1 1,12 *", "1 fire appears, 1 stays."),
        ("0 9,12 * * *", "0 8,14 * * *", ", from 1 h earlier to 2 h later"),
        ("0 9 * * *", "0 10 * * MON-FRI", "65 fires move, each 1 h later; 25 vanish."),
        ("0 9 * * *", "cron(0 9 * * ? *)", "Nothing changes in the next 90 days."),
        (
            "0 9 1 4 *",
            "0 9 1 5 *",
            "; its next fire moves from 2027-04-01T09:00:00Z to 2027-05-01T09:00:00Z.",
        ),
        (
            "at(2026-11-30T08:00:00)",
            "at(2027-04-01T09:00:00)",
            "Nothing changes in the next 90 days; its next fire, at 2027-04-01T09:00:00Z, appears.",
        ),
        (
            "at(2027-04-01T09:00:00)",
            "at(2026-11-30T08:00:00)",
            "its next fire, at 2027-04-01T09:00:00Z, vanishes.",
        ),
        ("* * * * *", "* * * * *", "No fire changes: the rule stays as it was."),
        ("* * * * *", "cron(* * * * ? *)", "Nothing changes until 2026-12-03T00:00:00Z."),
    ],
)
def test_an_edit_is_told_in_a_sentence(old: str, new: str, sentence: str) -> None:
    assert sentence in summary(old, new)


def test_a_comparison_that_was_cut_says_how_far_it_reaches() -> None:
    told = summary("* * * * *", "*/2 * * * *")
    assert told.startswith("Until 2026-12-04T00:00:00Z: ")
    assert told.endswith(" stay.")
