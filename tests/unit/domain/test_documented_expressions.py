"""Every example of docs/expressions.md does what the page says."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from puntual.domain.errors import Rejected
from puntual.domain.expression import Fold, Gap, Rule, rule_of
from puntual.domain.instant import LAST_INSTANT
from puntual.domain.rule_warnings import warnings_of
from tests.builders import NINE

DOCUMENT = Path(__file__).parents[3] / "docs" / "expressions.md"
NONE = "—"
BERLIN = "Europe/Berlin"


def rows(*header: str) -> list[list[str]]:
    """Give the cells of every table with this header, without their backticks."""
    found = [cells for seen, cells in _rows() if seen == list(header)]
    assert found, header
    return found


def _rows() -> Iterator[tuple[list[str], list[str]]]:
    header: list[str] = []
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip().replace("`", "") for cell in line.strip("|").split(" | ")]
        if not line.startswith("|"):
            header = []
        elif not header:
            header = cells
        elif not line.startswith("|---"):
            yield header, cells


def made(expression: str, time_zone: str = "UTC", **policies: Any) -> Rule:
    return rule_of(
        expression,
        time_zone=time_zone,
        anchor=NINE,
        now=NINE,
        hash_key="acme/invoices",
        **policies,
    )


def shown(rule: Rule, like: str, *, after: datetime = NINE) -> str:
    """Give as many fires as `like` has, with their offsets where it has them."""
    wanted = like.split(", ")
    fires = rule.fires_between(after, LAST_INSTANT, limit=len(wanted))
    zone = ZoneInfo(rule.time_zone)
    walls = (fire.astimezone(zone).isoformat(" ", "minutes") for fire in fires)
    return ", ".join(wall[: len(wanted[0])] for wall in walls)


@pytest.mark.parametrize("cells", rows("unix", "cron(…)", "when", "next fires"))
def test_both_dialects_fire_as_documented(cells: list[str]) -> None:
    *expressions, _, fires = cells
    for expression in expressions:
        if expression != NONE:
            assert shown(made(expression), fires) == fires


@pytest.mark.parametrize(("expression", "fires"), rows("expression", "next fires"))
def test_rates_and_ats_fire_as_documented(expression: str, fires: str) -> None:
    assert shown(made(expression), fires) == fires


@pytest.mark.parametrize(
    ("expression", "became"),
    rows("expression of the schedule invoices of acme", "becomes"),
)
def test_h_becomes_what_is_documented(expression: str, became: str) -> None:
    assert made(expression).expression == became


@pytest.mark.parametrize(
    ("expression", "policy", "after", "fires"),
    rows("expression, in Europe/Berlin", "policy", "after", "next fires"),
)
def test_policies_do_what_is_documented(
    expression: str, policy: str, after: str, fires: str
) -> None:
    name, _, value = policy.partition(" ")
    rule = made(expression, BERLIN, **{name: Gap(value) if name == "gap" else Fold(value)})
    assert shown(rule, fires, after=datetime.fromisoformat(after)) == fires


@pytest.mark.parametrize(("expression", "said"), rows("expression", "the refusal says"))
def test_what_is_documented_as_refused_is_refused_so(expression: str, said: str) -> None:
    with pytest.raises(Rejected) as caught:
        made(expression)
    assert said in caught.value.allowed


@pytest.mark.parametrize(("expression", "said"), rows("expression", "warnings of the answer"))
def test_what_is_documented_as_warned_of_is_warned_of(expression: str, said: str) -> None:
    (warning,) = warnings_of(made(expression), now=NINE)
    assert said in warning
