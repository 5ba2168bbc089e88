"""Take a page's occurrences to their lanes, then delete the page: queue first, delete after."""

from collections import defaultdict
from dataclasses import dataclass

from puntual.application.ports import Clock, Lanes, Outbox, Sending
from puntual.domain.lane import Lane
from puntual.domain.message import delay_until, message_of
from puntual.domain.page import Page


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayReport:
    """A page with anything `refused` by its queue stays, and is relayed again."""

    sent: int
    refused: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayPage:
    outbox: Outbox
    lanes: Lanes
    clock: Clock

    def __call__(self, page: Page) -> RelayReport:
        """Relay a page; relaying it again sends duplicates, which the ledger makes harmless."""
        now = self.clock.now()
        sendings: dict[Lane, list[Sending]] = defaultdict(list)
        for planned in page.planned:
            message = message_of(planned, now=now)
            delay = delay_until(message.starts_at, now=now)
            sendings[message.lane].append(Sending(message=message, delay=delay))
        refused = sum(len(self.lanes.send(lane, group)) for lane, group in sendings.items())
        if not refused:
            self.outbox.delete(page)
        return RelayReport(sent=len(page.planned) - refused, refused=refused)
