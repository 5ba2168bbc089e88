"""The ledger in DynamoDB: partition `tenant_schedule`, sort key `run`.

A row with one attempt stays below one kilobyte, the size of a write unit. What conditions ask for
stands beside the body: `row` (run, span or note), `id` (the occurrence's), `state`, `attempt` and
`write_id` of a run, `first` of a span. `expires_at` is the table's time to live, in epoch seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from puntual.application.codec import (
    note_of_text,
    note_text,
    run_of_text,
    run_text,
    schedule_key_of,
    schedule_key_text,
    span_of_text,
    span_text,
)
from puntual.aws import (
    DynamoDBClient,
    Item,
    PutItem,
    lost_to,
    unavailable_if_transient,
)
from puntual.domain.instant import text_of
from puntual.domain.occurrence import RunKey
from puntual.domain.run import Note, Run, RunState, Span
from puntual.domain.schedule import ScheduleKey

NAMES = {
    "#run": "run",
    "#id": "id",
    "#state": "state",
    "#attempt": "attempt",
    "#write_id": "write_id",
    "#first": "first",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbLedger:
    client: DynamoDBClient
    table: str
    retention: timedelta

    def read(self, key: RunKey) -> Run | None:
        item = self._item(key)
        if item is None:
            return None
        row = _row_of(item)
        assert isinstance(row, Run)
        return row

    def swap(self, run: Run, *, seen: Run | None) -> bool:
        if seen is None:
            return self._put_run(run, "attribute_not_exists(#run)", {})
        return self._put_run(run, "#write_id = :seen", {":seen": {"S": seen.write_id}})

    def record(self, run: Run) -> bool:
        return self._put_run(
            run,
            "#id = :id AND #attempt = :attempt AND #state = :running",
            {
                ":id": {"S": run.occurrence.id},
                ":attempt": {"N": str(run.attempt)},
                ":running": {"S": RunState.RUNNING},
            },
        )

    def note(self, note: Note) -> None:
        item = self._blank(note.key, "note", note.occurrence.scheduled_for)
        item["body"] = {"S": note_text(note)}
        with unavailable_if_transient("put a note"):
            self._put(item, "attribute_not_exists(#run)", {})

    def put_spans(self, spans: Sequence[Span]) -> None:
        """One conditional write per day of each: batches know no conditions, and it is rare."""
        for span in spans:
            for part in span.cut_at_midnights():
                first = text_of(part.first)
                item = self._blank(part.key, "span", part.last)
                item |= {"first": {"S": first}, "body": {"S": span_text(part)}}
                with unavailable_if_transient("put a span"):
                    self._put(
                        item,
                        "attribute_not_exists(#run) OR #first > :first",
                        {":first": {"S": first}},
                    )

    def between(
        self, key: ScheduleKey, *, first: str, last: str, limit: int, newest_first: bool = False
    ) -> tuple[Run | Span | Note, ...]:
        with unavailable_if_transient("read the ledger"):
            answers = self.client.get_paginator("query").paginate(
                TableName=self.table,
                KeyConditionExpression="tenant_schedule = :key AND #run BETWEEN :first AND :last",
                ExpressionAttributeNames={"#run": "run"},
                ExpressionAttributeValues={
                    ":key": {"S": schedule_key_text(key)},
                    ":first": {"S": first},
                    ":last": {"S": last},
                },
                ConsistentRead=True,
                ScanIndexForward=not newest_first,
                PaginationConfig={"MaxItems": limit, "PageSize": limit},
            )
            items = [item for answer in answers for item in answer["Items"]]
        return tuple(_row_of(item) for item in items)

    def _put_run(self, run: Run, condition: str, values: Item) -> bool:
        assert run.write_id, "a write without an id cannot be known again (P9)"
        key = run.occurrence.key
        item = self._blank(key, "run", _expires_from(run))
        item |= {
            "id": {"S": run.occurrence.id},
            "state": {"S": run.state},
            "attempt": {"N": str(run.attempt)},
            "write_id": {"S": run.write_id},
            "body": {"S": run_text(run)},
        }
        with unavailable_if_transient("put a run"):
            lost_to = self._put(item, condition, values)
        return lost_to is None or lost_to.get("write_id") == {"S": run.write_id}

    def _put(self, item: Item, condition: str, values: Item) -> Item | None:
        """Put a row; give the row that the condition failed on, if it did (P9)."""
        request: PutItem = {
            "TableName": self.table,
            "Item": item,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {
                name: attribute for name, attribute in NAMES.items() if name in condition
            },
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        if values:
            request["ExpressionAttributeValues"] = values
        return lost_to(lambda: self.client.put_item(**request))

    def _item(self, key: RunKey) -> Item | None:
        with unavailable_if_transient("read a run"):
            answer = self.client.get_item(
                TableName=self.table,
                Key={
                    "tenant_schedule": {"S": schedule_key_text(_schedule_of(key))},
                    "run": {"S": key.run},
                },
                ConsistentRead=True,
            )
        return answer.get("Item")

    def _blank(self, key: RunKey, row: str, expires_from: datetime) -> Item:
        expires_at = int((expires_from + self.retention).timestamp())
        return {
            "tenant_schedule": {"S": schedule_key_text(_schedule_of(key))},
            "run": {"S": key.run},
            "row": {"S": row},
            "expires_at": {"N": str(expires_at)},
        }


def _expires_from(run: Run) -> datetime:
    """Give the row's own time: a backfill's scheduled time may lie before the retention."""
    return max(run.available_at, run.enqueued_at or run.available_at)


def _schedule_of(key: RunKey) -> ScheduleKey:
    return ScheduleKey(tenant=key.tenant, schedule=key.schedule)


def _row_of(item: Item) -> Run | Span | Note:
    key, body = schedule_key_of(item["tenant_schedule"]["S"]), item["body"]["S"]
    match item["row"]["S"]:
        case "run":
            return run_of_text(body, key=key, write_id=item["write_id"]["S"])
        case "span":
            return span_of_text(body, key=key)
        case "note":
            return note_of_text(body, key=key)
        case other:
            raise ValueError(f"unknown kind of row: {other!r}")
