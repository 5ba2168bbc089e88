"""What was received too often is judged once more by the deployed function."""

import time
from datetime import UTC, datetime, timedelta

import boto3

from puntual.application.codec import body_of
from puntual.domain.instant import text_of
from puntual.domain.lane import Lane
from puntual.domain.message import Message
from puntual.domain.occurrence import Occurrence
from puntual.domain.tenant import schedule_id_of, tenant_id_of
from tests.e2e.conftest import Stage


def dead_letter(stage: Stage, schedule: str, fire: datetime) -> None:
    """Put a message of an occurrence where the queue moves what it gave out too often.

    Not before its time: a dead letter that is early goes back to its lane, and runs.
    """
    time.sleep(max((fire - datetime.now(UTC)).total_seconds(), 0))
    occurrence = Occurrence(
        tenant=tenant_id_of(stage.tenant),
        schedule=schedule_id_of(schedule),
        version=1,
        scheduled_for=fire,
    )
    message = Message(occurrence=occurrence, available_at=fire, lane=Lane.STRICT)
    sqs = boto3.client("sqs", endpoint_url=stage.outputs["endpoint"], region_name="us-east-1")
    queue = stage.outputs["queues"]["strict_dlq"]
    sqs.send_message(QueueUrl=queue, MessageBody=body_of(message, timedelta(0)))


def test_an_occurrence_that_nobody_could_begin_becomes_dead(stage: Stage) -> None:
    fire = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
    made = stage.create(expression="rate(1 hour)")
    dead_letter(stage, made["id"], fire)
    row = stage.wait_for_state(made["id"], text_of(fire), "DEAD", seconds=40)
    assert row["reason"] == "undeliverable"
    assert stage.receiver.book.of(made["id"]) == []


def test_a_dead_letter_of_a_run_that_has_ended_changes_nothing(stage: Stage) -> None:
    fire = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
    made = stage.create(expression=f"at({fire:%Y-%m-%dT%H:%M:%S})")
    row = stage.wait_for_state(made["id"], text_of(fire), "SUCCEEDED", seconds=30)
    dead_letter(stage, made["id"], fire)
    other = stage.create(expression="rate(1 hour)")
    dead_letter(stage, other["id"], fire + timedelta(seconds=1))
    stage.wait_for_state(other["id"], text_of(fire + timedelta(seconds=1)), "DEAD", seconds=40)
    assert stage.occurrence(made["id"], text_of(fire)) == row
    assert len(stage.receiver.book.of(made["id"])) == 1
