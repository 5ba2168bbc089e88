"""Run many seeds, or read one.

python -m tests.simulation SEEDS [FIRST]       which of them fail, and how
python -m tests.simulation thaw SEEDS [FIRST]  frozen functions outlive their timeouts
python -m tests.simulation trace SEED [ABOUT]  every step, or those that speak of ABOUT
python -m tests.simulation table SEEDS         each rule taken away: how many seeds show it
"""

# ruff: noqa: T201 - a command prints

import multiprocessing
import sys
import time
from collections import Counter
from functools import partial

from tests.simulation.record import Failure
from tests.simulation.variants import VARIANTS
from tests.simulation.world import simulate

SHOWN_MAX = 3
DETAIL_LENGTH_MAX = 400


def _short(seed: int, *, thaw: bool) -> tuple[int, list[Failure], dict[str, int]]:
    verdict = simulate(seed, thaw=thaw)
    return seed, list(verdict.failures), verdict.counts


def run(seeds: int, first: int, *, thaw: bool = False) -> int:
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    failed = []
    with multiprocessing.Pool() as pool:
        short = partial(_short, thaw=thaw)
        for seed, failures, seen in pool.imap(short, range(first, first + seeds)):
            counts.update(seen)
            if failures:
                failed.append(seed)
                kinds.update({failure.kind for failure in failures})
                print(f"seed {seed} fails:")
                for failure in failures[:SHOWN_MAX]:
                    print(f"  {failure.kind}: {failure.detail[:DETAIL_LENGTH_MAX]}")
    took = time.perf_counter() - started
    for name, count in sorted(counts.items()):
        print(f"  {name:36} {count}")
    print(f"{len(failed)} of {seeds} seeds fail {failed} {dict(kinds)}; {seeds / took:.1f} seeds/s")
    return 1 if failed else 0


def show(seed: int, about: str) -> int:
    verdict = simulate(seed)
    for line in verdict.trace.lines(about):
        print(line)
    for failure in verdict.failures:
        print(f"{failure.at / 1000:9.3f} FAILED {failure.kind}: {failure.detail}")
    return 1 if verdict.failures else 0


def _broken(case: tuple[str, int]) -> frozenset[str]:
    name, seed = case
    return simulate(seed, VARIANTS[name].parts).kinds


def table(seeds: int, names: list[str]) -> int:
    """Tell for each variant how many seeds show it, and which are the first to do so."""
    cases = [(name, seed) for name in names for seed in range(seeds)]
    with multiprocessing.Pool() as pool:
        shown = pool.imap(_broken, cases, chunksize=4)
        for name in names:
            variant = VARIANTS[name]
            kinds: Counter[str] = Counter()
            caught = []
            for seed in range(seeds):
                kinds.update(seen := next(shown))
                if seen & variant.shows:
                    caught.append(seed)
            share = f"{len(caught)}/{seeds}"
            print(f"{variant.rule:4} {name:34} {share:8} {dict(kinds.most_common(3))} {caught[:6]}")
    return 0


def main(arguments: list[str]) -> int:
    match arguments:
        case ["trace", seed, *about]:
            return show(int(seed), "".join(about))
        case ["table", seeds, *names]:
            return table(int(seeds), names or list(VARIANTS))
        case ["thaw", seeds, *first]:
            return run(int(seeds), int("".join(first) or 0), thaw=True)
        case [seeds, *first]:
            return run(int(seeds), int("".join(first) or 0))
        case _:
            print(__doc__)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
