"""Chance from the operating system."""

import random

# Not a seeded generator: instances restored from one snapshot would all jitter alike.
_SOURCE = random.SystemRandom()


class SystemChance:
    def fraction(self) -> float:
        return _SOURCE.random()
