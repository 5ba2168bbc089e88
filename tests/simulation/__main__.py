"""`python -m tests.simulation SEEDS [FIRST]`, or `trace SEED [ABOUT]` to read one seed."""

# ruff: noqa: T201 - a command prints

import multiprocessing
import os
import sys
import time
from collections import Counter

from tests.simulation.world import Verdict, simulate

SHOWN_MAX = 3


def _short(seed: int) -> tuple[int, list[str], dict[str, int]]:
    verdict = simulate(seed)
    return (
        seed,
        [f"{failure.kind}: {failure.detail}" for failure in verdict.failures],
        verdict.counts,
    )


def run(seeds: int, first: int) -> int:
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    failed = []
    with multiprocessing.Pool(min(seeds, os.cpu_count() or 1)) as pool:
        for seed, failures, seen in pool.imap(_short, range(first, first + seeds)):
            counts.update(seen)
            if failures:
                failed.append(seed)
                kinds.update({failure.partition(":")[0] for failure in failures})
                print(
                    f"seed {seed} fails:",
                    *(f"  {text[:400]}" for text in failures[:SHOWN_MAX]),
                    sep="\n",
                )
    took = time.perf_counter() - started
    for name, count in sorted(counts.items()):
        print(f"  {name:36} {count}")
    print(f"{len(failed)} of {seeds} seeds fail {failed} {dict(kinds)}; {seeds / took:.1f} seeds/s")
    return 1 if failed else 0


def show(seed: int, about: str) -> int:
    verdict: Verdict = simulate(seed)
    for line in verdict.trace.lines(about):
        print(line)
    for failure in verdict.failures:
        print(f"{failure.at / 1000:9.3f} FAILED {failure.kind}: {failure.detail}")
    return 1 if verdict.failures else 0


def main(arguments: list[str]) -> int:
    if arguments and arguments[0] == "trace":
        return show(int(arguments[1]), arguments[2] if len(arguments) > 2 else "")
    seeds = int(arguments[0]) if arguments else 100
    return run(seeds, int(arguments[1]) if len(arguments) > 1 else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
