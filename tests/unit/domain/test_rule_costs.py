"""The table of `python -m bench.rules`; its times say more about the machine, so none is a test."""

import pytest

from bench.rules import Row, Took, report, rows


def test_the_table_has_the_medians_the_worst_and_what_is_known_to_be_hard() -> None:
    names = " ".join(row.name for row in rows() if row.took.cold > 0)
    for part in (
        "rule from text, median of 207",
        "next fire, median of 207",
        "next fire, worst",
        "0 0 29 2 1",
        "Pacific/Apia over 2011-12-30",
        "outage of a minute",
        "outage of a year",
    ):
        assert part in names


@pytest.mark.parametrize(("took", "code"), [(Took(9, 2), 0), (Took(11, 2), 1), (Took(2, 11), 1)])
def test_a_budget_that_is_passed_cold_or_warm_is_told_and_fails(
    took: Took, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = [Row(name="next fire", took=took, budget=10), Row(name="file", took=Took(99, None))]
    assert report(measured) == code
    heading, row, unbounded, *over = capsys.readouterr().out.splitlines()
    assert heading.split() == ["microseconds", "cold", "warm", "budget"]
    assert row.split() == ["next", "fire", str(took.cold), str(took.warm), "10"]
    assert unbounded.split() == ["file", "99", "-", "-"]
    assert over == ["over its budget: next fire"] * code
