"""Draw tokens from a budget: read it, take them, write it back if nobody was faster."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from puntual.application.ports import Budgets, Clock, IdSource
from puntual.domain.budget import Block, Budget, BudgetKey, reserve, reserve_block, take_up_to
from puntual.domain.errors import Unavailable

DRAWS_MAX = 8
"""Tries against others who draw from the same budget; each lost one means that another won."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawTokens:
    """Each call is one read and one write while nobody else draws. Raises `Unavailable`.

    Where its write took effect unheard, its tokens are lost: never are any used twice.
    """

    budgets: Budgets
    clock: Clock
    ids: IdSource

    def reserve(self, key: BudgetKey, per_minute: int, count: int) -> datetime:
        """Take tokens, of the future too; gives when the first may be used, as `reserve` does."""
        return self._draw(key, lambda seen: reserve(seen, per_minute, count, self.clock.now()))

    def block(self, key: BudgetKey, per_minute: int, size: int, *, held: int) -> Block:
        """Take a block of tokens, and count what was held since the last one was taken."""
        return self._draw(
            key,
            lambda seen: reserve_block(seen, per_minute, size, self.clock.now(), held=held),
        )

    def take_up_to(
        self, key: BudgetKey, per_minute: int, wanted: int, *, through: datetime
    ) -> tuple[int, datetime]:
        """Take what falls due at or before `through`.

        Gives how many, perhaps none, and when the first of them may be used.
        """

        def take(seen: Budget) -> tuple[Budget, tuple[int, datetime]]:
            now = self.clock.now()
            taken, granted = take_up_to(seen, per_minute, wanted, now, through)
            return taken, (granted, max(now, seen.taken_through))

        return self._draw(key, take)

    def _draw[T](self, key: BudgetKey, take: Callable[[Budget], tuple[Budget, T]]) -> T:
        for _ in range(DRAWS_MAX):
            seen = self.budgets.read(key)
            taken, answer = take(seen)
            if taken == seen:
                return answer
            if self.budgets.swap(replace(taken, write_id=self.ids.new_id()), seen=seen):
                return answer
        raise Unavailable(f"budget {key.name} of {key.tenant}: too many draw from it")
