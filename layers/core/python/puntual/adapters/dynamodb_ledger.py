"""The ledger in DynamoDB: partition `tenant_schedule`, sort key `run`.

A row with one attempt stays below one kilobyte, the size of a write unit. What conditions ask for
stands beside the body: `row` (run, span or note), `id` (the occurrence's), `state`, `attempt`,
`write_id` and, where it was asked to end, `asked` of a run, `first` of a span. `expires_at` is the
table's time to live, in epoch seconds.

A schedule's slot is the row `slot`: its `write_id`, and for who is `running` and who is `waiting`
the occurrence's id, with a body of its own. It never expires, since it may be held. Slots are
written in transactions only; their token is the write id.

The index `dead_letters` holds DEAD rows alone, since no others have its keys: `dead_letters_of`,
one of a tenant's partitions, and `dead_letter`, its place in the order of deaths.
"""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from puntual.application.codec import (
    DEAD_LETTER_PARTS,
    dead_letter_text,
    dead_letters_part,
    dead_letters_text,
    note_of_text,
    note_text,
    place_of_text,
    place_text,
    run_of_text,
    run_text,
    schedule_key_of,
    schedule_key_text,
    span_of_text,
    span_text,
)
from puntual.application.ports import DeadLetterPage
from puntual.aws import (
    TRANSACTION_EXPECTED_CODES,
    TRANSACTION_IN_PROGRESS,
    TRANSACTION_LOST,
    WAITS,
    DynamoDBClient,
    Item,
    PutItem,
    Sleep,
    TransactWriteItem,
    error_code,
    lost_to,
    page_item,
    unavailable_if_transient,
)
from puntual.domain.errors import Unavailable
from puntual.domain.instant import text_of
from puntual.domain.occurrence import RunKey
from puntual.domain.page import Page
from puntual.domain.replay import DeadLetterFilter
from puntual.domain.run import Note, Run, RunState, RunSwap, Span, Unchanged
from puntual.domain.schedule import ScheduleKey
from puntual.domain.slot import Place, Slot, SlotSwap
from puntual.domain.tenant import TenantId

NAMES = {
    "#run": "run",
    "#id": "id",
    "#state": "state",
    "#attempt": "attempt",
    "#write_id": "write_id",
    "#first": "first",
    "#asked": "asked",
    "#running": "running",
    "#running_body": "running_body",
    "#dead_letters_of": "dead_letters_of",
    "#dead_letter": "dead_letter",
    "#tenant_schedule": "tenant_schedule",
}

DEAD_LETTERS = "dead_letters"
BEFORE_ALL_TIMES = "0"
BEHIND_ALL_TIMES = ":"
BEHIND_ITS_INSTANT = "~"
"""Sorts behind the '#' that follows an instant."""

SLOT = "slot"
"""Sorts behind all runs, spans and notes, whose keys begin with a year."""

BEHIND_ALL_RUNS = ":"

CANCELED_TRANSACTION = "TransactionCanceledException"

