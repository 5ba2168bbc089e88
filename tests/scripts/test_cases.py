"""The runner of cases: what holds, what fails and in which words, and what is no file of cases."""

import json
from pathlib import Path

import pytest

from puntual.domain.expression import Rule
from scripts.cases import Case, failure_of, main

DAILY: Case = {
    "id": "daily",
    "expression": "0 9 * * *",
    "start": "2026-01-01T00:00:00Z",
    "expected": ["2026-01-01T09:00:00Z", "2026-01-02T09:00:00Z"],
}


def a_case(**changes: object) -> Case:
    return {name: value for name, value in {**DAILY, **changes}.items() if value is not ...}


def a_refusal(**changes: object) -> Case:
    return a_case(expected=..., **changes)


@pytest.mark.parametrize(
    "case",
    [
        DAILY,
        a_case(time_zone="UTC", gap_policy="SKIP", fold_policy="AUTO", dialect="unix", why="…"),
        a_case(expression="cron(0 9 * * ? *)", dialect="eventbridge"),
        a_refusal(expression="CRON(0 9 * * ? *)", dialect="eventbridge", error="invalid"),
        a_case(gap_policy="fire_after", fold_policy=None, exhausted=False, error=None),
        a_case(start="2026-01-01T01:00:00+01:00", expected=["2026-01-01T10:00:00+01:00"]),
        a_case(start="2026-01-01T00:00:00"),
        a_case(expected=[]),
        a_case(
            expression="at(2026-01-01T09:00:00)",
            expected=["2026-01-01T09:00:00Z"],
            exhausted=True,
        ),
        a_case(expression="0 0 31 2 *", expected=[], exhausted=True),
        a_refusal(expression="0 0 31 2 *", error="never_fires"),
        a_refusal(expression="60 * * * *", error="invalid"),
        a_refusal(expression=None, error="invalid"),
        a_refusal(time_zone="Nowhere", error="invalid"),
    ],
)
def test_a_case_that_holds_is_silent(case: Case) -> None:
    assert failure_of(case) is None


NINES = "2026-01-01T09:00:00Z, 2026-01-02T09:00:00Z"
THREE_NINES = f"{NINES}, 2026-01-03T09:00:00Z"
SAYS_NOTHING = "expected a case that says what to do; came"


@pytest.mark.parametrize(
    ("case", "line"),
    [
        (
            a_case(expected=["2026-01-01T10:00:00Z"]),
            "daily: '0 9 * * *': expected 2026-01-01T10:00:00Z; came 2026-01-01T09:00:00Z",
        ),
        (
            a_case(exhausted=True),
            f"daily: '0 9 * * *': expected {NINES}, nothing else; came {THREE_NINES}",
        ),
        (
            a_case(expression="cron(0 9 1 1 ? 2026)"),
            f"daily: 'cron(0 9 1 1 ? 2026)': expected {NINES}; came 2026-01-01T09:00:00Z",
        ),
        (
            a_case(expression="60 * * * *"),
            f"daily: '60 * * * *': expected {NINES}; came invalid",
        ),
        (
            a_refusal(error="invalid"),
            "daily: '0 9 * * *': expected invalid; came a rule",
        ),
        (
            a_refusal(expression="0 0 31 2 *", error="invalid"),
            "daily: '0 0 31 2 *': expected invalid; came never_fires",
        ),
        (
            a_refusal(id=...),
            f"case 1: '0 9 * * *': {SAYS_NOTHING} neither expected nor error",
        ),
        (
            a_case(start="soon"),
            f"daily: '0 9 * * *': {SAYS_NOTHING} start 'soon', which is no instant",
        ),
        (
            a_case(fold_policy="THIRD"),
            f"daily: '0 9 * * *': {SAYS_NOTHING} fold_policy 'THIRD'",
        ),
        (
            a_case(dialect="eventbridge"),
            f"daily: '0 9 * * *': {SAYS_NOTHING} dialect 'eventbridge' of another expression",
        ),
        (
            a_case(expression="rate(1 day)", dialect="unix"),
            f"daily: 'rate(1 day)': {SAYS_NOTHING} dialect 'unix' of another expression",
        ),
    ],
)
def test_a_case_that_fails_says_what_was_expected_and_what_came(case: Case, line: str) -> None:
    assert failure_of(case) == line


def test_a_crash_is_the_failure_of_its_case() -> None:
    def crashes(*_: object, **__: object) -> Rule:
        raise ZeroDivisionError("nine")

    failure = failure_of(DAILY, create=crashes)
    assert failure is not None
    assert failure.endswith("; came a crash: ZeroDivisionError('nine')")


def test_every_failing_case_has_its_line_before_the_total(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cases.json"
    failing = [a_case(id="line\nbreak \udcff", expected=[], error="invalid"), a_case(start=5)]
    path.write_text(json.dumps([DAILY, *failing]))
    assert main([str(path)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 3
    assert said[-1] == "3 cases, 2 failed"


def test_a_case_without_an_id_is_shown_by_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps([DAILY, a_case(id=..., expected=["2026-01-01T10:00:00Z"])]))
    assert main([str(path)]) == 1
    assert capsys.readouterr().out.startswith("case 2: ")


def test_cases_that_all_hold_end_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps([DAILY]))
    assert main([str(path)]) == 0
    assert capsys.readouterr().out == "1 cases, 0 failed\n"


def test_names_that_nobody_reads_are_told_of_and_fail_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps([a_case(timezone="Europe/Madrid", gap="skip", source="a report")]))
    assert main([str(path)]) == 0
    assert capsys.readouterr().err.startswith("Nobody reads gap, timezone; read are expression, ")


@pytest.mark.parametrize(
    "text",
    ["", "no JSON", "{}", "[]", "[1]", '"text"', "[" * 100_000, "\udcff"],
    ids=["nothing", "text", "object", "empty", "number", "string", "deep", "bytes"],
)
def test_what_holds_no_cases_is_refused_in_one_line(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cases.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert main([str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"{path}: ")
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize("arguments", [[], [""], ["a", "b"]])
def test_a_file_must_be_named(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "make cases FILE=" in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (tmp_path, tmp_path / "missing.json"):
        assert main([str(path)]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
