import io
import threading
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from functions.executor.handler import BATCH_MAX, handler
from puntual import bootstrap
from puntual.application.codec import body_of, message_of_body
from puntual.domain.fairness import CROWD, SHARED_FROM, Seat, seats_of
from puntual.domain.instant import truncated_to_millisecond
from puntual.domain.lane import Lane
from puntual.domain.message import Crowd, Message
from puntual.domain.occurrence import Occurrence
from puntual.domain.run import RunState
from puntual.domain.schedule import ScheduleVersion
from puntual.domain.target import WebhookTarget
from puntual.domain.tenant import TenantId
from puntual.domain.webhook_keys import keys_of, signature_headers
from tests.builders import a_message, a_rule, a_tenant, a_version, an_occurrence
from tests.contract.sdk import refusing
from tests.functions.deployed import ROOT, Deployed, LambdaContext, deployed, recorded
from tests.receivers import Answer, Receiver, answering, receiving

LANE = recorded("sqs_strict_lane")
"""Two messages of long ago, as the code of that day wrote them: a release must read them."""

DELAY = timedelta(seconds=588)


def old_version(schedule: str) -> ScheduleVersion:
    return a_version(schedule=schedule, effective_from=datetime(2024, 1, 1, tzinfo=UTC))


def state_of(world: Deployed, occurrence: Occurrence) -> RunState | None:
    run = world.ledger.read(occurrence.key)
    return run.state if run else None


def a_due_message(schedule: str = "invoices") -> Message:
    """Give a message of a second ago."""
    due = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=1)
    return a_message(an_occurrence(schedule=schedule, scheduled_for=due))


def with_receiver(world: Deployed, message: Message, receiver: Receiver) -> None:
    due = message.occurrence.scheduled_for
    world.creates(
        a_version(
            schedule=message.occurrence.schedule,
            rule=replace(a_rule("rate(1 day)"), anchor=due - timedelta(days=1)),
            target=WebhookTarget(url=f"http://127.0.0.1:{receiver.port}/hooks"),
            effective_from=due - timedelta(hours=1),
        )
    )


def an_event(*messages: Message) -> Any:
    """Give the recorded event with other messages, sent so that they are visible when due."""
    records = []
    for number, message in enumerate(messages):
        record = deepcopy(LANE["Records"][0])
        record["messageId"] = f"message-{number}"
        record["body"] = body_of(message, DELAY)
        sent_at = message.available_at - DELAY
        record["attributes"]["SentTimestamp"] = str(int(sent_at.timestamp() * 1000))
        records.append(record)
    return {"Records": records}


def kept(answer: Any) -> list[str]:
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def test_messages_of_long_ago_are_read_and_end_as_missed() -> None:
    messages = [message_of_body(record["body"]) for record in LANE["Records"]]
    assert [message.occurrence.schedule for message in messages] == ["invoices", "reports"]
    with deployed() as world:
        for message in messages:
            world.creates(old_version(message.occurrence.schedule))
        assert kept(handler(LANE, LambdaContext())) == []
        states = [state_of(world, message.occurrence) for message in messages]
    assert states == [RunState.MISSED, RunState.MISSED]


def test_a_due_message_is_delivered_and_recorded() -> None:
    message = a_due_message()
    with receiving(answering(200)) as receiver, deployed() as world:
        with_receiver(world, message, receiver)
        assert kept(handler(an_event(message), LambdaContext())) == []
        run = world.ledger.read(message.occurrence.key)
    assert run is not None
    assert run.state is RunState.SUCCEEDED
    assert run.enqueued_at == truncated_to_millisecond(message.available_at)
    [(_, headers, _)] = receiver.requests
    assert headers["Idempotency-Key"] == message.occurrence.id


def test_p7_a_message_to_be_tried_again_waits_in_its_lane_and_is_not_kept() -> None:
    message = a_due_message()
    with receiving(answering(503, {"Retry-After": "30"})) as receiver, deployed() as world:
        with_receiver(world, message, receiver)
        assert kept(handler(an_event(message), LambdaContext())) == []
        assert state_of(world, message.occurrence) is RunState.RETRY_WAIT
        assert world.waiting(Lane.STRICT) == 1


def test_only_messages_that_are_our_own_fault_are_kept() -> None:
    fine, unknown = a_due_message("fine"), a_due_message("unknown")
    with receiving(answering(404)) as receiver, deployed() as world:
        with_receiver(world, fine, receiver)
        event = an_event(unknown, fine, fine)
        event["Records"][2]["body"] = "no message at all"
        assert kept(handler(event, LambdaContext())) == ["message-0", "message-2"]
        assert state_of(world, fine.occurrence) is RunState.DEAD


def test_p7_a_message_that_could_not_be_parked_is_kept() -> None:
    message = a_due_message()
    with receiving(answering(503)) as receiver, deployed() as world:
        with_receiver(world, message, receiver)
        world.sqs.delete_queue(QueueUrl=world.queue_urls[Lane.STRICT])
        assert kept(handler(an_event(message), LambdaContext())) == ["message-0"]
        assert state_of(world, message.occurrence) is RunState.RETRY_WAIT