ABSENT = "attribute_not_exists(#run)"
SAME_WRITE = "#write_id = :seen"
SAME_ATTEMPT = "#id = :id AND #attempt = :attempt AND #state = :running"
NOT_ASKED = "attribute_not_exists(#asked)"


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbLedger:
    client: DynamoDBClient
    table: str
    outbox_table: str
    retention: timedelta
    sleep: Sleep = time.sleep

    def read(self, key: RunKey) -> Run | None:
        item = self._item(_schedule_of(key), key.run)
        if item is None:
            return None
        row = _row_of(item)
        assert isinstance(row, Run)
        return row

    def swap(self, run: Run, *, seen: Run | None) -> bool:
        return self._put_run(run, *_as_seen(seen.write_id if seen else ""))

    def record(self, run: Run) -> bool:
        condition, values = SAME_ATTEMPT, _attempt_values(run)
        if run.state is RunState.RETRY_WAIT:
            condition = f"{condition} AND {NOT_ASKED}"
        return self._put_run(run, condition, values)

    def record_and_free(self, run: Run) -> bool:
        assert run.state.is_terminal, "backoffs hold the slot"
        put = self._conditional(SAME_ATTEMPT, _attempt_values(run)) | {"Item": self._run_item(run)}
        free = self._conditional("#running = :running", {":running": {"S": run.occurrence.id}}) | {
            "Key": _row_key(_schedule_of(run.occurrence.key), SLOT),
            "UpdateExpression": "SET #write_id = :write_id REMOVE #running, #running_body",
        }
        free["ExpressionAttributeNames"] |= _names("#write_id #running_body")
        free["ExpressionAttributeValues"] |= {":write_id": {"S": run.write_id}}
        lost = self._committed([{"Put": put}, {"Update": free}], run.write_id)
        if lost == {SLOT}:
            # It is not in the slot, and only a claim, which raises the attempt, could put it there.
            return self.record(run)
        return not lost

    def slot(self, key: ScheduleKey) -> Slot:
        item = self._item(key, SLOT)
        return Slot(tenant=key.tenant, schedule=key.schedule) if item is None else _slot_of(item)

    def swap_with_slot(self, slot: SlotSwap, *runs: RunSwap | Unchanged) -> bool:
        writes: list[TransactWriteItem] = [self._run_write(run) for run in runs]
        writes.append(self._slot_write(slot))
        return not self._committed(writes, slot.slot.write_id)

    def reopen(self, run: Run, *, seen: Run, page: Page) -> bool:
        put: TransactWriteItem = {
            "Put": {"TableName": self.outbox_table, "Item": page_item(page)},
        }
        return not self._committed(
            [self._run_write(RunSwap(run=run, seen=seen)), put], run.write_id
        )

    def dead(
        self, tenant: TenantId, which: DeadLetterFilter, *, before: str | None, limit: int
    ) -> DeadLetterPage:
        """Ask each partition for its newest, and give what none of them can have newer."""
        found: list[Run] = []
        read_through = ""
        for part in range(DEAD_LETTER_PARTS):
            runs, through = self._dead_in(tenant, part, which, before=before, limit=limit)
            found += runs
            read_through = max(read_through, through)
        newest = sorted(found, key=dead_letter_text, reverse=True)
        runs = [run for run in newest if dead_letter_text(run) >= read_through]
        if len(runs) > limit:
            page = tuple(runs[:limit])
            return DeadLetterPage(runs=page, before=dead_letter_text(page[-1]))
        return DeadLetterPage(runs=tuple(runs), before=read_through or None)

    def _dead_in(
        self,
        tenant: TenantId,
        part: int,
        which: DeadLetterFilter,
        *,
        before: str | None,
        limit: int,
    ) -> tuple[list[Run], str]:
        """Give the newest of a partition, and through which place, unless it is read to its end."""
        last = BEHIND_ALL_TIMES
        if which.until is not None:
            last = text_of(which.until) + BEHIND_ITS_INSTANT
        values: Item = {
            ":of": {"S": dead_letters_text(tenant, part)},
            ":first": {"S": BEFORE_ALL_TIMES if which.since is None else text_of(which.since)},
            ":last": {"S": last if before is None else min(before, last)},
        }
        asked: dict[str, Any] = {}
        condition = "#dead_letters_of = :of AND #dead_letter BETWEEN :first AND :last"
        wanted = ""
        if which.schedule is not None:
            key = ScheduleKey(tenant=tenant, schedule=which.schedule)
            values[":key"] = {"S": schedule_key_text(key)}
            wanted = "#tenant_schedule = :key"
            asked["FilterExpression"] = wanted
        with unavailable_if_transient("read the dead letters"):
            answer = self.client.query(
                TableName=self.table,
                IndexName=DEAD_LETTERS,
                KeyConditionExpression=condition,
                ExpressionAttributeNames=_names(f"{condition} {wanted}"),
                ExpressionAttributeValues=values,
                ScanIndexForward=False,
                # BETWEEN gives `before` itself, too.
                Limit=limit + 1,
                **asked,
            )
        rows = (_row_of(item) for item in answer["Items"] if item["dead_letter"]["S"] != before)
        runs = [row for row in rows if isinstance(row, Run)]
        through = answer.get("LastEvaluatedKey", {}).get("dead_letter", {}).get("S", "")
        return runs, through

    def note(self, note: Note) -> None:
        item = self._blank(note.key, "note", note.occurrence.scheduled_for)
        item["body"] = {"S": note_text(note)}
        with unavailable_if_transient("put a note"):
            self._put(item, ABSENT, {})

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
        last = min(last, BEHIND_ALL_RUNS)
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

    # --- single writes ------------------------------------------------------------------------

    def _put_run(self, run: Run, condition: str, values: Item) -> bool:
        with unavailable_if_transient("put a run"):
            lost_to = self._put(self._run_item(run), condition, values)
        return lost_to is None or lost_to.get("write_id") == {"S": run.write_id}

    def _put(self, item: Item, condition: str, values: Item) -> Item | None:
        """Put a row; give the row that the condition failed on, if it did (P9)."""
        request: PutItem = self._conditional(condition, values) | {"Item": item}
        return lost_to(lambda: self.client.put_item(**request))

    def _conditional(self, condition: str, values: Item) -> Any:
        request: dict[str, Any] = {
            "TableName": self.table,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": _names(condition),
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        if values:
            request["ExpressionAttributeValues"] = values
        return request

    # --- transactions -------------------------------------------------------------------------

    def _run_write(self, run: RunSwap | Unchanged) -> TransactWriteItem:
        condition = self._conditional(*_as_seen(run.seen.write_id if run.seen else ""))
        match run:
            case RunSwap():
                return {"Put": condition | {"Item": self._run_item(run.run)}}
            case Unchanged():
                key = _row_key(_schedule_of(run.key), run.key.run)
                return {"ConditionCheck": condition | {"Key": key}}

    def _slot_write(self, swap: SlotSwap) -> TransactWriteItem:
        condition = self._conditional(*_as_seen(swap.seen.write_id))
        if swap.changes:
            return {"Put": condition | {"Item": _slot_item(swap.slot)}}
        return {"ConditionCheck": condition | {"Key": _row_key(swap.seen.key, SLOT)}}

    def _committed(self, writes: Sequence[TransactWriteItem], write_id: str) -> set[str]:
        """Commit; give the sort keys of the rows that were not as they were seen.

        No keys where it succeeded, or had succeeded before. Conflicts with other transactions are
        waited out; raises `Unavailable` if they last.
        """
        codes: list[str] = []
        for wait in (*WAITS, None):
            with unavailable_if_transient("write a run and what goes with it"):
                reasons = self._tried(writes, write_id)
            if any(reason.get("Item", {}).get("write_id") == {"S": write_id} for reason in reasons):
                return set()
            codes = [reason["Code"] for reason in reasons if reason["Code"]]
            lost = {
                _sort_key_of(write)
                for write, reason in zip(writes, reasons, strict=False)
                if reason["Code"] == TRANSACTION_LOST
            }
            # A condition is believed only where no conflict stands beside it, since the one in
            # our way may be our own first try.
            if len(lost) == len(codes):
                return lost
            if wait is not None:
                self.sleep(wait)
        raise Unavailable(f"write a run and what goes with it: {', '.join(codes)}")

    def _tried(self, writes: Sequence[TransactWriteItem], write_id: str) -> list[Any]:
        """Commit once; give why each part was refused, in their order, or nothing."""
        try:
            self.client.transact_write_items(TransactItems=writes, ClientRequestToken=write_id)
        except ClientError as error:
            if error_code(error) == TRANSACTION_IN_PROGRESS:
                return [{"Code": TRANSACTION_IN_PROGRESS}]
            if error_code(error) != CANCELED_TRANSACTION:
                raise
            response: Mapping[str, Any] = error.response
            reasons = [
                {**reason, "Code": _plain(reason.get("Code"))}
                for reason in response.get("CancellationReasons", ())
            ]
            codes = {reason["Code"] for reason in reasons}
            if codes == {""} or not TRANSACTION_EXPECTED_CODES.issuperset(codes):
                raise
            return reasons
        return []

    # --- rows ---------------------------------------------------------------------------------

    def _item(self, key: ScheduleKey, run: str) -> Item | None:
        with unavailable_if_transient("read the ledger"):
            answer = self.client.get_item(
                TableName=self.table, Key=_row_key(key, run), ConsistentRead=True
            )
        return answer.get("Item")

    def _run_item(self, run: Run) -> Item:
        assert run.write_id, "a write without an id cannot be known again (P9)"
        item = self._blank(run.occurrence.key, "run", _expires_from(run))
        item |= {
            "id": {"S": run.occurrence.id},
            "state": {"S": run.state},
            "attempt": {"N": str(run.attempt)},
            "write_id": {"S": run.write_id},
            "body": {"S": run_text(run)},
        }
        if run.cancel_requested:
            item["asked"] = {"BOOL": True}
        if run.died_at is not None:
            of = dead_letters_text(run.occurrence.tenant, dead_letters_part(run.occurrence.key))
            item |= {"dead_letters_of": {"S": of}, "dead_letter": {"S": dead_letter_text(run)}}
        return item

    def _blank(self, key: RunKey, row: str, expires_from: datetime) -> Item:
        expires_at = int((expires_from + self.retention).timestamp())
        return _row_key(_schedule_of(key), key.run) | {
            "row": {"S": row},
            "expires_at": {"N": str(expires_at)},
        }


def _as_seen(write_id: str) -> tuple[str, Item]:
    """Give the condition that a row is still of this write, or still absent."""
    return (SAME_WRITE, {":seen": {"S": write_id}}) if write_id else (ABSENT, {})


def _attempt_values(run: Run) -> Item:
    return {
        ":id": {"S": run.occurrence.id},
        ":attempt": {"N": str(run.attempt)},
        ":running": {"S": RunState.RUNNING},
    }


def _names(expression: str) -> dict[str, str]:
    asked = set(re.findall(r"#\w+", expression))
    return {name: attribute for name, attribute in NAMES.items() if name in asked}


def _row_key(key: ScheduleKey, run: str) -> Item:
    return {"tenant_schedule": {"S": schedule_key_text(key)}, "run": {"S": run}}


def _sort_key_of(write: Any) -> str:
    (part,) = write.values()
    run: str = (part.get("Key") or part["Item"])["run"]["S"]
    return run


def _plain(code: str | None) -> str:
    return "" if code in {None, "None"} else str(code)


def _slot_item(slot: Slot) -> Item:
    assert slot.write_id, "a write without an id cannot be known again (P9)"
    item = _row_key(slot.key, SLOT)
    item |= {"row": {"S": SLOT}, "write_id": {"S": slot.write_id}}
    for name, place in (("running", slot.running), ("waiting", slot.waiting)):
        if place is not None:
            item[name] = {"S": place.occurrence.id}
            item[f"{name}_body"] = {"S": place_text(place)}
    return item


def _slot_of(item: Item) -> Slot:
    key = schedule_key_of(item["tenant_schedule"]["S"])

    def place(name: str) -> Place | None:
        body = item.get(f"{name}_body")
        return None if body is None else place_of_text(body["S"], key=key)

    return Slot(
        tenant=key.tenant,
        schedule=key.schedule,
        running=place("running"),
        waiting=place("waiting"),
        write_id=item["write_id"]["S"],
    )


def _expires_from(run: Run) -> datetime:
    """Give the row's own time: a backfill's scheduled time may lie before the retention.

    A replay, too, is later than its row, which must outlive the new round.
    """
    times = (run.available_at, run.enqueued_at, run.not_before, run.died_at)
    started = run.attempts[-1].started_at if run.round and run.attempts else None
    return max(time for time in (*times, started) if time is not None)


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
