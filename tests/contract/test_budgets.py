"""What a million occurrences cost follows from these: sizes, write units and calls."""

import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from puntual.application.ports import Sending
from puntual.aws import DynamoDBClient, Item
from puntual.domain.lane import Lane
from puntual.domain.message import message_of
from puntual.domain.page import OCCURRENCES_PER_PAGE_MAX
from puntual.domain.policies import Policies
from puntual.domain.run import RunState
from tests.builders import (
    NINE,
    a_cursor,
    a_page,
    a_planned,
    a_run,
    a_schedule,
    a_tenant,
    a_version,
    an_occurrence,
)
from tests.contract.conftest import Aws

WRITE_UNIT = 1024
LONGEST = "x" * 64
COUNT = OCCURRENCES_PER_PAGE_MAX
ID_LENGTH = 32


def only_row(client: DynamoDBClient, table: str) -> Item:
    (row,) = client.scan(TableName=table)["Items"]
    return row


def bytes_of(row: Item) -> int:
    """Give a row's size as DynamoDB counts it: names and values; a number by its digits."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in row.items())


def _value_bytes(value: Any) -> int:
    ((kind, held),) = value.items()
    match kind:
        case "S":
            return len(held.encode())
        case "N":
            return (len(held) + 1) // 2 + 1
        case "B":
            return len(bytes(held))
        case _:
            raise AssertionError(f"rows hold no {kind}")


def units(row: Item) -> int:
    return -(-bytes_of(row) // WRITE_UNIT)


@contextmanager
def counting(*clients: Any) -> Iterator[list[str]]:
    """Count the calls that leave for AWS."""
    calls: list[str] = []

    def count(model: Any, **_: Any) -> None:
        calls.append(model.name)

    for client in clients:
        client.meta.events.register("before-call", count)
    yield calls
    for client in clients:
        client.meta.events.unregister("before-call", count)


def test_a_cursor_with_the_longest_ids_is_one_write_unit(aws: Aws) -> None:
    version = a_version(
        tenant=LONGEST,
        schedule=LONGEST,
        version=10**9,
        effective_from=NINE,
        policies=Policies(window=timedelta(hours=24)),
    )
    aws.agenda.put(127, [a_cursor(version=version)])
    assert bytes_of(only_row(aws.dynamodb, "agenda")) < 300


@pytest.mark.parametrize("length", [12, 64])
def test_claim_and_outcome_of_a_first_attempt_are_one_write_unit_each(
    aws: Aws, length: int
) -> None:
    occurrence = an_occurrence(tenant="t" * length, schedule="s" * length, version=10**6)
    claim = replace(
        a_run(occurrence, write_id="1" * ID_LENGTH),
        available_at=NINE + timedelta(seconds=9),
        authorised_version=10**6,
    )
    assert aws.world.ledger.swap(claim, seen=None)
    assert units(only_row(aws.dynamodb, "occurrences")) == 1
    outcome = replace(
        claim,
        state=RunState.RETRY_WAIT,
        lease_until=None,
        not_before=NINE + timedelta(minutes=1),
        reason="HTTP 503",
        attempts=claim.finished_attempt(now=NINE + timedelta(seconds=11), result="HTTP 503"),
        write_id="2" * ID_LENGTH,
    )
    assert aws.world.ledger.record(outcome)
    assert units(only_row(aws.dynamodb, "occurrences")) == 1


def test_planning_a_page_keeps_to_its_write_units_and_calls(aws: Aws) -> None:
    source = random.Random(7)
    versions = [
        a_version(tenant="tenant-0042", schedule=str(uuid.UUID(int=source.getrandbits(128))))
        for _ in range(COUNT)
    ]
    cursors = [a_cursor(version=version) for version in versions]
    following = [a_cursor(NINE + timedelta(minutes=1), version=version) for version in versions]
    aws.world.tenants.register(a_tenant("tenant-0042"))
    aws.schedules.create(a_schedule(versions[0]), versions[0], None, shard=0)
    aws.agenda.put(0, cursors)
    cursor_units = max(map(units, aws.dynamodb.scan(TableName="agenda")["Items"]))
    page = a_page(
        *(
            a_planned(an_occurrence(tenant=version.tenant, schedule=version.schedule, version=1))
            for version in versions
        )
    )
    sendings = [
        Sending(message=message_of(planned, now=NINE), delay=timedelta(seconds=600))
        for planned in page.planned
    ]
    with counting(aws.dynamodb, aws.sqs) as calls:
        assert aws.agenda.due(0, NINE, limit=COUNT) == tuple(
            sorted(cursors, key=lambda cursor: cursor.schedule)
        )
        aws.schedules.heads([version.key for version in versions])
        aws.world.outbox.put(page)
        page_units = units(only_row(aws.dynamodb, "outbox"))
        calls.remove("Scan")
        aws.agenda.put(0, following)
        aws.agenda.delete(0, cursors)
        assert aws.lanes.send(Lane.STRICT, sendings) == ()
        aws.world.outbox.delete(page)
    assert 2 * cursor_units + 2 * page_units / COUNT <= 2.5
    assert len(calls) / COUNT <= 0.3
