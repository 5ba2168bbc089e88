"""The agenda in memory."""

import heapq
from collections.abc import Sequence
from datetime import datetime

from puntual.domain.agenda import Cursor
from puntual.domain.instant import text_of


def sort_key_of(cursor: Cursor) -> str:
    recovery = cursor.recovery
    parts = (
        text_of(cursor.available_at) if recovery is None else f"r#{text_of(recovery.last)}",
        cursor.tenant,
        cursor.schedule,
        str(cursor.version),
    )
    return "#".join(parts)


class InMemoryAgenda:
    def __init__(self) -> None:
        self.buckets: dict[tuple[int, datetime], dict[str, Cursor]] = {}
        self.quarantined: dict[tuple[int, str], tuple[Cursor, str]] = {}

    def due(
        self, shard: int, bucket: datetime, *, limit: int, behind: Cursor | None = None
    ) -> tuple[Cursor, ...]:
        cursors = self.buckets.get((shard, bucket), {})
        after = "" if behind is None else f"{text_of(behind.available_at)}#{behind.tenant}$"
        keys = heapq.nsmallest(limit, (key for key in cursors if key > after))
        return tuple(cursors[key] for key in keys)

    def put(self, shard: int, cursors: Sequence[Cursor]) -> None:
        for cursor in cursors:
            bucket = self.buckets.setdefault((shard, cursor.bucket), {})
            bucket[sort_key_of(cursor)] = cursor

    def recover(self, shard: int, cursor: Cursor) -> None:
        assert cursor.recovery is not None
        bucket = self.buckets.setdefault((shard, cursor.bucket), {})
        stands = bucket.get(sort_key_of(cursor))
        if stands is None or stands.scheduled_for < cursor.scheduled_for:
            bucket[sort_key_of(cursor)] = cursor

    def delete(self, shard: int, cursors: Sequence[Cursor]) -> None:
        for cursor in cursors:
            place = (shard, cursor.bucket)
            bucket = self.buckets.get(place, {})
            bucket.pop(sort_key_of(cursor), None)
            if not bucket:
                self.buckets.pop(place, None)

    def quarantine(self, shard: int, cursor: Cursor, *, reason: str) -> None:
        self.quarantined.setdefault((shard, sort_key_of(cursor)), (cursor, reason))

    def cursors(self) -> tuple[tuple[int, Cursor], ...]:
        """Every cursor with its shard, in the order of shard and time."""
        return tuple(
            (shard, cursors[key])
            for (shard, _), cursors in sorted(self.buckets.items())
            for key in sorted(cursors)
        )
