"""Write DEAD for a message that was received too often to go on, judged as the executor does."""

from dataclasses import dataclass, replace

from puntual.application.settle_message import Settled, SettleMessage
from puntual.domain.judgement import Claim, Standing, buried, is_of_an_earlier_round
from puntual.domain.message import Message
from puntual.domain.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class BuryMessage:
    """E4: only an absent row, or the message's own with no live lease, becomes DEAD.

    One of an earlier round goes back to its lane, where it is a duplicate like any other (E2).
    """

    settle_message: SettleMessage

    def __call__(self, message: Message) -> Settled:
        """Settle a dead-lettered message; what still must wait goes back to its lane.

        Raises `Unavailable` where not even parking was possible: the message must be kept.
        """
        return self.settle_message.settle(message, self._bury, is_last=True)

    def _bury(
        self, message: Message, seen: Run | None, claim: Claim, standing: Standing
    ) -> Settled | None:
        desk, slot = self.settle_message, claim.slot
        if is_of_an_earlier_round(message, seen):
            return desk.park(message, desk.clock.now(), why="of an earlier round")
        if slot is not None:
            slot = replace(slot, slot=slot.seen.without(message.occurrence.id))
        dead = desk.swap(buried(message, seen, desk.clock.now()), seen=seen, slot=slot)
        return desk.forget(message, dead, standing) if dead else None
