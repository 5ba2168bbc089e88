"""Keep some executors of a lane free of any one tenant's crowds."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from puntual.application.ports import Chance, Clock, Seats
from puntual.domain.errors import Unavailable
from puntual.domain.fairness import (
    QUICK,
    SHARED_FROM,
    Seat,
    WeightOf,
    crowds_in,
    seats_of,
)
from puntual.domain.lane import Lane
from puntual.domain.message import Crowd, Message

SEAT_LEASE = timedelta(seconds=30)
SEAT_RENEWED_AFTER = SEAT_LEASE / 3

SEATS_TRIED_MAX = 4
"""Seats that are tried, at random, before an executor takes them all for taken."""

REFUSED_FOR_MIN = timedelta(seconds=1)
REFUSED_FOR_MAX = timedelta(seconds=32)
"""For so long it does not ask again, twice as long at each refusal in a row. What is refused is
parked for up to twice that, by chance, so that it does not come back together."""

QUICK_FOR = timedelta(days=7)
"""For so long all executors know that a tenant's crowds are quick, once one of them saw it."""

LOOKED_UP_FOR = timedelta(minutes=5)
"""For so long an executor goes by what it knows, before it looks up what others know."""

CROWDS_KNOWN_MAX = 1_000


@dataclass(slots=True, kw_only=True)
class _Known:
    """What an executor knows of a tenant's crowds in a lane, each until an instant."""

    since: datetime
    seat: Seat | None = None
    seat_until: datetime = field(init=False)
    refused_until: datetime = field(init=False)
    refused_for: timedelta = REFUSED_FOR_MIN / 2
    quick_until: datetime = field(init=False)
    slow_until: datetime = field(init=False)

    def __post_init__(self) -> None:
        self.seat_until = self.refused_until = self.quick_until = self.slow_until = self.since


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareExecutors:
    """One executor's view of the seats; an executor handles one batch at a time.

    A crowd that may be slow needs a seat, and there are fewer than executors. Who comes alone, or
    is known to be quick, needs none, and then nothing is written. A seat is a lease: an executor
    that is killed gives it back. Nothing that must be right rests on it.
    """

    seats: Seats
    weight_of: WeightOf
    clock: Clock
    chance: Chance
    owner: str
    executors: Mapping[Lane, int]
    _known: dict[Crowd, _Known] = field(default_factory=dict)

    def admit(self, batch: Sequence[Message]) -> dict[int, datetime]:
        """Give the places in a batch whose messages must wait, and until when to park each."""
        now = self.clock.now()
        refused = {
            crowd: self._known[crowd].refused_for
            for crowd in self._contending(batch, now)
            if not self._may_start(crowd, now)
        }
        return {
            place: now + refused[message.crowd] * (1 + self.chance.fraction())
            for place, message in enumerate(batch)
            if message.crowd in refused
        }

    def renew(self) -> None:
        """Keep the seats while their batch lasts; to be called every `SEAT_RENEWED_AFTER`.

        Raises `Unavailable`; the lease goes on until its end then.
        """
        now = self.clock.now()
        for known in list(self._known.values()):
            if known.seat is not None and now < known.seat_until:
                self._take(known, known.seat, now)

    def settled(self, took: Mapping[Crowd, timedelta]) -> None:
        """Remember whose part of a batch was quick: its seat is free again, and it needs none."""
        now = self.clock.now()
        for crowd, duration in took.items():
            known = self._known.get(crowd)
            if known is None:
                continue
            with suppress(Unavailable):  # Leases end by themselves, and others see it too.
                if duration >= QUICK:
                    self._was_slow(crowd, known, now)
                elif known.seat is not None and now >= known.slow_until:
                    self._was_quick(crowd, known, now)

    def _contending(self, batch: Sequence[Message], now: datetime) -> list[Crowd]:
        """Give who needs a seat: crowds, and of a tenant that was refused one even a message.

        The few that fill up a batch of others would hold the executor as long as many.
        """
        crowds = crowds_in(batch)
        refused = [
            message.crowd
            for message in batch
            if (known := self._known.get(message.crowd)) is not None and now < known.refused_until
        ]
        contending = dict.fromkeys((*crowds, *refused))
        return [crowd for crowd in contending if self.executors[crowd.lane] >= SHARED_FROM]

    def _may_start(self, crowd: Crowd, now: datetime) -> bool:
        known = self._know(crowd, now)
        if now < known.refused_until:
            return False
        if now < known.quick_until or now < known.seat_until - SEAT_RENEWED_AFTER:
            return True
        try:
            starts = self._is_quick(crowd, known, now) or self._takes_any(crowd, known, now)
        except Unavailable:
            return True  # Fairness must not stop what it is for.
        if starts:
            known.refused_for = REFUSED_FOR_MIN / 2
        else:
            known.refused_for = min(2 * known.refused_for, REFUSED_FOR_MAX)
            known.refused_until = now + known.refused_for
        return starts

    def _is_quick(self, crowd: Crowd, known: _Known, now: datetime) -> bool:
        """Look up what other executors know, unless this one has just seen that it is not."""
        quick_until = self.seats.quick_until(crowd)
        if now < known.slow_until or quick_until is None or quick_until <= now:
            return False
        known.quick_until = min(quick_until, now + LOOKED_UP_FOR)
        return True

    def _takes_any(self, crowd: Crowd, known: _Known, now: datetime) -> bool:
        """Take the seat that was held before, or else one at random."""
        if known.seat is not None and self._take(known, known.seat, now):
            return True
        count = seats_of(self.executors[crowd.lane], self.weight_of(crowd.tenant))
        for _ in range(SEATS_TRIED_MAX):
            number = int(self.chance.fraction() * count)
            if self._take(known, Seat(crowd=crowd, number=number), now):
                return True
        return False

    def _take(self, known: _Known, seat: Seat, now: datetime) -> bool:
        until = now + SEAT_LEASE
        taken = self.seats.take(seat, owner=self.owner, now=now, until=until)
        known.seat, known.seat_until = (seat, until) if taken else (None, now)
        return taken

    def _was_slow(self, crowd: Crowd, known: _Known, now: datetime) -> None:
        """Tell others only if they take it for quick: a slow one's crowds come all the time."""
        known.slow_until = now + LOOKED_UP_FOR
        if now < known.quick_until:
            known.quick_until = now
            self.seats.note_quick(crowd, until=now)

    def _was_quick(self, crowd: Crowd, known: _Known, now: datetime) -> None:
        seat, known.seat, known.seat_until = known.seat, None, now
        known.quick_until = now + LOOKED_UP_FOR
        self.seats.note_quick(crowd, until=now + QUICK_FOR)
        if seat is not None:
            self.seats.leave(seat, owner=self.owner)

    def _know(self, crowd: Crowd, now: datetime) -> _Known:
        if crowd not in self._known:
            if len(self._known) >= CROWDS_KNOWN_MAX:
                self._known.clear()
            self._known[crowd] = _Known(since=now)
        return self._known[crowd]
