"""What may surprise whoever makes a rule is warned of, and nothing else."""

from datetime import UTC, datetime, timedelta

import pytest

from puntual.domain.expression import Fold, Gap, Rule
from puntual.domain.rule_warnings import COUNTS_FROM_SAVE, unsaved_warnings, warnings_of
from tests.builders import a_rule

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NEW_YORK = "America/New_York"


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (a_rule("0 0 13 * 5"), "Both day fields are set"),
        (a_rule("0 0 29 2 *"), "29 February exists only in leap years"),
        (a_rule("0 0 29 * *"), "29 February exists only in leap years"),
        (a_rule("0 0 15,29 * *"), "29 February exists only in leap years"),
        (a_rule("0 0 29W 2 *"), "29 February exists only in leap years"),
        (a_rule("0 0 30 * *"), "February has no day 30"),
        (a_rule("0 0 1,30 2,3 *"), "February has no day 30"),
        (a_rule("0 0 30W * *"), "February has no day 30"),
        (a_rule("0 0 31 * *"), "Not every month has a day 31"),
        (a_rule("0 0 31W * *"), "Not every month has a day 31"),
        (
            a_rule("0 0 * * 5#5"),
            "Not every month has a fifth Friday: there is no fire on it in the others.",
        ),
        (a_rule("0 0 * * 1#5,1#5,5#1,0#5"), "has a fifth Monday or a fifth Sunday:"),
        (
            a_rule("*/90 * * * *"),
            "*/90 steps out of the minute field: only 0 is left of it; rate(90 minutes) keeps",
        ),
        (a_rule("0,5-50/61 * * * *"), "5-50/61 steps out of the minute field: only 5 is left"),
        (a_rule("0 3/30 * * *"), "only 3 is left of it; rate(30 hours)"),
        (a_rule("cron(0 9 */40 * ? *)"), "only 1 is left of it; rate(40 days)"),
        (a_rule("0 9 1 */13 *"), "*/13 steps out of the month field: only 1 is left of it."),
        (a_rule("0 9 * * */8"), "day-of-week field: only 0 is left of it."),
        (a_rule("*/5 * * * *", fold=Fold.FIRST), "auto keeps its pace"),
        (
            a_rule("30 2 * * *", NEW_YORK),
            "02:30 on 2026-03-08 does not exist in America/New_York: that fire is skipped.",
        ),
        (
            a_rule("30 2 * * *", NEW_YORK, gap=Gap.FIRE_AFTER),
            "02:30 on 2026-03-08 does not exist in America/New_York: it fires at 03:00.",
        ),
        (
            a_rule("30 2 * * *", NEW_YORK, start_at=datetime(2030, 1, 1, tzinfo=UTC)),
            "02:30 on 2030-03-10 does not exist",
        ),
        (a_rule("at(2026-11-01T01:30:00)", NEW_YORK), "it fires once, in the first pass."),
        (
            a_rule("at(2044-11-06T01:30:00)", NEW_YORK, fold=Fold.SECOND),
            "01:30 on 2044-11-06 comes twice in America/New_York: it fires once, in the second",
        ),
        (
            a_rule("at(2026-03-08T02:30:00)", NEW_YORK, gap=Gap.FIRE_AFTER),
            "02:30 on 2026-03-08 does not exist in America/New_York: it fires at 03:00.",
        ),
    ],
)
def test_what_may_surprise_is_warned_of(rule: Rule, sentence: str) -> None:
    warnings = warnings_of(rule, now=NOW)
    assert len(warnings) == 1
    assert sentence in warnings[0]


@pytest.mark.parametrize(
    "rule",
    [
        a_rule("0 9 * * 1-5", NEW_YORK),
        a_rule("30 1 * * *", NEW_YORK),
        a_rule("*/5 * * * *", NEW_YORK),
        a_rule("*/60 */24 * * *"),
        a_rule("0 9 * */12 *"),
        a_rule("@daily"),
        a_rule("0 0 31 1,3,12 *"),
        a_rule("0 0 30 1,4 *"),
        a_rule("0 0 29 1,4 *"),
        a_rule("0 0 L * *"),
        a_rule("0 0 31,L * *"),
        a_rule("0 0 28-31 * *"),
        a_rule("0 0 * * 5#4,L5"),
        a_rule("rate(5 minutes)"),
        a_rule("at(2026-11-01T09:00:00)", NEW_YORK),
    ],
)
def test_an_ordinary_rule_is_not_warned_of(rule: Rule) -> None:
    assert warnings_of(rule, now=NOW) == ()


def test_a_pace_that_has_not_begun_is_warned_of() -> None:
    assert unsaved_warnings(a_rule("rate(1 day)")) == (COUNTS_FROM_SAVE,)
    assert unsaved_warnings(a_rule("rate(1 day)", start_at=NOW)) == ()
    assert unsaved_warnings(a_rule("0 9 * * *")) == ()


def test_each_surprise_has_a_warning_of_its_own() -> None:
    days = warnings_of(a_rule("0 0 29,31 * *"), now=NOW)
    assert [warning[:11] for warning in days] == ["29 February", "Not every m"]


def test_a_clock_change_that_is_over_is_not_warned_of() -> None:
    rule = a_rule("at(2026-11-01T01:30:00)", NEW_YORK)
    assert warnings_of(rule, now=datetime(2026, 11, 2, tzinfo=UTC)) == ()
    daily = a_rule("30 2 * * *", NEW_YORK)
    spring = datetime(2026, 3, 8, 7, tzinfo=UTC)
    assert warnings_of(daily, now=spring) == ()
    (warning,) = warnings_of(daily, now=spring + timedelta(days=9))
    assert "2027-03-14" in warning
