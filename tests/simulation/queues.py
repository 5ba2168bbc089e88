"""Standard SQS queues with their event sources: at least once, in any order, and then dead letters.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues.html
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from puntual.application.ports import Sending
from puntual.domain.lane import Lane
from puntual.domain.message import PARK_MAX, Message
from tests.simulation.faults import Fault, Faults
from tests.simulation.scheduler import MINUTE, SECOND, FunctionKind, Scheduler, instant_at

BATCH_MAX = 5
RECEIVES_MAX = 20
RECEIVES_MAX_LOW = 4
VISIBILITIES = (30 * SECOND, 60 * SECOND, 180 * SECOND, 900 * SECOND)
DEAD_VISIBILITY = 3 * MINUTE
STALLED_AFTER = 6
"""Receives of one message that no fault explains, before it counts as stalled."""


@dataclass(slots=True)
class Envelope:
    """A message in a queue. `receives` also names the newest receipt."""

    number: int
    message: Message
    lane: Lane
    visible_at: int
    receives: int = 0
    calm_receives: int = 0


@dataclass(frozen=True, slots=True)
class Received:
    envelope: Envelope
    receipt: int


Handler = Callable[[Sequence[Received]], list[Received]]
"""Handles a batch; gives back those that may be deleted."""


class Queues:
    """The three lanes and their dead letters; `on_stall` hears of a message that gets nowhere."""

    def __init__(
        self,
        scheduler: Scheduler,
        faults: Faults,
        *,
        executor: Handler,
        undeliverable: Handler,
        on_visible: Callable[[Message, int], None],
        on_stall: Callable[[Message], None],
        receives_max: int = RECEIVES_MAX,
        visibility: int | None = None,
    ) -> None:
        self._scheduler, self._random, self._faults = scheduler, scheduler.random, faults
        self._executor, self._undeliverable = executor, undeliverable
        self._on_visible, self._on_stall = on_visible, on_stall
        self._receives_max = receives_max
        self._visibility = visibility or self._random.choice(VISIBILITIES)
        self._sent = 0
        self.live: dict[int, Envelope] = {}
        self.dead: dict[int, Envelope] = {}

    def send(self, lane: Lane, sending: Sending) -> None:
        assert sending.delay <= PARK_MAX
        self._sent += 1
        now = self._scheduler.now
        visible_at = now + int(sending.delay.total_seconds() * 1000)
        message = sending.message.enqueued(instant_at(visible_at))
        envelope = Envelope(self._sent, message, lane, visible_at)
        self.live[envelope.number] = envelope
        self._on_visible(sending.message, visible_at)
        self._offer_at(visible_at, envelope.number)

    def _offer_at(self, when: int, number: int) -> None:
        late = self._random.randint(0, 500)
        self._scheduler.at(when + late, lambda: self._offer(number))

    def _offer(self, number: int) -> None:
        """Give a visible message, and some of those beside it, to an executor."""
        now, first = self._scheduler.now, self.live.get(number)
        if first is None or first.visible_at > now:
            return
        if Fault.NO_EXECUTOR in self._faults.active:
            self._offer_at(now + self._random.randint(20, 40) * SECOND, number)
            return
        if first.receives >= self._receives_max:
            del self.live[number]
            self.dead[number] = first
            self._scheduler.after(SECOND, lambda: self._offer_dead(number))
            return
        batch = [first]
        if self._random.random() < 0.5:
            beside = [
                other
                for other in self.live.values()
                if other is not first
                and other.lane is first.lane
                and other.visible_at <= now
                and other.receives < self._receives_max
            ]
            self._random.shuffle(beside)
            batch += beside[: BATCH_MAX - 1]
        self._hand_over([self._receive(envelope) for envelope in batch])

    def _receive(self, envelope: Envelope) -> Received:
        now = self._scheduler.now
        envelope.receives += 1
        if self._faults.is_calm(now - SECOND, now + MINUTE):
            envelope.calm_receives += 1
            if envelope.calm_receives == STALLED_AFTER:
                self._on_stall(envelope.message)
        envelope.visible_at = now + self._visibility
        self._offer_at(envelope.visible_at, envelope.number)
        return Received(envelope, envelope.receives)

    def _hand_over(self, batch: list[Received]) -> None:
        self._spawn(FunctionKind.EXECUTOR, self._executor, batch)
        if self._faults.happens(Fault.DUPLICATES, 0.3):
            wait = self._random.randint(0, 3 * SECOND)
            again = [received for received in batch if self._random.random() < 0.7]
            self._scheduler.after(wait, lambda: self._deliver_again(again))

    def _deliver_again(self, batch: list[Received]) -> None:
        """A standard queue may deliver a message twice, even one that was just deleted."""
        if batch:
            self._spawn(FunctionKind.EXECUTOR, self._executor, batch)

    def _spawn(self, kind: FunctionKind, handler: Handler, batch: list[Received]) -> None:
        def body() -> None:
            done = handler(batch)
            # The event source deletes after the function has answered.
            self._scheduler.after(self._random.randint(5, 200), lambda: self._delete(done))

        self._scheduler.spawn(kind, body)

    def _delete(self, done: list[Received]) -> None:
        for received in done:
            envelope = received.envelope
            stale = received.receipt != envelope.receives
            if stale and self._random.random() < 0.5:
                continue
            if self._faults.happens(Fault.DELETES_LOST, 0.15):
                continue
            self.live.pop(envelope.number, None)
            self.dead.pop(envelope.number, None)

    def send_again(self) -> None:
        """Let every message that is in flight be there a second time."""
        for envelope in list(self.live.values()):
            self.send(envelope.lane, Sending(message=envelope.message, delay=timedelta(0)))

    def bury(self, message: Message) -> None:
        """Put a message among the dead letters as it is."""
        self._sent += 1
        now = self._scheduler.now
        self.dead[self._sent] = Envelope(self._sent, message, message.lane, now)
        number = self._sent
        self._scheduler.after(0, lambda: self._offer_dead(number))

    def _offer_dead(self, number: int) -> None:
        envelope = self.dead.get(number)
        if envelope is None:
            return
        envelope.receives += 1
        received = Received(envelope, envelope.receives)
        self._scheduler.after(DEAD_VISIBILITY, lambda: self._offer_dead(number))
        self._spawn(FunctionKind.UNDELIVERABLE, self._undeliverable, [received])
