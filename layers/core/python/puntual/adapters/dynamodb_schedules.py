"""Heads and versions in DynamoDB; control plane writes are one transaction each.

A row holds its value as text in `body`, and beside it only what keys, conditions and filters ask
for. `write_id` is the fingerprint of all that a transaction writes: it is the transaction's
token, and the version row keeps it, so that a repeated write is known again (P9) for ever. Not the
head: another version may have followed before the repetition.
"""

import hashlib
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import islice
from operator import and_
from typing import Any, ClassVar, Self

from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError
from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.connection import Connection
from pynamodb.exceptions import TransactWriteError
from pynamodb.expressions.condition import Condition
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex
from pynamodb.models import Model
from pynamodb.transactions import TransactWrite

from puntual.application.codec import (
    SPREAD_DIGITS,
    bucket_text,
    cursor_text,
    head_of_text,
    head_text,
    label_filter_text,
    labels_text,
    rule_of_text,
    schedule_key_of,
    schedule_key_text,
    spread_text,
    time_zone_text,
    version_of_text,
    version_text,
)
from puntual.application.ports import (
    AlreadyExists,
    Created,
    CreateResult,
    HeadPage,
    QuotaReached,
    SchedulePage,
    TenantUnknown,
    UnreadableHead,
)
from puntual.aws import (
    CONNECT_TIMEOUT_SECONDS,
    READ_TIMEOUT_SECONDS,
    REGISTRATION,
    TRANSACTION_EXPECTED_CODES,
    TRANSACTION_IN_PROGRESS,
    TRANSACTION_LOST,
    TRIES_MAX,
    WAITS,
    DynamoDBClient,
    Item,
    ReadRequests,
    RegistrationRow,
    Scan,
    Sleep,
    bound,
    error_code,
    registration_key,
    took,
    unavailable_if_transient,
    until_nothing_is_left,
)
from puntual.domain.agenda import Cursor
from puntual.domain.errors import Unavailable
from puntual.domain.forecast import RuleCount, RulePage
from puntual.domain.instant import text_of
from puntual.domain.labels import LabelFilter
from puntual.domain.schedule import Schedule, ScheduleKey, ScheduleState, ScheduleVersion
from puntual.domain.tenant import ScheduleId, TenantId

logger = Logger(child=True)

HEADS_MAX = 100
"""What BatchGetItem takes in one call."""

LISTING_PAGES_MAX = 20
LISTING_PAGE_SIZE = 200
"""A filtered listing reads at most so much before it answers with what it found."""

ZONES_FILTERED_MAX = 100
"""Of so many zones the table itself is asked for the heads: an expression may be 4 KB long."""

BY_SPREAD = "by_spread"
HASHES: int = 16**SPREAD_DIGITS
AFTER_RULES = "~"
"""Sorts behind the '#' before each rule."""

RULES_PER_PAGE = 4_000
"""Half a megabyte; with the longest ids a whole one, which is where a query ends by itself."""

RULE_READERS = 4
"""They hide the time on the way; reading itself is bound by this function's CPU."""

HEAD = 0
"""The head's place in each transaction."""


class ByTenant(GlobalSecondaryIndex["HeadRow"]):  # type: ignore[no-untyped-call] # PynamoDB's own
    class Meta:
        index_name = "by_tenant"
        projection = AllProjection()

    tenant = UnicodeAttribute(hash_key=True)
    schedule = UnicodeAttribute(range_key=True)


class HeadRow(Model):
    tenant_schedule = UnicodeAttribute(hash_key=True)
    tenant = UnicodeAttribute()
    schedule = UnicodeAttribute()
    version = NumberAttribute()
    state = UnicodeAttribute()
    spread = UnicodeAttribute(null=True)
    # Beside the body, for listings to filter by.
    labels = UnicodeAttribute(null=True)
    body = UnicodeAttribute()
    by_tenant: ClassVar[ByTenant] = ByTenant()

    @classmethod
    def of(cls, head: Schedule) -> Self:
        return cls(
            schedule_key_text(head.key),
            tenant=head.tenant,
            schedule=head.schedule,
            version=head.version,
            state=head.state,
            # The index of rules holds the rows that have this, so no others have it.
            spread=spread_text(head) if head.state is ScheduleState.ACTIVE else None,
            labels=labels_text(head.labels) or None,
            body=head_text(head),
        )


class VersionRow(Model):
    tenant_schedule = UnicodeAttribute(hash_key=True)
    version = NumberAttribute(range_key=True)
    until = UnicodeAttribute(null=True)
    write_id = UnicodeAttribute()
    body = UnicodeAttribute()


