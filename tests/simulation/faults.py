"""What goes wrong, and when: faults come in windows, so that calm times can be told from others."""

from dataclasses import dataclass
from enum import StrEnum
from random import Random

from tests.fakes.hostile import Rates
from tests.simulation.scheduler import MINUTE, SECOND, Function, FunctionKind, Scheduler

CRASHES_MORE = {FunctionKind.PLANNER: 2, FunctionKind.API: 4}
"""Who has few steps, or steps that matter more, dies more often at each."""


class Fault(StrEnum):
    CRASH = "crash"
    POISON = "poison"
    FREEZE = "freeze"
    SLOW = "slow"
    THROTTLED = "throttled"
    TIMED_OUT = "timed out"
    REPEATED = "repeated"
    PARTIAL = "partial"
    DUPLICATES = "duplicates"
    DELETES_LOST = "deletes lost"
    NO_TICK = "no tick"
    NO_RELAY = "no relay"
    NO_EXECUTOR = "no executor"
    RECEIVER_ILL = "receiver ill"
    RECEIVER_DEAD = "receiver dead"
    RECEIVER_SLOW = "receiver slow"


ANYWHERE = tuple(fault for fault in Fault if fault is not Fault.NO_TICK)

WINDOW_LENGTHS = (200 * SECOND, 500 * SECOND, 900 * SECOND, 1800 * SECOND)
OUTAGE_LENGTHS = (600 * SECOND, 1000 * SECOND, 2000 * SECOND)
REPAIR_LENGTH = 400 * SECOND
"""How long after an outage of the ticks, while its leftovers are worked off, faults go on."""


@dataclass(frozen=True, slots=True)
class Window:
    start: int
    end: int
    faults: frozenset[Fault]


class Faults:
    """The windows of one seed; `active` is what may go wrong now."""

    def __init__(
        self, scheduler: Scheduler, *, windows: tuple[Window, ...], thaw: bool = False
    ) -> None:
        self._scheduler, self._random = scheduler, scheduler.random
        self._thaw = thaw
        self.rates = Rates()
        self.active: frozenset[Fault] = frozenset()
        self.crash_chance = self._random.choice((0.005, 0.015, 0.04))
        self.planner_pause = self._random.choice((100, 300, 1000, 3000))
        self.windows = windows
        for window in self.windows:
            scheduler.at(window.start, self.turn)
            scheduler.at(window.end, self.turn)

    def is_calm(self, start: int, end: int) -> bool:
        """Tell whether no window touches the time between."""
        return not any(window.start < end and window.end > start for window in self.windows)

    def happens(self, fault: Fault, chance: float) -> bool:
        return fault in self.active and self._random.random() < chance

    def fate(self, function: Function) -> str | None:
        """Decide whether a function dies here, before or after an I/O."""
        if not self.active:
            return None
        chance = 0.0
        if Fault.CRASH in self.active:
            chance = self.crash_chance
            chance *= CRASHES_MORE.get(function.kind, 1)
        if Fault.POISON in self.active and function.kind is FunctionKind.EXECUTOR:
            chance += 0.08
        return "crash" if chance and self._random.random() < chance else None

    def pause(self, function: Function) -> int:
        """How long the next step of a function takes."""
        chance = self._random.random()
        if self.active:
            if (
                Fault.FREEZE in self.active
                and function.kind not in {FunctionKind.API, FunctionKind.TICKER}
                and chance < 0.008
            ):
                frozen = self._random.randint(30 * SECOND, 800 * SECOND)
                if self._thaw:
                    function.deadline += frozen
                return frozen
            if Fault.SLOW in self.active and chance < 0.08:
                return self._random.randint(1 * SECOND, 12 * SECOND)
        slowest = self.planner_pause if function.kind is FunctionKind.PLANNER else 150
        return 10 + int(chance * slowest)

    def turn(self) -> None:
        """Let the windows of now take effect."""
        now = self._scheduler.now
        self.active = frozenset(
            fault
            for window in self.windows
            if window.start <= now < window.end
            for fault in window.faults
        )
        self.rates = Rates(
            throttled=0.03 if Fault.THROTTLED in self.active else 0.0,
            timed_out=0.03 if Fault.TIMED_OUT in self.active else 0.0,
            repeated=0.2 if Fault.REPEATED in self.active else 0.0,
            partial=0.1 if Fault.PARTIAL in self.active else 0.0,
        )


def windows_of(random: Random, lasts: int, *, poisoned: bool) -> tuple[Window, ...]:
    """Draw a seed's windows. `poisoned` ones kill executors, so that messages die too."""
    windows = []
    for _ in range(random.randint(2, 4)):
        start = random.randint(0, lasts - 10 * MINUTE)
        end = min(start + random.choice(WINDOW_LENGTHS), lasts)
        faults = frozenset(random.sample(ANYWHERE, random.randint(2, 6)))
        windows.append(Window(start, end, faults))
    if poisoned:
        start = random.randint(0, lasts - 10 * MINUTE)
        end = min(start + random.choice(WINDOW_LENGTHS), lasts)
        windows.append(Window(start, end, frozenset({Fault.POISON, Fault.DUPLICATES})))
    if random.random() < 0.6:
        start = random.randint(0, lasts - 2000 * SECOND)
        end = start + random.choice(OUTAGE_LENGTHS)
        windows.append(Window(start, end, frozenset({Fault.NO_TICK})))
        also = random.sample((Fault.CRASH, Fault.REPEATED, Fault.SLOW, Fault.TIMED_OUT), 2)
        windows.append(Window(start, min(end + REPAIR_LENGTH, lasts), frozenset(also)))
    return tuple(windows)