def test_no_log_shows_a_payload_a_key_or_the_root_of_keys(
    logged: io.StringIO,
) -> None:
    message = a_due_message()
    with receiving(answering(400)) as receiver, deployed() as world:
        with_receiver(world, message, receiver)
        handler(an_event(message), LambdaContext())
    [(_, headers, body)] = receiver.requests
    assert "settled" in logged.getvalue()
    signature = headers["webhook-signature"].removeprefix("v1,")
    for secret in (ROOT, body.decode(), signature):
        assert secret not in logged.getvalue()


def test_a_webhook_is_signed_with_the_key_that_the_tenant_is_shown() -> None:
    message = a_due_message()
    with receiving(answering(200)) as receiver, deployed() as world:
        with_receiver(world, message, receiver)
        handler(an_event(message), LambdaContext())
    (key,) = keys_of(a_tenant(message.occurrence.tenant), root=ROOT.encode())
    [(_, headers, body)] = receiver.requests
    sent_at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), tz=UTC)
    signed = signature_headers(
        (key.secret,), message_id=message.occurrence.id, sent_at=sent_at, body=body
    )
    assert headers.items() >= signed.items()


def meeting(number: int) -> Answer:
    """Answer nobody before so many requests are there."""
    all_there = threading.Barrier(number, timeout=10)

    def answer(request: BaseHTTPRequestHandler) -> None:
        all_there.wait()
        answering(200)(request)

    return answer


@pytest.mark.parametrize("number", [BATCH_MAX])
def test_a_receiver_that_hangs_holds_up_no_other_of_its_batch(number: int) -> None:
    messages = [a_due_message(f"s{each}") for each in range(number)]
    with receiving(meeting(number)) as receiver, deployed() as world:
        for message in messages:
            with_receiver(world, message, receiver)
        assert kept(handler(an_event(*messages), LambdaContext())) == []
        states = {state_of(world, message.occurrence) for message in messages}
    assert states == {RunState.SUCCEEDED}


def a_crowd(world: Deployed, receiver: Receiver, count: int = CROWD) -> list[Message]:
    messages = [a_due_message(f"s{each}") for each in range(count)]
    for message in messages:
        with_receiver(world, message, receiver)
    return messages


def with_every_seat_taken(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRICT_EXECUTORS", str(SHARED_FROM))
    for number in range(seats_of(SHARED_FROM, 1)):
        now = datetime.now(UTC)
        seat = Seat(crowd=crowd, number=number)
        assert bootstrap.seats().take(
            seat, owner=f"other-{number}", now=now, until=now + timedelta(minutes=1)
        )


def test_a_crowd_without_a_seat_is_parked_and_a_message_beside_it_is_delivered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with receiving(answering(200)) as receiver, deployed() as world:
        crowd = a_crowd(world, receiver)
        other = replace(crowd[0].occurrence, tenant=TenantId("other"))
        beside = a_message(other, available_at=crowd[0].available_at)
        world.creates(
            replace(
                a_version(tenant="other", schedule=other.schedule),
                target=WebhookTarget(url=f"http://127.0.0.1:{receiver.port}/hooks"),
                rule=replace(a_rule("rate(1 day)"), anchor=other.scheduled_for - timedelta(days=1)),
                effective_from=other.scheduled_for - timedelta(hours=1),
            )
        )
        with_every_seat_taken(crowd[0].crowd, monkeypatch)
        assert kept(handler(an_event(*crowd, beside), LambdaContext())) == []
        assert world.waiting(Lane.STRICT) == len(crowd)
        assert [state_of(world, message.occurrence) for message in crowd] == [None] * len(crowd)
        assert state_of(world, other) is RunState.SUCCEEDED


def test_a_crowd_that_was_quick_gives_its_seat_back_and_is_known_to_be_quick() -> None:
    with receiving(answering(200)) as receiver, deployed() as world:
        crowd = a_crowd(world, receiver)
        assert kept(handler(an_event(*crowd), LambdaContext())) == []
        quick_until = bootstrap.seats().quick_until(crowd[0].crowd)
        rows = world.dynamodb.scan(TableName="tenants")["Items"]
    assert quick_until is not None
    assert quick_until > datetime.now(UTC)
    assert not [row for row in rows if "seat_owner" in row]


def test_seats_that_cannot_be_read_stop_no_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving(answering(200)) as receiver, deployed() as world:
        crowd = a_crowd(world, receiver)
        with_every_seat_taken(crowd[0].crowd, monkeypatch)
        with refusing(bootstrap.dynamodb_client(), "UpdateItem", "Oops", status=503):
            assert kept(handler(an_event(*crowd), LambdaContext())) == []
        states = {state_of(world, message.occurrence) for message in crowd}
    assert states == {RunState.SUCCEEDED}
