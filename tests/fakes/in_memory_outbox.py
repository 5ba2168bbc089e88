"""The outbox in memory, with a callback in place of the table's stream."""

from collections.abc import Callable
from datetime import datetime

from puntual.domain.instant import text_of
from puntual.domain.page import Page


class InMemoryOutbox:
    """`on_put` hears of each page that was new, as the stream's INSERT records tell of it."""

    def __init__(self, on_put: Callable[[Page], None] | None = None) -> None:
        self.pages: dict[tuple[int, str], Page] = {}
        self.on_put = on_put

    def put(self, page: Page) -> None:
        place = _place(page)
        if place in self.pages:
            return
        self.pages[place] = page
        if self.on_put is not None:
            self.on_put(page)

    def put_over(self, page: Page) -> None:
        """Put as a transaction does: over a page that is there, which then is not new."""
        place = _place(page)
        new = place not in self.pages
        self.pages[place] = page
        if new and self.on_put is not None:
            self.on_put(page)

    def delete(self, page: Page) -> None:
        self.pages.pop(_place(page), None)

    def left(self, shard: int, *, written_before: datetime, limit: int) -> tuple[Page, ...]:
        found = [
            page
            for (page_shard, _), page in sorted(self.pages.items(), key=lambda item: item[0])
            if page_shard == shard and page.written_at < written_before
        ]
        return tuple(found[:limit])


def _place(page: Page) -> tuple[int, str]:
    return page.shard, f"{text_of(page.bucket)}#{page.id}"
