"""Write DEAD for a message that was received too often to go on, judged as the executor does."""

from dataclasses import dataclass

from puntual.application.settle_message import Settled, SettleMessage
from puntual.domain.judgement import Claim, Standing, buried
from puntual.domain.message import Message
from puntual.domain.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class BuryMessage:
    """E4: only an absent row, or the message's own with no live lease, becomes DEAD."""

    settle_message: SettleMessage

    def __call__(self, message: Message) -> Settled:
        """Settle a dead-lettered message; what still must wait goes back to its lane.

        Raises `Unavailable` where not even parking was possible: the message must be kept.
        """
        return self.settle_message.settle(message, self._bury)

    def _bury(
        self, message: Message, seen: Run | None, _: Claim, standing: Standing
    ) -> Settled | None:
        desk = self.settle_message
        dead = desk.signed(buried(message, seen, desk.clock.now()))
        if not desk.ledger.swap(dead, seen=seen):
            return None
        return desk.forget(message, dead, standing)
