"""Open another round of an occurrence that has ended: its row and its page in one transaction."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from puntual.application.announced import Announced
from puntual.application.ports import Clock, IdSource, Ledger
from puntual.domain.replay import page_of, reopened, why_not_replayable
from puntual.domain.run import Run
from puntual.domain.schedule import Schedule

WhyNot = Callable[..., str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReopenOccurrence:
    """E2. What replays one and what replays many share."""

    ledger: Ledger
    announced: Announced
    clock: Clock
    ids: IdSource
    why_not: WhyNot = why_not_replayable

    def __call__(
        self, seen: Run, head: Schedule, *, not_before: datetime, request: str = ""
    ) -> Run | None:
        """Give the row of the new round; None for a lost race."""
        run = reopened(seen, head, not_before=not_before, request=request)
        run = replace(run, write_id=self.ids.new_id())
        shard = self.announced.shard(head.key)
        page = page_of(run, head, shard=shard, now=self.clock.now())
        return run if self.ledger.reopen(run, seen=seen, page=page) else None
