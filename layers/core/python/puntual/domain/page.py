"""Up to a hundred planned occurrences in one outbox row."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from puntual.domain.lane import Lane
from puntual.domain.occurrence import Kind, Occurrence

OCCURRENCES_PER_PAGE_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """An occurrence on its way to a lane; late by more than `misfire_after` it goes to recovery.

    So do a backfill's and every `round` that a replay opened, however young: new work comes first.
    `caught_up_at` is from when on it may run as one of a missed range.
    """

    occurrence: Occurrence
    available_at: datetime
    misfire_after: timedelta
    flexible: bool = False
    authorised_version: int | None = None
    round: int = 0
    caught_up_at: datetime | None = None

    def lane_at(self, now: datetime) -> Lane:
        is_old_work = self.round > 0 or self.occurrence.kind is Kind.BACKFILL
        if is_old_work or now - self.available_at > self.misfire_after:
            return Lane.RECOVERY
        return Lane.FLEXIBLE if self.flexible else Lane.STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Content-addressed (P2): the same occurrences make the same page, whoever writes it.

    So do only the same rounds: who deletes the page of one must not meet that of the next (E2).
    One that is `carried` is taken to its lanes by the planner that wrote it, and not by the relay.
    """

    shard: int
    bucket: datetime
    planned: tuple[Planned, ...]
    written_at: datetime
    carried: bool = False

    @property
    def id(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for planned in self.planned:
            digest.update(planned.occurrence.id.encode())
            if planned.round:
                digest.update(f"#{planned.round}".encode())
        return digest.hexdigest()
