"""Every call of a port: give way, perhaps fail, take effect, give way, perhaps lose the answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from puntual.application.ports import Sending
from puntual.domain.errors import Unavailable
from tests.fakes.hostile import Hostility
from tests.simulation.faults import Fault, Faults
from tests.simulation.scheduler import SECOND, FunctionKind, Killed, Scheduler
from tests.simulation.trace import Trace

CLAIMS = frozenset({"ledger.swap", "ledger.swap_with_slot"})
BEFORE_COMMIT = "shards.ensure"
HESITATIONS: tuple[int, ...] = (0, 0, 0, 2 * SECOND, 6 * SECOND)
"""What a slow writer adds, twice, between reading the head and writing its successor."""


@dataclass(slots=True, kw_only=True)
class Cue:
    """Directs a scenario: what befalls a function of this kind before or after an I/O.

    It waits, or dies if `wait` is None, at the first `times` I/Os of that name, once `skip` of
    them have gone by.
    """

    kind: FunctionKind
    io: str
    after: bool = False
    wait: int | None = None
    skip: int = 0
    times: int = 1


class Io(Hostility):
    """The hostile ports' source of trouble, driven by the scheduler and the windows of faults."""

    def __init__(self, scheduler: Scheduler, faults: Faults, trace: Trace) -> None:
        super().__init__(source=scheduler.random, at_io=self._give_way)
        self.scheduler, self.faults, self.trace = scheduler, faults, trace
        self.cues: list[Cue] = []
        self.hesitations = HESITATIONS

    def _before(self, name: str) -> None:
        if self.cues:
            self._follow_cues(name, after=False)
        super()._before(name)

    def _after[T](self, name: str, answer: T) -> T:
        if self.cues:
            self._follow_cues(name, after=True)
        return super()._after(name, answer)

    def _follow_cues(self, name: str, *, after: bool) -> None:
        function = self.scheduler.running
        for cue in self.cues:
            if (cue.kind, cue.io, cue.after) != (function.kind, name, after) or not cue.times:
                continue
            if cue.skip:
                cue.skip -= 1
                continue
            cue.times -= 1
            if cue.wait is None:
                self._traced("died on cue", (name,), None)
                raise Killed(name)
            self.scheduler.wait(cue.wait)

    def _give_way(self, name: str) -> None:
        scheduler = self.scheduler
        function = scheduler.running
        pause = self.faults.pause(function)
        if name == BEFORE_COMMIT and function.kind is FunctionKind.API:
            pause += self.source.choice(self.hesitations)
        if name in CLAIMS and self.faults.happens(Fault.FREEZE, 0.05):
            pause += self.source.randint(5 * SECOND, 700 * SECOND)
        scheduler.wait(pause)
        self.rates = self.faults.rates

    def call[T](self, name: str, effect: Callable[[], T]) -> T:
        self._before(name)
        answer = effect()
        self._traced(name, effect, answer)
        return self._after(name, answer)

    def write[T](self, name: str, effect: Callable[[], T]) -> T:
        self._before(name)
        answer = effect()
        self._traced(name, effect, answer)
        if self._happens(self.rates.repeated):
            self.at_io(name)
            answer = effect()
            self._traced(f"{name} repeated", effect, answer)
        return self._after(name, answer)

    def batch[T](
        self, name: str, items: Sequence[T], effect: Callable[[Sequence[T]], None]
    ) -> None:
        self._before(name)
        if self._happens(self.rates.partial):
            some, rest = self._some(items)
            effect(some)
            self._traced(f"{name} partly", tuple(some), None)
            self._unprocessed(name, rest, effect)
        else:
            effect(items)
            self._traced(name, tuple(items), None)
        self._after(name, None)

    def _unprocessed[T](
        self, name: str, rest: Sequence[T], effect: Callable[[Sequence[T]], None]
    ) -> None:
        """The rest of a batch: most often the adapter's next try takes it, else it gives up."""
        self.at_io(name)
        if self.source.random() < 0.3:
            raise Unavailable(f"{name}: {len(rest)} were left unprocessed")
        effect(rest)
        self._traced(f"{name} rest", tuple(rest), None)

    def given_back(
        self,
        name: str,
        items: Sequence[Sending],
        effect: Callable[[Sequence[Sending]], tuple[Sending, ...]],
    ) -> tuple[Sending, ...]:
        refused = super().given_back(name, items, effect)
        self._traced(name, tuple(items), refused)
        return refused

    def _traced(
        self, name: str, arguments: Callable[..., object] | tuple[object, ...], answer: object
    ) -> None:
        scheduler = self.scheduler
        self.trace.add(scheduler.now, scheduler.running.name, name, arguments, answer)
