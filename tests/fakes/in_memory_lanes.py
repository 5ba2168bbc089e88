"""The lanes in memory: what was sent, in its order."""

from collections.abc import Callable, Sequence

from puntual.application.ports import Sending
from puntual.domain.lane import Lane
from puntual.domain.message import PARK_MAX


class InMemoryLanes:
    """`on_send` hears of each message that a lane took, so that a simulation can deliver it."""

    def __init__(self, on_send: Callable[[Lane, Sending], None] | None = None) -> None:
        self.sent: dict[Lane, list[Sending]] = {lane: [] for lane in Lane}
        self.on_send = on_send

    def send(self, lane: Lane, sendings: Sequence[Sending]) -> tuple[Sending, ...]:
        for sending in sendings:
            assert sending.delay <= PARK_MAX, "a lane holds a message for 900 s at most"
            self.sent[lane].append(sending)
            if self.on_send is not None:
                self.on_send(lane, sending)
        return ()
