"""Cursors: each schedule's next fire, kept under its time bucket and shard."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from puntual.domain.instant import minute_of
from puntual.domain.occurrence import VersionFires
from puntual.domain.schedule import ScheduleKey, ScheduleState, ScheduleVersion
from puntual.domain.tenant import ScheduleId, TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What is left of a range that was missed: through `last`, the oldest `left` fires run."""

    last: datetime
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The next fire of one schedule version; its bucket is the minute of `available_at`.

    A recovery cursor (P8) stands for the first fire of a missed range's next slice, and its
    `available_at` is the minute in which that slice is due (E9).
    """

    tenant: TenantId
    schedule: ScheduleId
    version: int
    scheduled_for: datetime
    available_at: datetime
    recovery: Recovery | None = None

    @property
    def key(self) -> ScheduleKey:
        return ScheduleKey(tenant=self.tenant, schedule=self.schedule)

    @property
    def bucket(self) -> datetime:
        return minute_of(self.available_at)


def cursor_at(fire: datetime, fires: VersionFires) -> Cursor:
    """Give the cursor that stands for one fire of a schedule version."""
    return Cursor(
        tenant=fires.tenant,
        schedule=fires.schedule,
        version=fires.version,
        scheduled_for=fire,
        available_at=fires.available_at(fire),
    )


def first_cursor(version: ScheduleVersion) -> Cursor | None:
    """Give the cursor that a new version starts with; only an active one has any."""
    fire = version.first_fire if version.state is ScheduleState.ACTIVE else None
    return None if fire is None else cursor_at(fire, version.fires)


def shard_of(key: ScheduleKey, shards: int) -> int:
    """Give the shard of a schedule: stable, and even over tenants and schedules."""
    text = f"{key.tenant}\x1f{key.schedule}"
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest) % shards
