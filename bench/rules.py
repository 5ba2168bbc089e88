"""How long the time engine takes for a rule: `python -m bench.rules`.

Cold is an engine that remembers nothing of any text, rule or zone; warm is the same question once
more. Every number is the best of a few tries, since what a busy machine adds is not the engine's.
Exits with 1 when a budget is passed.
"""

import gc
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import NamedTuple
from zoneinfo import ZoneInfo

from puntual.domain import civil_time, cron_grammar, cron_search, expression
from puntual.domain.expression import Rule
from scripts.cases import Case, cases_in, rule_in

ENGINE = (civil_time, cron_grammar, cron_search, expression)
CORPUS = Path(__file__).parents[1] / "tests" / "unit" / "domain" / "cron_cases.json"
TRIES = 7
PARSE_MICROSECONDS_MAX = 200.0
NEXT_FIRE_MICROSECONDS_MAX = 150.0
WORST_MICROSECONDS_MAX = 5_000.0
JUMP_MICROSECONDS_MAX = 1_000.0

LEAP_OR_MONDAY: Case = {"expression": "0 0 29 2 1", "start": "2026-03-01T00:00:00Z"}
SKIPPED_DAY: Case = {
    "expression": "0 12 * * *",
    "time_zone": "Pacific/Apia",
    "start": "2011-12-30T00:00:00Z",  # the noon before, and none on the 30th
}
EVERY_MINUTE: Case = {
    "expression": "* * * * *",
    "time_zone": "America/New_York",
    "start": "2026-01-01T00:00:00Z",
}
BACK_AGAIN = datetime(2027, 1, 1, tzinfo=UTC)
OUTAGES = {"a minute": timedelta(minutes=1), "a year": timedelta(days=365)}


class Took(NamedTuple):
    """Microseconds."""

    cold: float
    warm: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    name: str
    took: Took
    budget: float | None = None

    @property
    def passed(self) -> bool:
        return self.budget is not None and max(self.took.cold, self.took.warm or 0) > self.budget

    def __str__(self) -> str:
        numbers = (self.took.cold, self.took.warm, self.budget)
        shown = ("-" if number is None else f"{number:,.0f}" for number in numbers)
        return f"{self.name:<50}" + "".join(f" {number:>8}" for number in shown)


def forget_everything() -> None:
    """Make the engine as cold as in a new process, but for the files of the zones."""
    # Nobody but whoever measures has a use for that, so the engine does not offer it.
    for module in ENGINE:
        for value in vars(module).values():
            if hasattr(value, "cache_clear") and value.__module__ == module.__name__:
                value.cache_clear()


def took(ask: Callable[[], object]) -> Took:
    cold, warm = [], []
    for _ in range(TRIES):
        forget_everything()
        cold.append(_microseconds(ask))
        warm.append(_microseconds(ask))
    return Took(min(cold), min(warm))


def _microseconds(ask: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    ask()
    return (time.perf_counter_ns() - start) / 1_000


def parsing(case: Case) -> Took:
    return took(lambda: rule_in(case))


def finding_next(case: Case) -> Took:
    rule, start = rule_in(case), datetime.fromisoformat(str(case["start"]))
    return took(lambda: rule.next_fire(start))


def jumping(outage: timedelta) -> Took:
    """Come back after an outage: the latest of the missed fires, and the next one."""
    rule = rule_in(EVERY_MINUTE)
    return took(lambda: _catch_up(rule, outage))


def _catch_up(rule: Rule, outage: timedelta) -> None:
    last = rule.last_fire(BACK_AGAIN)
    assert last is not None
    missed = rule.next_fire(BACK_AGAIN - outage)
    assert missed is not None
    assert rule.next_fire(max(last, BACK_AGAIN)) is not None


def summary(name: str, times: Sequence[Took], *, budget: float) -> Iterator[Row]:
    colds, warms = [each.cold for each in times], [each.warm or 0 for each in times]
    middle, worst = Took(median(colds), median(warms)), Took(max(colds), max(warms))
    yield Row(name=f"{name}, median of {len(times)}", took=middle, budget=budget)
    yield Row(name=f"{name}, worst", took=worst, budget=WORST_MICROSECONDS_MAX)


def corpus() -> list[Case]:
    return [case for case in cases_in(CORPUS) if "expected" in case]


def rows(cases: Sequence[Case]) -> Iterator[Row]:
    for case in cases:
        rule_in(case)  # reads the file of the zone
    yield from summary("rule from text", [*map(parsing, cases)], budget=PARSE_MICROSECONDS_MAX)
    yield from summary("next fire", [*map(finding_next, cases)], budget=NEXT_FIRE_MICROSECONDS_MAX)
    named = {"0 0 29 2 1": LEAP_OR_MONDAY, "Pacific/Apia over 2011-12-30": SKIPPED_DAY}
    for name, case in named.items():
        rule_in(case)
        for what, measure in (("rule from text", parsing), ("next fire", finding_next)):
            yield Row(name=f"{what}, {name}", took=measure(case), budget=WORST_MICROSECONDS_MAX)
    for name, outage in OUTAGES.items():
        yield Row(
            name=f"last and next fire after an outage of {name}",
            took=jumping(outage),
            budget=JUMP_MICROSECONDS_MAX,
        )
    ZoneInfo.clear_cache()
    loading = _microseconds(lambda: ZoneInfo("America/New_York"))
    yield Row(name="file of a zone, once a process", took=Took(loading, None))


def report(measured: Iterable[Row]) -> int:
    """Print a line for each row, and give the exit code."""
    sys.stdout.write(f"{'microseconds':<50} {'cold':>8} {'warm':>8} {'budget':>8}\n")
    over = []
    for row in measured:
        sys.stdout.write(f"{row}\n")
        over += [row.name] * row.passed
    for name in over:
        sys.stdout.write(f"over its budget: {name}\n")
    return 1 if over else 0


def main() -> int:
    gc.disable()
    return report(rows(corpus()))


if __name__ == "__main__":
    sys.exit(main())