class CursorRow(Model):
    bucket = UnicodeAttribute(hash_key=True)
    cursor = UnicodeAttribute(range_key=True)
    scheduled_for = UnicodeAttribute()


def _connection() -> Connection:
    return Connection(
        connect_timeout_seconds=CONNECT_TIMEOUT_SECONDS,
        read_timeout_seconds=READ_TIMEOUT_SECONDS,
        max_retry_attempts=TRIES_MAX - 1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reach:
    """A part of the hashes of ids, start <= hash < end, and how far it has been read."""

    start: int
    end: int
    read_to: int
    after: Item | None = None

    @property
    def share(self) -> float:
        """How much of all hashes is yet to be read."""
        return (self.end - self.read_to) / HASHES

    def beyond(self, last: Item | None) -> "_Reach | None":
        """Give what is left behind the last row that was read; nothing if that was the end."""
        if last is None:
            return None
        try:
            read_to = int(last["spread"]["S"][:SPREAD_DIGITS], 16) + 1
        except ValueError:
            read_to = self.read_to + 1
        return replace(self, read_to=min(read_to, self.end), after=last)

    def in_parts(self) -> "Iterator[_Reach]":
        """Divide what is left among the readers."""
        step = -((self.read_to - self.end) // RULE_READERS)
        yield replace(self, end=min(self.read_to + step, self.end))
        for start in range(self.read_to + step, self.end, max(step, 1)):
            yield _Reach(start=start, end=min(start + step, self.end), read_to=start)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RulesRead:
    page: RulePage
    rest: _Reach | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbSchedules:
    client: DynamoDBClient
    schedules_table: str
    versions_table: str
    agenda_table: str
    tenants_table: str
    connection: Connection = field(default_factory=_connection)
    sleep: Sleep = time.sleep
    rules_per_page: int = RULES_PER_PAGE

    # --- control plane --------------------------------------------------------------------

    def create(
        self, head: Schedule, version: ScheduleVersion, cursor: Cursor | None, *, shard: int
    ) -> CreateResult:
        heads = bound(HeadRow, self.schedules_table)
        counts = bound(RegistrationRow, self.tenants_table)
        write_id = _write_id(head, version, cursor, shard)

        def fill(transaction: TransactWrite) -> None:
            transaction.save(heads.of(head), heads.tenant_schedule.does_not_exist())
            self._save_version(transaction, version, write_id)
            self._save_cursor(transaction, cursor, shard)
            transaction.update(
                counts(head.tenant, REGISTRATION),
                actions=[counts.schedules.set(counts.schedules + 1)],
                condition=counts.schedules < counts.schedules_max,
            )

        lost = self._commit("create a schedule", write_id, fill)
        if not lost:
            return Created()
        if HEAD in lost:
            return Created() if self._is_own(version, write_id) else AlreadyExists()
        return self._refused(head.tenant)

    def advance(
        self, head: Schedule, version: ScheduleVersion, cursor: Cursor | None, *, shard: int
    ) -> bool:
        assert head.version == version.version
        heads = bound(HeadRow, self.schedules_table)
        versions = bound(VersionRow, self.versions_table)
        write_id = _write_id(head, version, cursor, shard)
        ended = versions(schedule_key_text(head.key), version.version - 1)

        def fill(transaction: TransactWrite) -> None:
            transaction.save(heads.of(head), heads.version == version.version - 1)
            self._save_version(transaction, version, write_id)
            self._save_cursor(transaction, cursor, shard)
            transaction.update(
                ended,
                actions=[versions.until.set(text_of(version.effective_from))],
                condition=versions.version.exists() & versions.until.does_not_exist(),
            )
            if head.state is ScheduleState.CANCELED:
                self._give_quota_back(transaction, head.tenant)

        lost = self._commit("change a schedule", write_id, fill)
        assert not lost or HEAD in lost, "a version or count does not fit its head"
        return not lost or self._is_own(version, write_id)

    def complete(self, key: ScheduleKey, version: int) -> bool:
        with unavailable_if_transient("complete a schedule"):
            return took(
                lambda: self.client.update_item(
                    TableName=self.schedules_table,
                    Key=_key(key),
                    UpdateExpression="SET #state = :completed REMOVE #spread",
                    ConditionExpression="#version = :version AND #state = :active",
                    ExpressionAttributeNames={
                        "#state": "state",
                        "#version": "version",
                        "#spread": "spread",
                    },
                    ExpressionAttributeValues={
                        ":completed": {"S": ScheduleState.COMPLETED},
                        ":active": {"S": ScheduleState.ACTIVE},
                        ":version": {"N": str(version)},
                    },
                )
            )

    def listed(
        self,
        tenant: TenantId,
        *,
        prefix: str,
        state: ScheduleState | None,
        after: ScheduleId | None,
        limit: int,
        labels: Sequence[LabelFilter] = (),
    ) -> SchedulePage:
        if after is not None and after > prefix and not after.startswith(prefix):
            return SchedulePage(schedules=(), after=None)
        heads = bound(HeadRow, self.schedules_table)
        start = after if after is not None and after.startswith(prefix) else None
        asked = _listing_filter(heads, state, labels)
        with unavailable_if_transient("list schedules"):
            pages = heads.by_tenant.query(
                tenant,
                range_key_condition=heads.schedule.startswith(prefix) if prefix else None,
                filter_condition=asked,
                page_size=limit if asked is None else LISTING_PAGE_SIZE,
                last_evaluated_key=None if start is None else _index_key(tenant, start),
            ).page_iter
            found: list[Schedule] = []
            for page in islice(pages, LISTING_PAGES_MAX):
                heads_read = (_head_or_none(item) for item in page["Items"])
                found.extend(head for head in heads_read if head is not None)
                if len(found) >= limit:
                    break
        shown = tuple(found[:limit])
        if len(found) > limit:
            return SchedulePage(schedules=shown, after=shown[-1].schedule)
        last = pages.last_evaluated_key
        return SchedulePage(
            schedules=shown, after=ScheduleId(last["schedule"]["S"]) if last else None
        )

    def active_in(
        self, zones: Collection[str], *, after: ScheduleKey | None, limit: int
    ) -> HeadPage:
        request: Scan = {
            "TableName": self.schedules_table,
            "Limit": limit,
            "FilterExpression": "#state = :active",
            "ExpressionAttributeNames": {"#state": "state"},
            "ExpressionAttributeValues": {":active": {"S": ScheduleState.ACTIVE}},
        }
        if len(zones) <= ZONES_FILTERED_MAX:
            _ask_for_zones(request, zones)
        if after is not None:
            request["ExclusiveStartKey"] = _key(after)
        with unavailable_if_transient("scan heads"):
            answer = self.client.scan(**request)
        heads = [
            _head_or_none(item) or UnreadableHead(key=_key_of(item)) for item in answer["Items"]
        ]
        last = answer.get("LastEvaluatedKey")
        return HeadPage(
            heads=tuple(
                head
                for head in heads
                if isinstance(head, UnreadableHead) or head.rule.time_zone in zones
            ),
            after=_key_of(last) if last else None,
        )

    def active_rules(self, tenant: TenantId) -> Generator[RulePage]:
        first = self._rules(tenant, _Reach(start=0, end=HASHES, read_to=0))
        yield first.page
        if first.rest is None:
            return
        with ThreadPoolExecutor(RULE_READERS) as readers:
            # In turns, so that whoever stops early has read the same schedules every time.
            reading = deque(
                readers.submit(self._rules, tenant, reach) for reach in first.rest.in_parts()
            )
            while reading:
                try:
                    read = reading.popleft().result()
                except Unavailable:
                    # What was read stands for it too.
                    logger.warning("rules left unread", tenant=tenant)
                    continue
                if read.rest is not None:
                    reading.append(readers.submit(self._rules, tenant, read.rest))
                yield read.page

    def _rules(self, tenant: TenantId, reach: _Reach) -> _RulesRead:
        query: dict[str, Any] = {
            "TableName": self.schedules_table,
            "IndexName": BY_SPREAD,
            "KeyConditionExpression": "tenant = :tenant AND spread BETWEEN :first AND :last",
            "ExpressionAttributeValues": {
                ":tenant": {"S": tenant},
                ":first": {"S": f"{reach.start:0{SPREAD_DIGITS}x}"},
                ":last": {"S": f"{reach.end - 1:0{SPREAD_DIGITS}x}{AFTER_RULES}"},
            },
            "ProjectionExpression": "spread",
            "Limit": self.rules_per_page,
        }
        if reach.after is not None:
            query["ExclusiveStartKey"] = reach.after
        with unavailable_if_transient("read rules"):
            answer = self.client.query(**query)
        counts = Counter(item["spread"]["S"][SPREAD_DIGITS + 1 :] for item in answer["Items"])
        rest = reach.beyond(answer.get("LastEvaluatedKey"))
        return _RulesRead(
            page=_rule_page(counts, share=reach.share - (rest.share if rest else 0)),
            rest=rest,
        )

    # --- read by planners and executors ------------------------------------------------------

    def head(self, key: ScheduleKey) -> Schedule | None:
        with unavailable_if_transient("read a head"):
            answer = self.client.get_item(
                TableName=self.schedules_table, Key=_key(key), ConsistentRead=True
            )
        return _head_of(answer["Item"]) if "Item" in answer else None

    def heads(self, keys: Sequence[ScheduleKey]) -> Mapping[ScheduleKey, Schedule]:
        assert len(keys) == len(set(keys)) <= HEADS_MAX
        if not keys:
            return {}
        items: list[Item] = []

        def send(rest: ReadRequests) -> ReadRequests:
            answer = self.client.batch_get_item(RequestItems=rest)
            items.extend(answer["Responses"].get(self.schedules_table, ()))
            return answer["UnprocessedKeys"]

        rest: ReadRequests = {
            self.schedules_table: {"Keys": [_key(key) for key in keys], "ConsistentRead": True}
        }
        until_nothing_is_left(rest, send, what="read heads", sleep=self.sleep)
        heads = (_head_or_none(item) for item in items)
        return {head.key: head for head in heads if head is not None}

    def version(self, key: ScheduleKey, version: int) -> ScheduleVersion | None:
        item = self._version_item(key, version)
        return None if item is None else _version_of(item)

    def versions(self, numbers: Mapping[ScheduleKey, int]) -> Mapping[ScheduleKey, ScheduleVersion]:
        assert len(numbers) <= HEADS_MAX
        if not numbers:
            return {}
        items: list[Item] = []

        def send(rest: ReadRequests) -> ReadRequests:
            answer = self.client.batch_get_item(RequestItems=rest)
            items.extend(answer["Responses"].get(self.versions_table, ()))
            return answer["UnprocessedKeys"]

        keys: list[Item] = [
            _key(key) | {"version": {"N": str(number)}} for key, number in numbers.items()
        ]
        rest: ReadRequests = {self.versions_table: {"Keys": keys, "ConsistentRead": True}}
        until_nothing_is_left(rest, send, what="read versions", sleep=self.sleep)
        versions = (_version_or_none(item) for item in items)
        return {version.key: version for version in versions if version is not None}

    # --- parts of transactions ---------------------------------------------------------------

    def _save_version(
        self, transaction: TransactWrite, version: ScheduleVersion, write_id: str
    ) -> None:
        versions = bound(VersionRow, self.versions_table)
        row = versions(
            schedule_key_text(version.key),
            version.version,
            write_id=write_id,
            body=version_text(version),
        )
        transaction.save(row, versions.version.does_not_exist())

    def _save_cursor(self, transaction: TransactWrite, cursor: Cursor | None, shard: int) -> None:
        if cursor is None:
            return
        row = bound(CursorRow, self.agenda_table)(
            bucket_text(cursor.bucket, shard),
            cursor_text(cursor),
            scheduled_for=text_of(cursor.scheduled_for),
        )
        transaction.save(row)

    def _give_quota_back(self, transaction: TransactWrite, tenant: TenantId) -> None:
        counts = bound(RegistrationRow, self.tenants_table)
        transaction.update(
            counts(tenant, REGISTRATION),
            actions=[counts.schedules.set(counts.schedules - 1)],
            condition=counts.schedules > 0,
        )

    # --- what became of them -----------------------------------------------------------------

    def _commit(
        self, what: str, write_id: str, fill: Callable[[TransactWrite], None]
    ) -> frozenset[int]:
        """Commit; give the places of the conditions that failed, none where it succeeded.

        Conflicts with other transactions are waited out; raises `Unavailable` if they last.
        """
        for wait in (*WAITS, None):
            with unavailable_if_transient(what):
                codes = self._tried(write_id, fill)
            lost = frozenset(place for place, code in enumerate(codes) if code == TRANSACTION_LOST)
            # Who lost the head has lost for good. Any other condition is believed only where no
            # conflict stands beside it, since the one in our way may be our own first try.
            if HEAD in lost or len(lost) == sum(map(bool, codes)):
                return lost
            if wait is not None:
                self.sleep(wait)
        raise Unavailable(f"{what}: {', '.join(filter(None, codes))}")

    def _tried(self, write_id: str, fill: Callable[[TransactWrite], None]) -> list[str]:
        """Commit once; give why each part was refused, in their order, or nothing."""
        try:
            with TransactWrite(
                connection=self.connection, client_request_token=write_id
            ) as transaction:
                fill(transaction)
        except TransactWriteError as error:
            if (
                isinstance(error.cause, ClientError)
                and error_code(error.cause) == TRANSACTION_IN_PROGRESS
            ):
                return [TRANSACTION_IN_PROGRESS]
            codes = [reason.code if reason else "" for reason in error.cancellation_reasons]
            if not any(codes) or not TRANSACTION_EXPECTED_CODES.issuperset(codes):
                raise
            return codes
        return []

    def _is_own(self, version: ScheduleVersion, write_id: str) -> bool:
        item = self._version_item(version.key, version.version)
        return item is not None and item["write_id"]["S"] == write_id

    def _refused(self, tenant: TenantId) -> TenantUnknown | QuotaReached:
        with unavailable_if_transient("read a tenant"):
            answer = self.client.get_item(
                TableName=self.tenants_table,
                Key=registration_key(tenant),
                ConsistentRead=True,
            )
        return QuotaReached() if "Item" in answer else TenantUnknown()

    def _version_item(self, key: ScheduleKey, version: int) -> Item | None:
        with unavailable_if_transient("read a version"):
            answer = self.client.get_item(
                TableName=self.versions_table,
                Key=_key(key) | {"version": {"N": str(version)}},
                ConsistentRead=True,
            )
        return answer.get("Item")


def _ask_for_zones(request: Scan, zones: Collection[str]) -> None:
    """Let the table leave out most heads of other zones; what stays is looked at again."""
    texts: Item = {f":zone{n}": {"S": time_zone_text(zone)} for n, zone in enumerate(sorted(zones))}
    any_of = " OR ".join(f"contains(#body, {name})" for name in texts)
    request["FilterExpression"] = f"#state = :active AND ({any_of})"
    request["ExpressionAttributeNames"] = {"#state": "state", "#body": "body"}
    request["ExpressionAttributeValues"] = texts | {":active": {"S": ScheduleState.ACTIVE}}


def _head_or_none(item: Item) -> Schedule | None:
    """Read a head of a batch; one that cannot be read must not keep the others from being read."""
    try:
        return _head_of(item)
    except ValueError:
        logger.exception("unreadable head", schedule=item["tenant_schedule"]["S"])
        return None


def _head_of(item: Item) -> Schedule:
    labels = item["labels"]["S"] if "labels" in item else ""
    return head_of_text(item["body"]["S"], state=item["state"]["S"], labels=labels)


def _version_or_none(item: Item) -> ScheduleVersion | None:
    try:
        return _version_of(item)
    except ValueError:
        logger.exception("unreadable version", schedule=item["tenant_schedule"]["S"])
        return None


def _version_of(item: Item) -> ScheduleVersion:
    until = item["until"]["S"] if "until" in item else None
    return version_of_text(item["body"]["S"], until=until)


def _listing_filter(
    heads: type[HeadRow], state: ScheduleState | None, labels: Sequence[LabelFilter]
) -> Condition | None:
    asked: list[Condition] = [] if state is None else [heads.state == state]
    asked.extend(heads.labels.contains(label_filter_text(label)) for label in labels)
    return reduce(and_, asked) if asked else None


def _rule_page(counts: Mapping[str, int], *, share: float) -> RulePage:
    readable: list[RuleCount] = []
    unreadable: dict[str, int] = {}
    for text, schedules in counts.items():
        try:
            readable.append(RuleCount(rule=rule_of_text(text), schedules=schedules))
        except ValueError:
            unreadable[text] = schedules
    return RulePage(
        counts=tuple(readable),
        share=share,
        unreadable=sum(unreadable.values()),
        unreadable_rule=next(iter(unreadable), None),
    )


def _key_of(item: Item) -> ScheduleKey:
    return schedule_key_of(item["tenant_schedule"]["S"])


def _key(key: ScheduleKey) -> Item:
    return {"tenant_schedule": {"S": schedule_key_text(key)}}


def _index_key(tenant: TenantId, schedule: ScheduleId) -> dict[str, dict[str, str]]:
    key = schedule_key_text(ScheduleKey(tenant=tenant, schedule=schedule))
    return {
        "tenant_schedule": {"S": key},
        "tenant": {"S": tenant},
        "schedule": {"S": schedule},
    }


def _write_id(head: Schedule, version: ScheduleVersion, cursor: Cursor | None, shard: int) -> str:
    parts = (
        head_text(head),
        head.state,
        version_text(version),
        str(shard),
        cursor_text(cursor) if cursor else "",
    )
    return hashlib.blake2b("\x1f".join(parts).encode(), digest_size=16).hexdigest()
