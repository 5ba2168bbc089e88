"""What died is listed, mended and replayed, on the deployed system."""

import uuid
from typing import Any

import boto3

from scripts.waiting import until
from tests.e2e.conftest import Stage, at_in

ONCE = {"max_attempts": 1}


def replay(stage: Stage, schedule: str, fire: str, body: dict[str, Any]) -> Any:
    return stage.api.call("POST", stage.path(schedule, f"/occurrences/{fire}/replay"), body)


def dead_letters(stage: Stage, count: int) -> list[dict[str, Any]]:
    """Wait until the tenant has so many."""

    def listed() -> list[dict[str, Any]]:
        answer = stage.api.call("GET", f"v1/tenants/{stage.tenant}/dead-letters")
        assert answer.status == 200, answer.body
        letters: list[dict[str, Any]] = answer.body["dead_letters"]
        return letters

    letters = until(listed, lambda found: len(found) == count, seconds=30)
    assert len(letters) == count, letters
    return letters


def test_a_dead_letter_is_replayed_under_the_same_key_once_its_target_is_mended(
    stage: Stage,
) -> None:
    expression, fire = at_in(2)
    made = stage.create("fails-once", expression=expression, retry=ONCE)
    stage.wait_for_state(made["id"], fire, "DEAD", seconds=30)
    [letter] = dead_letters(stage, 1)
    assert (letter["schedule"], letter["ref"]) == (made["id"], fire)
    assert (letter["last_error"], letter["round"]) == ("HTTP 500", 0)
    answer = replay(stage, made["id"], fire, {})
    assert (answer.status, answer.body["state"], answer.body["round"]) == (202, "RETRY_WAIT", 1)
    row = stage.wait_for_state(made["id"], fire, "SUCCEEDED", seconds=40)
    assert (row["round"], row["attempt"]) == (1, 2)
    assert [(each["round"], each["result"]) for each in row["attempts"]] == [
        (0, "HTTP 500"),
        (1, "HTTP 200"),
    ]
    first, second = stage.receiver.wait_for(made["id"], 2, seconds=5)
    assert first.key == second.key == row["id"]
    dead_letters(stage, 0)


def test_many_are_replayed_and_a_canceled_schedule_is_left_out(stage: Stage) -> None:
    expression, fire = at_in(3)
    mended, gone = (
        stage.create("fails-once", expression=expression, retry=ONCE)["id"] for _ in range(2)
    )
    for each in (mended, gone):
        stage.wait_for_state(each, fire, "DEAD", seconds=30)
    dead_letters(stage, 2)
    assert stage.api.call("DELETE", stage.path(gone)).status == 200
    answer = stage.api.call("POST", f"v1/tenants/{stage.tenant}/dead-letters/replay", {})
    assert (answer.status, answer.body["replayed"], answer.body["refused"]) == (202, 1, 1)
    results = {each["schedule"]: each for each in answer.body["results"]}
    assert results[gone]["reason"] == "its schedule is CANCELED"
    assert results[mended]["result"] == "replayed"
    stage.wait_for_state(mended, fire, "SUCCEEDED", seconds=40)
    refused = replay(stage, gone, fire, {"force": True})
    assert (refused.status, "CANCELED" in refused.body["detail"]) == (409, True)


def test_what_succeeded_is_forced_past_a_fifo_queues_memory(stage: Stage) -> None:
    """Within five minutes the queue would drop a second message of the first round's name."""
    client: Any = boto3.client
    sqs = client("sqs", endpoint_url=stage.outputs["endpoint"], region_name="us-east-1")
    name = f"puntual-target-{uuid.uuid4().hex[:12]}.fifo"
    url = sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"})["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    stage.api.register(stage.tenant, targets=[arn["QueueArn"]])
    expression, fire = at_in(2)
    made = stage.create(expression=expression, target={"type": "sqs", "queue_arn": arn["QueueArn"]})
    row = stage.wait_for_state(made["id"], fire, "SUCCEEDED", seconds=30)
    unforced = replay(stage, made["id"], fire, {})
    assert (unforced.status, "force true" in unforced.body["detail"]) == (409, True)
    assert replay(stage, made["id"], fire, {"force": True}).status == 202
    again = until(
        lambda: stage.occurrence(made["id"], fire),
        lambda found: (found["state"], found["round"]) == ("SUCCEEDED", 1),
        seconds=40,
    )
    assert [each["result"].split()[0] for each in again["attempts"]] == ["SQS", "SQS"]
    assert "dropped there" not in again["attempts"][1]["result"]
    names: list[str] = []
    for _ in range(10):
        taken = sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=1,
            MessageSystemAttributeNames=["MessageDeduplicationId"],
        )
        for message in taken.get("Messages", []):
            names.append(message["Attributes"]["MessageDeduplicationId"])
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert sorted(names) == [row["id"], f"{row['id']}-1"]
