"""The command that plans anew: what it asks for, says and ends with."""

import io
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from scripts.emulator import ROOT, Refused
from scripts.replan import RUNBOOK, Call, Failed, invoked, line_of, main, replan, replanner_of

MOVED = {
    "tenant": "acme",
    "schedule": "invoices",
    "version": 5,
    "expression": "0 9 * * *",
    "time_zone": "Europe/Berlin",
    "vanished": 90,
    "first_vanished": "2027-03-28T08:00:00.000Z",
    "appeared": 89,
    "first_appeared": "2027-03-28T07:00:00.000Z",
    "complete": True,
}
GONE = {**MOVED, "vanished": 1, "appeared": 0, "first_appeared": None}


def an_answer(*replanned: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "from": ["2026.5"],
        "to": "2026.6",
        "zones": ["Europe/Berlin"],
        "dropped": [],
        "looked_at": 3,
        "already": 1,
        "replanned": list(replanned),
        "refused": [],
        "left": 0,
        "next_token": None,
        "caught_up": True,
        **fields,
    }


class Replanner:
    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers, self.events = list(answers), list[dict[str, Any]]()

    def __call__(self, event: dict[str, Any]) -> dict[str, Any]:
        self.events.append(event)
        return self.answers.pop(0)


def test_it_goes_on_until_no_token_is_left_and_sums_up(capsys: pytest.CaptureFixture[str]) -> None:
    goes_on = "more"
    first = an_answer(MOVED, next_token=goes_on, caught_up=False)
    replanner = Replanner(first, an_answer(GONE))
    replan(replanner, dry_run=False)
    assert [event["next_token"] for event in replanner.events] == [None, goes_on]
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [line_of(MOVED), line_of(GONE)]
    totals = "active schedules in them 6, re-planned 2, on 2026.6 before 2, refused 0."
    assert lines[2:] == [
        f"tzdata 2026.5 -> 2026.6: zone names that differ 1, {totals}",
        "All schedules follow 2026.6.",
    ]


def test_a_dry_run_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    replanner = Replanner(an_answer(MOVED, caught_up=False))
    replan(replanner, dry_run=True)
    assert replanner.events == [{"dry_run": True, "next_token": None}]
    said = capsys.readouterr().out
    assert "to be re-planned 1" in said
    assert "Nothing was written" in said


def test_a_run_that_another_deployment_overtook_is_not_done() -> None:
    with pytest.raises(Failed, match="run it again"):
        replan(Replanner(an_answer(caught_up=False)), dry_run=False)


REFUSED = {"tenant": "acme", "schedule": "old", "reason": "its head cannot be read"}


def test_schedules_that_are_left_are_named_and_the_run_is_not_done(
    capsys: pytest.CaptureFixture[str],
) -> None:
    goes_on = "more"
    first = an_answer(
        refused=[REFUSED], left=1, dropped=["Mars/Phobos"], next_token=goes_on, caught_up=False
    )
    last = an_answer(MOVED, left=1, dropped=["Mars/Phobos"], caught_up=False)
    with pytest.raises(Failed, match=r"1 of them: see docs/runbooks/zone-rules\.md"):
        replan(Replanner(first, last), dry_run=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "acme/old REFUSED: its head cannot be read"
    assert "Zone names that are gone: Mars/Phobos." in lines
    replan(Replanner(first, last), dry_run=True)
    assert Path(RUNBOOK).is_file()


def test_slices_without_an_end_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.replan.SLICES_MAX", 2)
    more = "more"
    with pytest.raises(Failed, match="2 slices"):
        replan(Replanner(*[an_answer(next_token=more)] * 3), dry_run=True)


@pytest.mark.parametrize("spelt", ["1", "yes", "True", "TRUE", "0"])
def test_make_refuses_a_dry_run_that_is_not_spelt_so(spelt: str) -> None:
    made = make_replan(f"DRY_RUN={spelt}")
    assert made.returncode == 2
    assert f"DRY_RUN={spelt}: true, false or nothing is allowed" in made.stderr


@pytest.mark.parametrize(
    ("arguments", "is_dry"),
    [(["DRY_RUN=true"], True), (["DRY_RUN=false"], False), (["DRY_RUN="], False), ([], False)],
)
def test_make_passes_a_dry_run_on(arguments: list[str], is_dry: bool) -> None:  # noqa: FBT001 a parameter of the test
    made = make_replan(*arguments)
    assert made.returncode == 0
    [line] = [line for line in made.stdout.splitlines() if "scripts.replan local" in line]
    assert ("--dry-run" in line) is is_dry


def make_replan(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Let make say what it would run."""
    command = ["make", "--dry-run", "replan", "ENV=local", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - our own argv


def test_a_line_says_who_moves_and_how() -> None:
    assert line_of(MOVED) == (
        "acme/invoices version 5: 0 9 * * * in Europe/Berlin: 90 vanish, the first at "
        "2027-03-28T08:00:00.000Z; 89 appear, the first at 2027-03-28T07:00:00.000Z"
    )
    assert line_of(GONE).endswith("1 vanish, the first at 2027-03-28T08:00:00.000Z")
    undecided = {**MOVED, "vanished": 0, "appeared": 0, "complete": False}
    assert line_of(undecided).endswith(": too many fires to compare them all")
    assert ": at least 90 vanish, the first at" in line_of({**MOVED, "complete": False})


class Functions:
    """A client of Lambda that answers with one payload, or cannot be reached."""

    def __init__(self, payload: object = None, *, failed: bool = False) -> None:
        self.payload, self.failed = payload, failed

    def invoke(self, **_: object) -> dict[str, Any]:
        if self.payload is None:
            raise EndpointConnectionError(endpoint_url="https://aws.example")
        answer = {"Payload": io.BytesIO(json.dumps(self.payload).encode())}
        return answer | ({"FunctionError": "Unhandled"} if self.failed else {})


def test_what_the_function_refuses_is_told_in_its_words() -> None:
    refusal = {"errorMessage": "planners may be at work", "errorType": "FormerPlannersAtWork"}
    with pytest.raises(Failed, match=r"^puntual-dev-replanner: planners may be at work$"):
        invoked(Functions(refusal, failed=True), "puntual-dev-replanner", {})
    with pytest.raises(Failed, match=r"aws\.example"):
        invoked(Functions(), "puntual-dev-replanner", {})
    assert invoked(Functions({"to": "2026.6"}), "puntual-dev-replanner", {}) == {"to": "2026.6"}


def test_a_local_system_that_does_not_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="make up"):
        replanner_of("local", outputs=tmp_path / "outputs.json")


def not_running(_: str) -> Call:
    raise Refused("The local system is not running.")


@pytest.mark.parametrize("arguments", [["nowhere"], [], ["local"], ["local", "--dry"]])
def test_what_cannot_begin_ends_with_two(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments, not_running)
    assert caught.value.code == 2


def test_what_fails_on_the_way_ends_with_one_and_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["dev"], lambda _: Replanner(an_answer(caught_up=False)))
    assert caught.value.code == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_what_is_done_ends_with_nothing() -> None:
    main(["dev", "--dry-run"], lambda _: Replanner(an_answer(caught_up=False)))
