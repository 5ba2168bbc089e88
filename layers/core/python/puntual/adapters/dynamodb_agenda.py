"""The agenda in DynamoDB: partition `bucket`, sort key `cursor`.

A cursor costs one write unit to put and one to delete: all but its `scheduled_for` is in its key,
and how many fires a recovery has `left`.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import batched

from aws_lambda_powertools import Logger

from puntual.application.codec import (
    RECOVERY_PREFIX,
    behind_text,
    bucket_text,
    cursor_of,
    cursor_text,
    recovery_cursor_of,
)
from puntual.aws import (
    DynamoDBClient,
    Item,
    Sleep,
    WriteRequest,
    WriteRequests,
    put_if_absent,
    took,
    unavailable_if_transient,
    until_nothing_is_left,
)
from puntual.domain.agenda import Cursor
from puntual.domain.instant import text_of

ITEMS_PER_BATCH_MAX = 25
"""What BatchWriteItem takes in one call."""

REASON_LENGTH_MAX = 500

logger = Logger(child=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbAgenda:
    client: DynamoDBClient
    table: str
    sleep: Sleep = time.sleep

    def due(
        self, shard: int, bucket: datetime, *, limit: int, behind: Cursor | None = None
    ) -> tuple[Cursor, ...]:
        while True:  # each round sets at least one row aside
            items = self._query(shard, bucket, limit, behind)
            cursors = tuple(
                cursor
                for item in items
                if (cursor := self._cursor_or_aside(shard, item)) is not None
            )
            if cursors or not items:
                return cursors

    def _query(self, shard: int, bucket: datetime, limit: int, behind: Cursor | None) -> list[Item]:
        condition, names = "#bucket = :bucket", {"#bucket": "bucket"}
        values: Item = {":bucket": {"S": bucket_text(bucket, shard)}}
        if behind is not None:
            condition += " AND #cursor > :behind"
            names["#cursor"] = "cursor"
            values[":behind"] = {"S": behind_text(behind)}
        with unavailable_if_transient("read a bucket"):
            pages = self.client.get_paginator("query").paginate(
                TableName=self.table,
                KeyConditionExpression=condition,
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=values,
                ConsistentRead=True,
                PaginationConfig={"MaxItems": limit, "PageSize": limit},
            )
            return [item for page in pages for item in page["Items"]]

    def _cursor_or_aside(self, shard: int, item: Item) -> Cursor | None:
        """Read a row; one that cannot be read is quarantined, so that its bucket can be closed."""
        try:
            return _cursor_of(item)
        except (KeyError, ValueError):
            self._quarantine(shard, item, reason="unreadable")
        key = {"bucket": item["bucket"], "cursor": item["cursor"]}
        rest: WriteRequests = {self.table: [{"DeleteRequest": {"Key": key}}]}
        until_nothing_is_left(rest, self._send, what="set a cursor aside", sleep=self.sleep)
        return None

    def put(self, shard: int, cursors: Sequence[Cursor]) -> None:
        self._write("put cursors", shard, cursors, _put_request)

    def recover(self, shard: int, cursor: Cursor) -> None:
        assert cursor.recovery is not None
        with unavailable_if_transient("put a recovery cursor"):
            took(
                lambda: self.client.put_item(
                    TableName=self.table,
                    Item=_item(shard, cursor),
                    ConditionExpression="attribute_not_exists(#cursor) OR #fire < :fire",
                    ExpressionAttributeNames={"#cursor": "cursor", "#fire": "scheduled_for"},
                    ExpressionAttributeValues={":fire": {"S": text_of(cursor.scheduled_for)}},
                )
            )

    def delete(self, shard: int, cursors: Sequence[Cursor]) -> None:
        self._write("delete cursors", shard, cursors, _delete_request)

    def quarantine(self, shard: int, cursor: Cursor, *, reason: str) -> None:
        self._quarantine(shard, _item(shard, cursor), reason=reason)

    def _quarantine(self, shard: int, item: Item, *, reason: str) -> None:
        # Here, since whoever plans may die before it tells of it.
        logger.error("cursor quarantined", shard=shard, cursor=item["cursor"]["S"], reason=reason)
        item = item | {
            "bucket": {"S": f"quarantine#{shard}"},
            "reason": {"S": reason[:REASON_LENGTH_MAX]},
        }
        with unavailable_if_transient("quarantine a cursor"):
            put_if_absent(self.client, self.table, item, key="bucket")

    def _write(
        self,
        what: str,
        shard: int,
        cursors: Sequence[Cursor],
        request: Callable[[int, Cursor], WriteRequest],
    ) -> None:
        # One request per row: a batch that names a row twice is refused as a whole.
        requests = {cursor_text(cursor): request(shard, cursor) for cursor in cursors}
        for batch in batched(requests.values(), ITEMS_PER_BATCH_MAX, strict=False):
            rest: WriteRequests = {self.table: batch}
            until_nothing_is_left(rest, self._send, what=what, sleep=self.sleep)

    def _send(self, rest: WriteRequests) -> WriteRequests:
        return self.client.batch_write_item(RequestItems=rest)["UnprocessedItems"]


def _key(shard: int, cursor: Cursor) -> Item:
    return {
        "bucket": {"S": bucket_text(cursor.bucket, shard)},
        "cursor": {"S": cursor_text(cursor)},
    }


def _item(shard: int, cursor: Cursor) -> Item:
    item = _key(shard, cursor) | {"scheduled_for": {"S": text_of(cursor.scheduled_for)}}
    if cursor.recovery is not None:
        item["left"] = {"N": str(cursor.recovery.left)}
    return item


def _cursor_of(item: Item) -> Cursor:
    text, scheduled_for = item["cursor"]["S"], item["scheduled_for"]["S"]
    if not text.startswith(RECOVERY_PREFIX):
        return cursor_of(text, scheduled_for=scheduled_for)
    return recovery_cursor_of(
        text,
        bucket=item["bucket"]["S"],
        scheduled_for=scheduled_for,
        left=int(item["left"]["N"]),
    )


def _put_request(shard: int, cursor: Cursor) -> WriteRequest:
    return {"PutRequest": {"Item": _item(shard, cursor)}}


def _delete_request(shard: int, cursor: Cursor) -> WriteRequest:
    return {"DeleteRequest": {"Key": _key(shard, cursor)}}
