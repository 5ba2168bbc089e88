from base64 import b64decode
from copy import deepcopy
from typing import Any

import pytest

from functions.relay.handler import handler
from puntual.application.codec import page_of_packed
from puntual.domain.lane import Lane
from puntual.domain.page import Page
from tests.functions.deployed import SHARD, Deployed, LambdaContext, deployed, recorded

STREAM = recorded("dynamodb_stream_outbox")
"""Two pages of long ago, as the code of that day packed them: a release must read them."""


def page_of(record: Any) -> Page:
    return page_of_packed(b64decode(record["dynamodb"]["NewImage"]["body"]["B"]))


def with_its_pages(world: Deployed) -> list[Page]:
    pages = [page_of(record) for record in STREAM["Records"]]
    for page in pages:
        world.outbox.put(page)
    return pages


def left(world: Deployed, pages: list[Page]) -> set[str]:
    written_before = pages[0].bucket
    return {page.id for page in world.outbox.left(SHARD, written_before=written_before, limit=10)}


def broken(record: Any) -> Any:
    record = deepcopy(record)
    record["dynamodb"]["NewImage"]["body"]["B"] = "bm8gcGFnZSBhdCBhbGw="
    record["dynamodb"]["SequenceNumber"] += "0"
    return record


def test_each_new_page_goes_to_its_lanes_and_is_deleted() -> None:
    with deployed() as world:
        pages = with_its_pages(world)
        assert handler(STREAM, LambdaContext()) == {"batchItemFailures": []}
        sent = world.messages(Lane.RECOVERY)
        assert left(world, pages) == set()
    assert {message.occurrence for message in sent} == {
        planned.occurrence for page in pages for planned in page.planned
    }
    assert {message.occurrence.schedule for message in sent} == {"invoices", "reports", "backups"}


def test_only_the_first_failure_is_reported_and_those_after_it_are_relayed_all_the_same() -> None:
    first, second = STREAM["Records"]
    event = {"Records": [first, broken(first), second, broken(second)]}
    with deployed() as world:
        pages = with_its_pages(world)
        answer = handler(event, LambdaContext())
        assert left(world, pages) == set()
        assert world.waiting(Lane.RECOVERY) == 3
    reported = broken(first)["dynamodb"]["SequenceNumber"]
    assert answer == {"batchItemFailures": [{"itemIdentifier": reported}]}


def test_p7_a_page_whose_queue_is_gone_is_reported_and_stays() -> None:
    with deployed() as world:
        pages = with_its_pages(world)
        world.sqs.delete_queue(QueueUrl=world.queue_urls[Lane.RECOVERY])
        answer = handler(STREAM, LambdaContext())
        assert left(world, pages) == {page.id for page in pages}
    first = STREAM["Records"][0]["dynamodb"]["SequenceNumber"]
    assert answer == {"batchItemFailures": [{"itemIdentifier": first}]}


@pytest.mark.parametrize("missing", ["body", None])
def test_a_record_that_is_no_page_stops_no_other(missing: str | None) -> None:
    event = deepcopy(STREAM)
    if missing is None:
        del event["Records"][0]["dynamodb"]["NewImage"]
    else:
        del event["Records"][0]["dynamodb"]["NewImage"][missing]
    with deployed() as world:
        answer = handler(event, LambdaContext())
        assert world.waiting(Lane.RECOVERY) == 1
    assert len(answer["batchItemFailures"]) == 1


def test_a_page_that_its_planner_carries_is_passed_over() -> None:
    event = deepcopy(STREAM)
    event["Records"][0]["dynamodb"]["NewImage"]["carried"] = {"S": "planner"}
    with deployed() as world:
        first, second = with_its_pages(world)
        assert handler(event, LambdaContext()) == {"batchItemFailures": []}
        assert left(world, [first, second]) == {first.id}
        sent = {message.occurrence for message in world.messages(Lane.RECOVERY)}
    assert sent == {planned.occurrence for planned in second.planned}
