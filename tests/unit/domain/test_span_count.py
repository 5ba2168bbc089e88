from dataclasses import replace
from datetime import timedelta

import pytest

from puntual.domain.instant import MINUTE
from puntual.domain.occurrence import Kind
from puntual.domain.run import Note, Run, RunState, Span
from puntual.domain.span_count import SpanCount, count_of
from tests.builders import NINE, a_rule, a_run, a_span, a_version, an_occurrence

FIVE = 5 * MINUTE
VERSION = a_version(rule=a_rule("*/5 * * * *"), effective_from=NINE - timedelta(days=1))
SPAN = a_span(NINE, NINE + timedelta(hours=1))


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        ((), 13),
        ((SPAN,), 13),
        ((a_run(an_occurrence(scheduled_for=NINE + FIVE)),), 12),
        ((a_run(an_occurrence(scheduled_for=NINE + FIVE, version=2)),), 12),
        ((a_run(an_occurrence(scheduled_for=NINE, kind=Kind.MANUAL, request_id="r")),), 13),
        ((a_span(NINE - FIVE, NINE + 2 * FIVE),), 10),
        ((a_span(NINE, NINE + 2 * FIVE, version=2),), 13),
        ((a_span(NINE, NINE + 2 * FIVE, state=RunState.CANCELED),), 10),
    ],
)
def test_a_span_stands_for_its_version_s_fires_that_have_no_row(
    rows: tuple[Run | Span | Note, ...], count: int
) -> None:
    assert count_of(SPAN, VERSION, rows, cut=False) == SpanCount(count=count, is_exact=True)


def test_what_the_next_version_owns_is_not_counted() -> None:
    ended = replace(VERSION, until=NINE + 2 * FIVE)
    assert count_of(SPAN, ended, (), cut=False).count == 2


def test_a_count_of_too_many_rows_says_that_it_is_at_most_so() -> None:
    assert count_of(SPAN, VERSION, (), cut=True) == SpanCount(count=13, is_exact=False)
