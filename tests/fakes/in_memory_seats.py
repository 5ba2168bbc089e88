"""The seats in memory."""

from datetime import datetime

from puntual.domain.fairness import Seat
from puntual.domain.message import Crowd


class InMemorySeats:
    def __init__(self) -> None:
        self.rows: dict[Seat, tuple[str, datetime]] = {}
        self.quick: dict[Crowd, datetime] = {}
        self.writes = 0

    def take(self, seat: Seat, *, owner: str, now: datetime, until: datetime) -> bool:
        self.writes += 1
        holder, held_until = self.rows.get(seat, (owner, now))
        if holder != owner and held_until > now:
            return False
        self.rows[seat] = (owner, until)
        return True

    def leave(self, seat: Seat, *, owner: str) -> None:
        self.writes += 1
        if self.rows.get(seat, ("", None))[0] == owner:
            del self.rows[seat]

    def quick_until(self, crowd: Crowd) -> datetime | None:
        return self.quick.get(crowd)

    def note_quick(self, crowd: Crowd, *, until: datetime) -> None:
        self.writes += 1
        self.quick[crowd] = until
