"""The table of `python -m bench.rules`; its times say more about the machine, so none is a test."""

import importlib
import pkgutil

import pytest

import puntual.domain
from bench.rules import Row, Took, corpus, forget_everything, report, rows
from puntual.domain.cron_grammar import parse
from scripts.cases import rule_in

FILES_OF_ZONES = {"puntual.domain.zone_names", "puntual.domain.zone_rules"}
CASES = corpus()[::70]


def test_the_table_has_the_medians_the_worst_and_what_is_known_to_be_hard() -> None:
    names = " ".join(row.name for row in rows(CASES) if row.took.cold > 0)
    for part in (
        "rule from text, median of 3",
        "next fire, median of 3",
        "next fire, worst",
        "0 0 29 2 1",
        "Pacific/Apia over 2011-12-30",
        "outage of a minute",
        "outage of a year",
    ):
        assert part in names


def remembered() -> set[str]:
    """Give the caches of the domain that hold something, but for those of files."""
    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.iter_modules(puntual.domain.__path__, "puntual.domain.")
        if found.name not in FILES_OF_ZONES
    ]
    return {
        f"{value.__module__}.{value.__name__}"
        for module in modules
        for value in vars(module).values()
        if hasattr(value, "cache_info") and value.cache_info().currsize
    }


def test_a_cold_engine_remembers_nothing_of_what_it_was_asked() -> None:
    forget_everything()
    before = remembered()
    for case in corpus():
        rule_in(case)
    assert len(remembered() - before) >= 6
    forget_everything()
    assert remembered() == before
    assert parse.cache_info().currsize == 0


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
