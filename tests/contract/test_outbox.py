"""The outbox: pages that nobody has relayed yet."""

from dataclasses import replace
from datetime import timedelta

import pytest

from puntual.application.codec import page_of_packed
from puntual.application.ports import Outbox
from puntual.domain.occurrence import Kind
from puntual.domain.page import OCCURRENCES_PER_PAGE_MAX
from tests.builders import NINE, a_page, a_planned, an_occurrence
from tests.contract.conftest import Aws, World
from tests.contract.sdk import repeating
from tests.fakes.in_memory_outbox import InMemoryOutbox

MINUTE = timedelta(minutes=1)
WRITTEN = a_page().written_at


@pytest.fixture
def outbox(world: World) -> Outbox:
    return world.outbox


def test_an_outbox_without_pages_has_none_left(outbox: Outbox) -> None:
    assert outbox.left(0, written_before=NINE, limit=10) == ()


def test_a_page_is_read_as_it_was_put(outbox: Outbox) -> None:
    planned = [
        a_planned(an_occurrence(schedule=f"job-{number}"), flexible=number % 2 == 0)
        for number in range(OCCURRENCES_PER_PAGE_MAX - 1)
    ]
    manual = an_occurrence(kind=Kind.BACKFILL, request_id="r-9", version=4)
    page = a_page(*planned, a_planned(manual, authorised_version=7))
    outbox.put(page)
    assert outbox.left(0, written_before=NINE, limit=10) == (page,)


def test_a_page_that_is_there_is_not_written_again(outbox: Outbox) -> None:
    outbox.put(a_page())
    outbox.put(replace(a_page(), written_at=WRITTEN + MINUTE))
    assert outbox.left(0, written_before=NINE, limit=10) == (a_page(),)


def test_a_page_that_was_relayed_is_gone(outbox: Outbox) -> None:
    other = a_page(a_planned(an_occurrence(schedule="other")))
    for page in (a_page(), other):
        outbox.put(page)
    outbox.delete(a_page())
    outbox.delete(a_page())
    assert outbox.left(0, written_before=NINE, limit=10) == (other,)


def test_pages_left_are_of_one_shard_and_written_before(outbox: Outbox) -> None:
    outbox.put(a_page())
    outbox.put(a_page(shard=1))
    assert outbox.left(0, written_before=WRITTEN, limit=10) == ()
    assert outbox.left(0, written_before=WRITTEN + MINUTE, limit=10) == (a_page(),)


def test_pages_left_come_oldest_bucket_first_up_to_the_limit(outbox: Outbox) -> None:
    pages = [a_page(bucket=NINE + number * MINUTE) for number in range(4)]
    fresh = a_page(bucket=NINE - MINUTE, written_at=NINE)
    for page in (*reversed(pages), fresh):
        outbox.put(page)
    assert outbox.left(0, written_before=NINE, limit=3) == tuple(pages[:3])


def test_the_fake_tells_of_each_new_page_once() -> None:
    heard: list[object] = []
    outbox = InMemoryOutbox(on_put=heard.append)
    outbox.put(a_page())
    outbox.put(a_page())
    assert heard == [a_page()]


def test_a_page_that_the_sdk_puts_twice_is_one_page(aws: Aws) -> None:
    with repeating(aws.dynamodb, "PutItem"):
        aws.world.outbox.put(a_page())
    assert len(aws.world.outbox.left(0, written_before=NINE, limit=10)) == 1


def test_the_row_that_the_stream_shows_holds_the_whole_page(aws: Aws) -> None:
    aws.world.outbox.put(a_page())
    (row,) = aws.dynamodb.scan(TableName="outbox")["Items"]
    assert page_of_packed(row["body"]["B"]) == a_page()
    assert row["shard"] == {"N": "0"}
    assert row["page"] == {"S": f"2026-11-30T09:00Z#{a_page().id}"}


def test_a_page_that_is_carried_says_so_beside_its_body(aws: Aws) -> None:
    carried = replace(a_page(), carried=True)
    aws.world.outbox.put(carried)
    aws.world.outbox.put(a_page(bucket=NINE + MINUTE))
    rows = aws.dynamodb.scan(TableName="outbox")["Items"]
    assert sorted("carried" in row for row in rows) == [False, True]
    assert len(aws.world.outbox.left(0, written_before=NINE, limit=10)) == 2, "it may be left too"
