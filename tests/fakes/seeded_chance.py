"""Chance from a given generator, or none at all."""

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SeededChance:
    source: random.Random

    def fraction(self) -> float:
        return self.source.random()


@dataclass(frozen=True, slots=True)
class FixedChance:
    value: float = 0.5

    def fraction(self) -> float:
        return self.value
