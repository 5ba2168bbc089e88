"""The public cases: each says what it is about and whose report it comes from."""

import json
from datetime import datetime
from pathlib import Path
from typing import TypedDict, cast

import pytest

from puntual.domain.errors import Rejected
from puntual.domain.expression import (
    Fold,
    Gap,
    InvalidExpression,
    NeverFires,
    Rule,
    UnknownTimeZone,
    rule_of,
)


class Case(TypedDict, total=False):
    id: str
    expression: str
    time_zone: str
    gap_policy: str
    fold_policy: str
    start: str
    expected: list[str]
    exhausted: bool
    error: str
    why: str


CASES = cast(
    "list[Case]", json.loads(Path(__file__).with_name("cron_cases.json").read_text("utf-8"))
)
FIRING = [case for case in CASES if "expected" in case]
REFUSED = [case for case in CASES if "error" in case]
REFUSALS: dict[str, tuple[type[Rejected], ...]] = {
    "invalid": (InvalidExpression, UnknownTimeZone),
    "never_fires": (NeverFires,),
}


def rule_in(case: Case) -> Rule:
    start = datetime.fromisoformat(case["start"])
    return rule_of(
        case["expression"],
        time_zone=case["time_zone"],
        gap=Gap[case["gap_policy"]],
        fold=Fold[case["fold_policy"]],
        anchor=start,
        now=start,
    )


@pytest.mark.parametrize("case", FIRING, ids=[case["id"] for case in FIRING])
def test_a_rule_fires_when_its_case_says(case: Case) -> None:
    rule, after = rule_in(case), datetime.fromisoformat(case["start"])
    for expected in map(datetime.fromisoformat, case["expected"]):
        assert rule.next_fire(after) == expected, case["why"]
        assert rule.last_fire(expected) == expected
        after = expected
    if case.get("exhausted"):
        assert rule.next_fire(after) is None, case["why"]


@pytest.mark.parametrize("case", REFUSED, ids=[case["id"] for case in REFUSED])
def test_a_rule_is_refused_as_its_case_says(case: Case) -> None:
    with pytest.raises(REFUSALS[case["error"]]):
        rule_in(case)


def test_every_public_case_is_run() -> None:
    assert len(FIRING) + len(REFUSED) == len(CASES) == 259
