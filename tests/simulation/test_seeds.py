"""Seeds pass, run equally each time, and tell what happened when they fail."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from puntual.domain.run import RunState
from tests.simulation.world import simulate

SEEDS = int(os.environ.get("PUNTUAL_SEEDS") or 200)
SEEDS_PER_TEST = 10
REPEATED_SEEDS = (3, 7)
CALLBACKS = ("heartbeat", "complete", "fail")


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_every_occurrence_is_accounted_for_whatever_goes_wrong(first: int) -> None:
    for seed in range(first, min(first + SEEDS_PER_TEST, SEEDS)):
        verdict = simulate(seed)
        assert not verdict.failures, "\n".join(verdict.report())


@pytest.mark.parametrize("seed", REPEATED_SEEDS)
def test_a_seed_runs_the_same_way_each_time(seed: int) -> None:
    first, second = simulate(seed), simulate(seed)
    assert first.trace.steps, "a seed does something"
    assert first.trace.digest() == second.trace.digest()


def test_a_seed_runs_the_same_way_whatever_the_order_of_hashes() -> None:
    digests = {_digest_under(hash_seed) for hash_seed in ("1", "2")}
    assert digests == {simulate(REPEATED_SEEDS[0]).trace.digest()}


def test_seeds_differ() -> None:
    assert simulate(1).trace.digest() != simulate(2).trace.digest()


def test_the_seeds_meet_what_they_are_there_for() -> None:
    counts: dict[str, int] = {}
    for seed in range(SEEDS_PER_TEST):
        for name, count in simulate(seed).counts.items():
            counts[name] = counts.get(name, 0) + count
    met = {name for name, count in counts.items() if count}
    assert met >= {
        "strict checked",
        "flexible checked",
        "accounted: run",
        "accounted: missed",
        "accounted: canceled",
        "died of crash",
        "died of timeout",
        "schedules COMPLETED",
        "schedules CANCELED",
        "schedules PAUSED",
        *(f"-> {state}" for state in RunState),
        "waited and ran",
        "asked to end",
        "leases raised",
        "told to end",
        *(f"{what} {how}" for what in CALLBACKS for how in ("taken", "refused")),
    }


def _digest_under(hash_seed: str) -> str:
    program = (
        "from tests.simulation.world import simulate; "
        f"print(simulate({REPEATED_SEEDS[0]}).trace.digest())"
    )
    ran = subprocess.run(  # noqa: S603 our own interpreter and program
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip()
