"""Waiting for something to become true, with a bound."""

import time
from collections.abc import Callable

POLL_SECONDS = 0.25


def until[T](look: Callable[[], T], holds: Callable[[T], bool], *, seconds: float) -> T:
    """Look again and again until it holds or the time is up; gives what was last seen."""
    end = time.monotonic() + seconds
    seen = look()
    while not holds(seen) and time.monotonic() < end:
        time.sleep(POLL_SECONDS)
        seen = look()
    return seen
