"""The public cases: each says what it is about and whose report it comes from."""

from pathlib import Path

import pytest

from scripts.cases import Case, cases_in, failure_of

CASES = cases_in(Path(__file__).with_name("cron_cases.json"))


@pytest.mark.parametrize("case", CASES, ids=[str(case["id"]) for case in CASES])
def test_a_rule_does_what_its_case_says(case: Case) -> None:
    assert failure_of(case) is None, case["why"]


def test_every_public_case_is_run() -> None:
    assert sum("expected" in case for case in CASES) == 207
    assert sum("error" in case for case in CASES) == 52
    assert len(CASES) == 259
