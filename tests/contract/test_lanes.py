"""The lanes: what the queue did not take is given back."""

import json
from datetime import timedelta
from typing import Any

import pytest

from puntual.application.codec import body_of, message_of_body
from puntual.application.ports import Lanes, Sending
from puntual.domain.errors import Unavailable
from puntual.domain.lane import Lane
from puntual.domain.message import PARK_MAX
from puntual.domain.occurrence import Kind
from tests.builders import NINE, a_message, an_occurrence
from tests.contract.conftest import Aws, World
from tests.contract.sdk import hooked, recording, refusing
from tests.fakes.in_memory_lanes import InMemoryLanes

NOW = timedelta(0)
SECOND = timedelta(seconds=1)
IDS_LONGEST = "x" * 64


@pytest.fixture
def lanes(world: World) -> Lanes:
    return world.lanes


def some_sendings(count: int, *, tenant: str = "acme") -> list[Sending]:
    return [
        Sending(
            message=a_message(an_occurrence(tenant=tenant, schedule=f"job-{number:03d}")), delay=NOW
        )
        for number in range(count)
    ]


def test_nothing_may_be_sent(lanes: Lanes) -> None:
    assert lanes.send(Lane.STRICT, []) == ()


def test_a_message_arrives_as_it_was_sent(world: World) -> None:
    manual = an_occurrence(kind=Kind.MANUAL, request_id="r-1", version=3)
    messages = [
        a_message(),
        a_message(
            manual, authorised_version=9, looks=1, lost_races=2, enqueued_at=NINE + 7 * SECOND
        ),
        a_message(available_at=NINE + 9 * SECOND, lane=Lane.FLEXIBLE),
    ]
    sendings = [Sending(message=message, delay=NOW) for message in messages]
    assert world.lanes.send(Lane.FLEXIBLE, sendings) == ()
    received = world.received(Lane.FLEXIBLE)
    assert sorted(received, key=repr) == sorted(messages, key=repr)
    assert world.received(Lane.STRICT) == []


@pytest.mark.parametrize("count", [10, 11, 100])
def test_a_page_of_messages_is_sent_whole(world: World, count: int) -> None:
    sendings = some_sendings(count)
    assert world.lanes.send(Lane.STRICT, sendings) == ()
    assert {message.occurrence for message in world.received(Lane.STRICT)} == {
        sending.message.occurrence for sending in sendings
    }


def test_the_fake_tells_of_each_message_with_its_delay() -> None:
    heard: list[tuple[Lane, Sending]] = []
    lanes = InMemoryLanes(on_send=lambda lane, sending: heard.append((lane, sending)))
    sendings = some_sendings(2)
    lanes.send(Lane.RECOVERY, sendings)
    assert heard == [(Lane.RECOVERY, sending) for sending in sendings]
    with pytest.raises(AssertionError):
        lanes.send(Lane.STRICT, [Sending(message=a_message(), delay=PARK_MAX + SECOND)])


def test_delays_are_whole_seconds_rounded_up_and_groups_are_tenants(aws: Aws) -> None:
    delays = [NOW, timedelta(milliseconds=1), 5 * SECOND, PARK_MAX]
    with recording(aws.sqs, "SendMessageBatch") as calls:
        aws.lanes.send(Lane.STRICT, [Sending(message=a_message(), delay=delay) for delay in delays])
    entries = calls[0]["Entries"]
    assert [entry["DelaySeconds"] for entry in entries] == [0, 1, 5, 900]
    assert {entry["MessageGroupId"] for entry in entries} == {"acme"}


def test_the_longest_messages_of_a_batch_fit_into_it(aws: Aws) -> None:
    occurrence = an_occurrence(
        tenant=IDS_LONGEST,
        schedule=IDS_LONGEST,
        version=10**9,
        kind=Kind.BACKFILL,
        request_id="x" * 256,
    )
    message = a_message(
        occurrence,
        available_at=NINE + SECOND,
        authorised_version=10**9,
        looks=9,
        lost_races=9,
        enqueued_at=NINE + SECOND,
    )
    with recording(aws.sqs, "SendMessageBatch") as calls:
        assert aws.lanes.send(Lane.STRICT, [Sending(message=message, delay=PARK_MAX)] * 10) == ()
    entries = calls[0]["Entries"]
    assert sum(len(entry["MessageBody"]) for entry in entries) < 256 * 1024


def test_messages_that_the_queue_refused_are_given_back(aws: Aws) -> None:
    sendings = some_sendings(25)

    def refuse(params: dict[str, Any], **_: Any) -> None:
        refused.clear()
        refused.extend(entry["Id"] for entry in params["Entries"][1::4])
        params["Entries"] = [entry for entry in params["Entries"] if entry["Id"] not in refused]

    def tell(parsed: dict[str, Any], **_: Any) -> None:
        parsed["Failed"] = [
            {"Id": entry, "SenderFault": False, "Code": "InternalError"} for entry in refused
        ]

    refused: list[str] = []
    with (
        hooked(aws.sqs, "provide-client-params", "SendMessageBatch", refuse),
        hooked(aws.sqs, "after-call", "SendMessageBatch", tell),
    ):
        given_back = aws.lanes.send(Lane.STRICT, sendings)
    places = (1, 5, 9, 11, 15, 19, 21)
    assert given_back == tuple(sendings[place] for place in places)
    assert len(aws.world.received(Lane.STRICT)) == 25 - len(places)


def test_a_lane_that_does_not_answer_is_unavailable(aws: Aws) -> None:
    with refusing(aws.sqs, "SendMessageBatch", "ServiceUnavailable"), pytest.raises(Unavailable):
        aws.lanes.send(Lane.STRICT, some_sendings(1))


def test_a_queue_that_is_not_there_is_a_bug(aws: Aws) -> None:
    aws.sqs.delete_queue(QueueUrl=aws.lanes.queue_urls[Lane.STRICT])
    with pytest.raises(aws.sqs.exceptions.QueueDoesNotExist):
        aws.lanes.send(Lane.STRICT, some_sendings(1))


def test_a_message_remembers_when_it_became_visible_while_due() -> None:
    body = body_of(a_message(available_at=NINE + 10 * SECOND), 10 * SECOND)
    assert message_of_body(body, sent_at=NINE).enqueued_at == NINE + 10 * SECOND
    assert message_of_body(body, sent_at=NINE - 60 * SECOND).enqueued_at is None
    assert json.loads(body)["delay_ms"] == 10_000
