"""An import that is cut off anywhere ends as if it had not been; its rules' loss shows."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from puntual.application.import_schedule import ImportSchedule
from puntual.application.import_schedules import (
    ImportSchedules,
    LineResult,
    Weigh,
    _Course,
    _Task,
)
from puntual.domain.schedule import Schedule, ScheduleVersion
from tests.simulation.imports import Parts, dies_everywhere, is_troubled_well

LONG, LINE_BY_LINE = timedelta(minutes=1), timedelta(minutes=-1)
SEEDS = range(40)


@pytest.mark.parametrize("within", [LONG, LINE_BY_LINE])
def test_an_import_may_die_at_any_io(within: timedelta) -> None:
    assert list(dies_everywhere(Parts(), within=within)) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_an_import_may_meet_any_trouble(seed: int) -> None:
    assert is_troubled_well(seed, Parts())


class ForgetsP1(ImportSchedule):
    """Takes what stands for finished."""

    def _finish(self, _head: Schedule, _version: ScheduleVersion) -> None:
        return


class ResumesBehind(ImportSchedules):
    """Goes on behind the line that it stopped at."""

    def _results(
        self, tasks: Iterator[_Task], course: _Course, weigh: Weigh
    ) -> tuple[tuple[LineResult, ...], int | None]:
        results, at = super()._results(tasks, course, weigh)
        return results, None if at is None else at + 1


@pytest.mark.parametrize("parts", [Parts(lines=ForgetsP1), Parts(files=ResumesBehind)])
def test_a_broken_import_shows(parts: Parts) -> None:
    assert list(dies_everywhere(parts, within=LINE_BY_LINE))
    assert not all(is_troubled_well(seed, parts) for seed in SEEDS)
