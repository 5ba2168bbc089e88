"""One seeded scheduler in virtual time: functions are greenlets that give way at every I/O."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from random import Random

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]

from puntual.domain.message import Message

START = datetime(2027, 3, 25, 23, 20, tzinfo=UTC)
"""Virtual time zero: 40 minutes later comes UTC midnight, where spans are cut, and in Jerusalem
the clocks go from 02:00 to 03:00."""

SECOND = 1000
MINUTE = 60 * SECOND

SKEW_MAX = 2 * SECOND


class FunctionKind(StrEnum):
    API = "api"
    TICKER = "ticker"
    PLANNER = "planner"
    RELAY = "relay"
    EXECUTOR = "executor"
    UNDELIVERABLE = "undeliverable"
    REPLANNER = "replanner"
    CALLBACK = "callback"


LIFE_MAX = {
    FunctionKind.API: 30 * SECOND,
    FunctionKind.TICKER: 30 * SECOND,
    FunctionKind.PLANNER: 600 * SECOND,
    FunctionKind.RELAY: 600 * SECOND,
    FunctionKind.EXECUTOR: 900 * SECOND,
    FunctionKind.UNDELIVERABLE: 120 * SECOND,
    FunctionKind.REPLANNER: 120 * SECOND,
    FunctionKind.CALLBACK: 20 * SECOND,
}
"""The Lambda timeouts: who is resumed later than this is killed."""


class Killed(BaseException):
    """The function's process is gone; no use case may catch this."""


class Function:
    """One running function: its clock, how long it may live, and what it has seen."""

    __slots__ = (
        "body",
        "deadline",
        "greenlet",
        "kind",
        "message",
        "name",
        "on_end",
        "seen",
        "skew",
    )

    def __init__(self, kind: FunctionKind, name: str, body: Callable[[], object]) -> None:
        self.kind, self.name, self.body = kind, name, body
        self.skew = 0
        self.deadline = 0
        self.on_end: Callable[[bool], None] | None = None
        self.seen: dict[object, int] = {}
        self.message: Message | None = None
        self.greenlet: greenlet | None = None


Fate = Callable[[Function], str | None]
"""Says why a function dies before it is resumed, or None where it lives on."""


def _lives(_: Function) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Unexpected:
    """An exception that left a function and is none of its ports' errors."""

    function: str
    error: str


def instant_at(milliseconds: int) -> datetime:
    return START + timedelta(milliseconds=milliseconds)


def milliseconds_of(instant: datetime) -> int:
    return (instant - START) // timedelta(milliseconds=1)


class Scheduler:
    """Runs actions and functions in the order of virtual time; equal seeds run equally."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0
        self.fate: Fate = _lives
        self.on_death: Callable[[Function, str], None] = lambda _function, _why: None
        self.expected: tuple[type[Exception], ...] = ()
        self.unexpected: list[Unexpected] = []
        self.executor_skews: list[int] = []
        """Set by a scenario: the skews of the first executors."""
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._hub = getcurrent()
        self._running: Function | None = None
        self._waiting: dict[str, Function] = {}

    @property
    def running(self) -> Function:
        assert self._running is not None, "an I/O outside of a function"
        return self._running

    @property
    def handled(self) -> Message | None:
        """What the function that runs, if one does, has received."""
        return None if self._running is None else self._running.message

    def at(self, when: int, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._heap, (max(when, self.now), self._count, action))

    def after(self, wait: int, action: Callable[[], None]) -> None:
        self.at(self.now + wait, action)

    def spawn(
        self,
        kind: FunctionKind,
        body: Callable[[], object],
        *,
        on_end: Callable[[bool], None] | None = None,
    ) -> Function:
        """Start a function now; `on_end` hears whether it ended well."""
        self._count += 1
        function = Function(kind, f"{kind}-{self._count}", body)
        function.skew = self.random.randint(-SKEW_MAX, SKEW_MAX)
        if kind is FunctionKind.EXECUTOR and self.executor_skews:
            function.skew = self.executor_skews.pop(0)
        function.deadline = self.now + LIFE_MAX[kind]
        function.on_end = on_end
        function.greenlet = greenlet(lambda: self._life(function), self._hub)
        self._waiting[function.name] = function
        self.at(self.now, lambda: self._resume(function))
        return function

    def wait(self, wait: int) -> None:
        """Give way from within a function; may never return."""
        function = self.running
        self.at(self.now + wait, lambda: self._resume(function))
        self._hub.switch()

    def run(self, until: int) -> None:
        self._hub = getcurrent()
        while self._heap and self._heap[0][0] <= until:
            self.now, _, action = heapq.heappop(self._heap)
            action()
        for function in list(self._waiting.values()):
            self._kill(function, "the end of the simulation")

    def step(self) -> bool:
        """Run the next action alone; False where there is none."""
        self._hub = getcurrent()
        if self._heap:
            self.now, _, action = heapq.heappop(self._heap)
            action()
            return True
        return False

    def _resume(self, function: Function) -> None:
        why = "timeout" if self.now > function.deadline else self.fate(function)
        if why is not None:
            self._kill(function, why)
            return
        assert function.greenlet is not None
        before, self._running = self._running, function
        function.greenlet.switch()
        self._running = before

    def _kill(self, function: Function, why: str) -> None:
        assert function.greenlet is not None
        self.on_death(function, why)
        if function.greenlet:
            function.greenlet.throw(Killed(why))
        else:
            self._end(function, well=False)

    def _life(self, function: Function) -> None:
        well = False
        try:
            function.body()
            well = True
        except Killed:
            pass
        except self.expected:
            pass
        except Exception as error:  # noqa: BLE001 a bug in a use case is a finding, not a crash
            self.unexpected.append(Unexpected(function.name, f"{type(error).__name__}: {error}"))
        self._end(function, well=well)

    def _end(self, function: Function, *, well: bool) -> None:
        del self._waiting[function.name]
        if function.on_end is not None:
            function.on_end(well)
