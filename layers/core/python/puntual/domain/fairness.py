"""How tenants share what they contend for: a planner's time, and the executors of a lane."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from puntual.domain.agenda import Cursor
from puntual.domain.message import Crowd, Message
from puntual.domain.tenant import TenantId

QUANTUM = 50
"""Cursors of a bucket that a tenant of weight 1 has planned before all the others had a turn."""

CROWD = 3
"""Messages of one tenant in one batch from which they may hold an executor for themselves."""

QUICK = timedelta(seconds=1)
"""A crowd that is done within it gives its executor back before anyone has waited for it."""

SHARED_FROM = 8
"""Executors of a lane from which they are shared: a part of fewer would stop tenants in turn."""

WeightOf = Callable[[TenantId], int]


@dataclass(slots=True, kw_only=True)
class Turn:
    """One walk through a bucket, in which each tenant has planned what its turn allows.

    Each round allows twice as much as the one before: what is put off is read a few times, not
    as often as there are quanta in it, and no tenant is planned much further than another of its
    weight that still has something left.
    """

    round: int
    quantum: int
    weight_of: WeightOf
    _given: Counter[TenantId] = field(default_factory=Counter)
    _allowed: dict[TenantId, int] = field(default_factory=dict)

    def split(self, cursors: Sequence[Cursor]) -> tuple[list[Cursor], list[Cursor]]:
        """Give those whose turn it is and those that are put off, both in their order."""
        chosen: list[Cursor] = []
        put_off: list[Cursor] = []
        for cursor in cursors:
            given = self._given[cursor.tenant]
            if given < self.quantum << self.round or given < self._allowance(cursor.tenant):
                self._given[cursor.tenant] += 1
                chosen.append(cursor)
            else:
                put_off.append(cursor)
        return chosen, put_off

    def _allowance(self, tenant: TenantId) -> int:
        """Ask for the weight only here: most tenants never have more than a quantum."""
        if tenant not in self._allowed:
            self._allowed[tenant] = (self.quantum * self.weight_of(tenant)) << self.round
        return self._allowed[tenant]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Leave for one executor to hold a crowd of a tenant; numbered from 0 for each of them."""

    crowd: Crowd
    number: int


def seats_of(executors: int, weight: int) -> int:
    """Give how many executors of a lane a tenant's crowds may hold at once, at least one.

    Three quarters with weight 1, 97 % with weight 10: never all, so that what comes next from
    another finds one that is free. The heavier has some that the lighter never holds.
    """
    if executors < SHARED_FROM:
        return executors
    return executors * 3 * weight // (3 * weight + 1)


def crowds_in(batch: Sequence[Message]) -> tuple[Crowd, ...]:
    """Give whose messages come to a batch in a crowd, in the order of the batch."""
    counts = Counter(message.crowd for message in batch)
    return tuple(crowd for crowd, count in counts.items() if count >= CROWD)
