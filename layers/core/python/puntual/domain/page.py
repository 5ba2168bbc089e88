"""Up to a hundred planned occurrences in one outbox row."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from puntual.domain.lane import Lane
from puntual.domain.occurrence import Occurrence

OCCURRENCES_PER_PAGE_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """An occurrence on its way to a lane; late by more than `misfire_after` it goes to recovery.

    `caught_up_at` is from when on it may run as one of a missed range.
    """

    occurrence: Occurrence
    available_at: datetime
    misfire_after: timedelta
    flexible: bool = False
    authorised_version: int | None = None
    caught_up_at: datetime | None = None

    def lane_at(self, now: datetime) -> Lane:
        if now - self.available_at > self.misfire_after:
            return Lane.RECOVERY
        return Lane.FLEXIBLE if self.flexible else Lane.STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Content-addressed (P2): the same occurrences make the same page, whoever writes it."""

    shard: int
    bucket: datetime
    planned: tuple[Planned, ...]
    written_at: datetime

    @property
    def id(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for planned in self.planned:
            digest.update(planned.occurrence.id.encode())
        return digest.hexdigest()
