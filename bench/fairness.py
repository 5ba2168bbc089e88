"""What one tenant's storm costs the others: `python -m bench.fairness`.

The simulation of tests/fairness, which says what it assumes, case by case and with each of our
parts taken away. Nothing here depends on the machine.
"""

import sys
from collections.abc import Iterator

from tests.fairness.burst import Parts
from tests.fairness.cases import CASES, GROWTH_MAX, VARIANTS, Compared, compare

HEADING = f"{'start lag of the others, in ms':<50}{'alone':>14}{'beside':>16}{'p99':>8}"


def _line(name: str, compared: Compared) -> str:
    alone, beside = compared.alone, compared.beside
    return (
        f"{name:<50}{alone.p50:>6} {alone.p99:>7}{beside.p50:>8} {beside.p99:>7}"
        f"{compared.growth:>+8.0%}"
    )


def lines() -> Iterator[str]:
    yield HEADING
    yield f"{'':<50}{'p50':>6} {'p99':>7}{'p50':>8} {'p99':>7}{'grows':>8}"
    for name, setup in CASES.items():
        yield _line(name, compare(setup, Parts()))
        for without, variant in VARIANTS.items():
            if variant.fails == name:
                yield _line(f"  {without}", compare(setup, variant.parts))
    yield f"budget: the p99 grows by less than {GROWTH_MAX:.0%}"


def main() -> None:
    for line in lines():
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
