"""The shards in memory."""

from dataclasses import replace
from datetime import datetime

from puntual.domain.shard import Shard


class InMemoryShards:
    def __init__(self) -> None:
        self.rows: dict[int, Shard] = {}

    def ensure(self, shard: Shard) -> None:
        self.rows.setdefault(shard.shard, shard)

    def get(self, shard: int) -> Shard | None:
        return self.rows.get(shard)

    def all(self) -> tuple[int, ...]:
        return tuple(sorted(self.rows))

    def lease(self, shard: int, *, owner: str, now: datetime, until: datetime) -> bool:
        row = self.rows.get(shard)
        if row is None:
            return False
        held = row.lease_until is not None and row.lease_until > now
        if held and row.lease_owner != owner:
            return False
        self.rows[shard] = replace(row, lease_owner=owner, lease_until=until)
        return True

    def release(self, shard: int, *, owner: str) -> None:
        row = self.rows.get(shard)
        if row is not None and row.lease_owner == owner:
            self.rows[shard] = replace(row, lease_owner="", lease_until=None)

    def announce(self, shard: int, planned_through: datetime) -> None:
        row = self.rows.get(shard)
        if row is not None:
            risen = max(row.planned_through, planned_through)
            self.rows[shard] = replace(row, planned_through=risen)

    def close(self, shard: int, *, completed_through: datetime, drained_through: datetime) -> None:
        row = self.rows.get(shard)
        if row is not None:
            self.rows[shard] = replace(
                row,
                completed_through=max(row.completed_through, completed_through),
                drained_through=max(row.drained_through, drained_through),
            )
