"""A standard SQS queue with message groups, and the event source that empties it: a model."""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.fairness.assumptions import NOISY_IN_FLIGHT, NOISY_SHARE, RECEIVE
from tests.simulation.scheduler import Scheduler

BATCH_MAX = 10


@dataclass(frozen=True, slots=True)
class Queued:
    """A message as it lies in the queue, in the order in which they became visible."""

    place: int
    group: str
    body: str
    sent_at: int


Consumer = Callable[[int, Sequence[Queued], Callable[[], None]], None]
"""Handles a batch with the executor of that number, and calls back when it is free again."""


class FairQueue:
    """Quiet groups first; of noisy ones, the one with the fewest messages in flight.

    A message without a group is a group of its own, as on AWS, so that none is ever noisy. The
    event source runs at full concurrency from the start: AWS's takes minutes to get there.
    """

    def __init__(self, scheduler: Scheduler, consumer: Consumer, *, executors: int) -> None:
        self._scheduler, self._consumer = scheduler, consumer
        self._idle = deque(range(executors))
        self._visible: dict[str, deque[Queued]] = {}
        self._in_flight: Counter[str] = Counter()
        self._noisy: set[str] = set()
        self._places = 0

    def send(self, body: str, delay: int, group: str) -> None:
        sent_at = self._scheduler.now
        self._scheduler.after(delay, lambda: self._show(body, group, sent_at))

    def _show(self, body: str, group: str, sent_at: int) -> None:
        self._places += 1
        queued = Queued(self._places, group, body, sent_at)
        self._visible.setdefault(group, deque()).append(queued)
        self._hand_out()

    def _hand_out(self) -> None:
        if self._idle and self._visible:
            executor = self._idle.popleft()
            self._scheduler.after(RECEIVE, lambda: self._receive(executor))

    def _receive(self, executor: int) -> None:
        batch: list[Queued] = []
        while self._visible and len(batch) < BATCH_MAX:
            batch.append(self._next())
        if not batch:
            self._idle.append(executor)
            return
        self._consumer(executor, batch, lambda: self._is_free(executor, batch))
        self._hand_out()

    def _next(self) -> Queued:
        self._judge()
        quiet = [group for group in self._visible if group not in self._noisy]
        if quiet:
            group = min(quiet, key=lambda each: self._visible[each][0].place)
        else:
            group = min(self._visible, key=lambda each: self._in_flight[each])
        queued = self._visible[group].popleft()
        if group:
            self._in_flight[group] += 1
        if not self._visible[group]:
            del self._visible[group]
            self._noisy.discard(group)
        return queued

    def _judge(self) -> None:
        total = self._in_flight.total()
        for group, count in self._in_flight.items():
            if count >= NOISY_IN_FLIGHT and count > NOISY_SHARE * total and group in self._visible:
                self._noisy.add(group)

    def _is_free(self, executor: int, batch: Sequence[Queued]) -> None:
        for queued in batch:
            if queued.group:
                self._in_flight[queued.group] -= 1
        self._idle.append(executor)
        self._hand_out()
