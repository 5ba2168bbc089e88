"""Schedules made through the deployed API fire on time, at their target."""

from datetime import UTC, datetime, timedelta

import boto3
import pytest

from scripts.waiting import until
from tests.e2e.conftest import Stage, at_in

ON_TIME = timedelta(seconds=2)
MINUTE = timedelta(minutes=1)
FROM_COLD = timedelta(seconds=10)
"""Few runs take the flexible lane: its executor may have to start first."""


@pytest.fixture
def warm(stage: Stage) -> None:
    """Let one occurrence go its whole way, so that no function starts cold."""
    expression, _ = at_in(1.5)
    made = stage.create(expression=expression)
    assert stage.receiver.wait_for(made["id"], 1, seconds=30)


@pytest.mark.usefixtures("warm")
def test_a_one_off_made_five_seconds_ahead_arrives_within_two_seconds_of_its_time(
    stage: Stage,
) -> None:
    expression, fire = at_in(5)
    made = stage.create(expression=expression)
    (arrival,) = stage.receiver.wait_for(made["id"], 1, seconds=15)
    lag = arrival.arrived_at - datetime.fromisoformat(fire)
    assert timedelta(0) <= lag <= ON_TIME
    assert arrival.scheduled_for == fire
    assert arrival.attempt == 1
    assert arrival.is_signed
    row = stage.wait_for_state(made["id"], fire, "SUCCEEDED", seconds=10)
    assert row["id"] == arrival.key
    assert stage.api.schedule(stage.tenant, made["id"])["state"] == "COMPLETED"


def test_a_cron_schedule_made_shortly_before_its_minute_fires_in_that_minute(
    stage: Stage,
) -> None:
    due = datetime.now(UTC).replace(second=0, microsecond=0) + MINUTE
    if due - datetime.now(UTC) < timedelta(seconds=20):
        due += MINUTE
    made = stage.create(expression=f"{due.minute} {due.hour} * * *")
    (arrival,) = stage.receiver.wait_for(made["id"], 1, seconds=100)
    assert due <= arrival.arrived_at < due + MINUTE


def test_a_rate_schedule_fires_each_interval(stage: Stage) -> None:
    made = stage.create(expression="rate(1 minute)")
    first, second = stage.receiver.wait_for(made["id"], 2, seconds=150)
    gap = datetime.fromisoformat(second.scheduled_for) - datetime.fromisoformat(first.scheduled_for)
    assert gap == MINUTE
    assert first.key != second.key


@pytest.mark.parametrize("fifo", [False, True])
def test_a_queue_receives_the_payload_under_the_occurrence_id(stage: Stage, *, fifo: bool) -> None:
    sqs = boto3.client("sqs", endpoint_url=stage.outputs["endpoint"], region_name="us-east-1")
    name = f"puntual-target-{stage.tenant}" + (".fifo" if fifo else "")
    url = sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"} if fifo else {})[
        "QueueUrl"
    ]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"][
        "QueueArn"
    ]
    stage.api.register(stage.tenant, targets=[arn])
    expression, fire = at_in(3)
    target = {"type": "sqs", "queue_arn": arn}
    made = stage.create(expression=expression, target=target, payload={"order": 7})
    messages = until(
        lambda: sqs.receive_message(
            QueueUrl=url, MessageAttributeNames=["All"], WaitTimeSeconds=1
        ).get("Messages", []),
        bool,
        seconds=30,
    )
    (message,) = messages
    assert message["Body"] == '{"order":7}'
    row = stage.wait_for_state(made["id"], fire, "SUCCEEDED", seconds=10)
    assert message["MessageAttributes"]["Idempotency-Key"]["StringValue"] == row["id"]


def test_a_run_with_a_window_starts_when_the_api_said_that_it_would(stage: Stage) -> None:
    window = timedelta(seconds=40)
    expression, fire = at_in(10)
    made = stage.create(expression=expression, flexible_window_seconds=40)
    assert made["flexible_window_seconds"] == 40
    said = stage.occurrence(made["id"], fire)
    available_at = datetime.fromisoformat(said["available_at"])
    assert said["state"] == "SCHEDULED"
    assert timedelta(0) <= available_at - datetime.fromisoformat(fire) < window
    (arrival,) = stage.receiver.wait_for(made["id"], 1, seconds=70)
    assert available_at <= arrival.arrived_at <= available_at + FROM_COLD
    assert arrival.scheduled_for == fire
    row = stage.wait_for_state(made["id"], fire, "SUCCEEDED", seconds=10)
    assert row["available_at"] == said["available_at"]
    assert 0 <= row["lag_seconds"] <= 2
    assert row["started_at"] >= row["enqueued_at"] >= row["available_at"]
