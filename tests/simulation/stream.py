"""The outbox's stream: each shard's new pages in order, one relay at a time, and some retries.

https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-eventsourcemapping.html
"""

from collections import defaultdict, deque
from collections.abc import Callable

from puntual.domain.page import Page
from tests.simulation.faults import Fault, Faults
from tests.simulation.scheduler import SECOND, FunctionKind, Scheduler

PAGES_PER_BATCH_MAX = 3
TRIES_MAX = 2
"""After that a batch goes to the on-failure destination, and the planner relays its pages."""


class Stream:
    """`relay` gives False where a page could not be relayed whole."""

    def __init__(self, scheduler: Scheduler, faults: Faults, relay: Callable[[Page], bool]) -> None:
        self._scheduler, self._faults, self._relay = scheduler, faults, relay
        self._pages: dict[int, deque[Page]] = defaultdict(deque)
        self._busy: set[int] = set()
        self._tries: dict[int, int] = defaultdict(int)

    def put(self, page: Page) -> None:
        if page.carried:
            return
        self._pages[page.shard].append(page)
        wait = self._scheduler.random.randint(50, 400)
        self._scheduler.after(wait, lambda: self._go(page.shard))

    def _go(self, shard: int) -> None:
        pages = self._pages[shard]
        if shard in self._busy or not pages:
            return
        if Fault.NO_RELAY in self._faults.active:
            if self._scheduler.random.random() < 0.2:
                pages.popleft()  # Gone by unread: nothing may depend on the stream alone.
            self._scheduler.after(30 * SECOND, lambda: self._go(shard))
            return
        self._busy.add(shard)
        relayed: list[Page] = []

        def body() -> None:
            for page in list(pages)[:PAGES_PER_BATCH_MAX]:
                if not self._relay(page):
                    return
                relayed.append(page)

        self._scheduler.spawn(
            FunctionKind.RELAY, body, on_end=lambda well: self._ended(shard, relayed, well=well)
        )

    def _ended(self, shard: int, relayed: list[Page], *, well: bool) -> None:
        """Go on behind what was relayed; of a function that crashed nobody knows what it did."""
        pages = self._pages[shard]
        done = len(relayed) if well else 0
        for _ in range(done):
            pages.popleft()
        self._tries[shard] = 0 if done else self._tries[shard] + 1
        if self._tries[shard] > TRIES_MAX and pages:
            pages.popleft()
            self._tries[shard] = 0
        self._busy.discard(shard)
        if pages:
            wait = 50 if done else 2 * SECOND
            self._scheduler.after(wait, lambda: self._go(shard))
