"""Tokens of budgets, taken in blocks: an executor's own small stock, shared by its threads."""

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock

from puntual.application.draw_tokens import DrawTokens
from puntual.domain.budget import Block, BudgetKey, block_after, first_of, next_of

STOCKS_MAX = 1_000


@dataclass(slots=True)
class _Stock:
    block: Block | None = None
    held: int = 0
    lock: Lock = field(default_factory=Lock)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBlocks:
    """One of a process. What dies with it is lost to time only: at most a block of each budget."""

    draw: DrawTokens
    _stocks: OrderedDict[BudgetKey, _Stock] = field(default_factory=OrderedDict)

    def take(self, key: BudgetKey, per_minute: int) -> datetime:
        """Take a token; gives when it may be used, now or later. Raises `Unavailable`."""
        instant = self.take_by(key, per_minute, by=None)
        assert instant is not None
        return instant

    def take_by(self, key: BudgetKey, per_minute: int, *, by: datetime | None) -> datetime | None:
        """Take a token as `take` does, but leave one that may be used only after `by`.

        Then it gives None, and whoever comes next finds the token. Threads wait for the one that
        draws, instead of drawing against it.
        """
        stock = self._stock(key)
        with stock.lock:
            now = self.draw.clock.now()
            block, instant = self._next(stock, per_minute, now)
            if instant is None:
                size = block_after(block, per_minute)
                drawn = self.draw.block(key, per_minute, size, held=stock.held)
                stock.held, stock.block = 0, drawn
                block, instant = first_of(drawn, self.draw.clock.now())
                is_counted = True
            else:
                is_counted = instant <= now
            if by is not None and instant > by:
                return None
            stock.block = block
            stock.held += 0 if is_counted else 1
            return instant

    def _next(
        self, stock: _Stock, per_minute: int, now: datetime
    ) -> tuple[Block | None, datetime | None]:
        if stock.block is None or stock.block.per_minute != per_minute:
            return stock.block, None
        return next_of(stock.block, now)

    def _stock(self, key: BudgetKey) -> _Stock:
        stock = self._stocks.setdefault(key, _Stock())
        while len(self._stocks) > STOCKS_MAX:
            self._stocks.popitem(last=False)
        return stock
