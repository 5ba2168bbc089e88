"""Targets in AWS, roles, tries and keys on the deployed system."""

import io
import json
import zipfile
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import boto3
import pytest

from scripts.waiting import until
from tests.e2e.conftest import Stage, at_in

ROLE = "arn:aws:iam::000000000000:role/puntual-target-any"
FUNCTION = """
import boto3, json, os
def handler(event, context):
    sqs = boto3.client("sqs")
    sqs.send_message(QueueUrl=os.environ["QUEUE_URL"], MessageBody=json.dumps(event))
"""


class Cloud:
    """What a tenant has in the account of the local system: a queue, and more that leads to it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.name = f"puntual-target-{stage.tenant}"
        self.sqs = self.client("sqs")
        self.url = self.sqs.create_queue(QueueName=self.name)["QueueUrl"]
        found = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=["QueueArn"])
        self.arn = found["Attributes"]["QueueArn"]

    def client(self, service: str) -> Any:
        make: Any = boto3.client
        return make(service, endpoint_url=self.stage.outputs["endpoint"], region_name="us-east-1")

    def received(self) -> dict[str, Any]:
        """Wait for the one message that the queue gets."""
        messages = until(
            lambda: self.sqs.receive_message(
                QueueUrl=self.url, MessageAttributeNames=["All"], WaitTimeSeconds=1
            ).get("Messages", []),
            bool,
            seconds=30,
        )
        (message,) = messages
        found: dict[str, Any] = message
        return found

    def role(self) -> str:
        """Make a role that any principal may assume."""
        anyone = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
        made = self.client("iam").create_role(
            RoleName=self.name,
            AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [anyone]}),
        )
        arn: str = made["Role"]["Arn"]
        return arn

    def topic(self) -> str:
        sns = self.client("sns")
        arn: str = sns.create_topic(Name=self.name)["TopicArn"]
        sns.subscribe(
            TopicArn=arn,
            Protocol="sqs",
            Endpoint=self.arn,
            Attributes={"RawMessageDelivery": "true"},
        )
        return arn

    def bus(self) -> str:
        events = self.client("events")
        arn: str = events.create_event_bus(Name=self.name)["EventBusArn"]
        pattern = json.dumps({"source": ["acme.orders"], "detail-type": ["Order Due"]})
        events.put_rule(Name=self.name, EventBusName=self.name, EventPattern=pattern)
        events.put_targets(
            Rule=self.name, EventBusName=self.name, Targets=[{"Id": "queue", "Arn": self.arn}]
        )
        return arn

    def function(self) -> str:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("index.py", FUNCTION)
        made = self.client("lambda").create_function(
            FunctionName=self.name,
            Runtime="python3.13",
            Handler="index.handler",
            Role=ROLE,
            Code={"ZipFile": packed.getvalue()},
            Timeout=20,
            Environment={"Variables": {"QUEUE_URL": self.url}},
        )
        arn: str = made["FunctionArn"]
        return arn

    def state_machine(self) -> str:
        made = self.client("stepfunctions").create_state_machine(
            name=self.name,
            definition=json.dumps(
                {
                    "StartAt": "echo",
                    "States": {"echo": {"Type": "Pass", "End": True}},
                }
            ),
            roleArn=ROLE,
        )
        arn: str = made["stateMachineArn"]
        return arn


@pytest.fixture
def cloud(stage: Stage) -> Cloud:
    return Cloud(stage)


def fired(stage: Stage, target: dict[str, Any], *, arn: str, role: str | None = None) -> Any:
    """Register a target, let a schedule fire at it, and give its occurrence."""
    stage.api.register(stage.tenant, targets=[arn], roles=[role] if role else [])
    expression, fire = at_in(3)
    payload = {"order": 7, "when": "<local_time>"}
    made = stage.create(
        expression=expression,
        time_zone="UTC",
        target=target | ({"role_arn": role} if role else {}),
        payload=payload,
    )
    return stage.wait_for_state(made["id"], fire, "SUCCEEDED", seconds=60)


def payload_of(row: Any) -> dict[str, Any]:
    when = datetime.fromisoformat(row["scheduled_for"]).astimezone(ZoneInfo("UTC"))
    return {"order": 7, "when": when.isoformat(timespec="seconds")}


def assert_enveloped(envelope: dict[str, Any], row: Any) -> None:
    assert envelope["payload"] == payload_of(row)
    names = envelope["puntual"]
    assert names["idempotency_key"] == row["id"]
    assert (names["scheduled_for"], names["attempt"]) == (row["scheduled_for"], 1)


def test_a_topics_subscriber_gets_the_payload(stage: Stage, cloud: Cloud) -> None:
    topic = cloud.topic()
    row = fired(stage, {"type": "sns", "topic_arn": topic}, arn=topic)
    message = cloud.received()
    assert json.loads(message["Body"]) == payload_of(row)
    assert row["attempts"][0]["result"].startswith("SNS ")
    names = message["MessageAttributes"]
    assert names["Idempotency-Key"]["StringValue"] == row["id"]


def test_a_rule_of_a_bus_gets_the_event(stage: Stage, cloud: Cloud) -> None:
    bus = cloud.bus()
    target = {
        "type": "eventbridge",
        "bus_arn": bus,
        "source": "acme.orders",
        "detail_type": "Order Due",
    }
    row = fired(stage, target, arn=bus)
    event = json.loads(cloud.received()["Body"])
    assert_enveloped(event["detail"], row)
    assert row["attempts"][0]["result"] == f"EventBridge {event['id']}"


def test_a_function_is_invoked(stage: Stage, cloud: Cloud) -> None:
    function = cloud.function()
    row = fired(stage, {"type": "lambda", "function_arn": function}, arn=function)
    assert_enveloped(json.loads(cloud.received()["Body"]), row)


def test_a_state_machine_is_started_under_the_occurrence_id(stage: Stage, cloud: Cloud) -> None:
    machine = cloud.state_machine()
    target = {"type": "step_functions", "state_machine_arn": machine}
    row = fired(stage, target, arn=machine)
    (execution,) = cloud.client("stepfunctions").list_executions(stateMachineArn=machine)[
        "executions"
    ]
    assert execution["name"] == row["id"]
    described = cloud.client("stepfunctions").describe_execution(
        executionArn=execution["executionArn"]
    )
    assert_enveloped(json.loads(described["input"]), row)


def test_a_queue_is_sent_to_through_the_tenants_role(stage: Stage, cloud: Cloud) -> None:
    target = {"type": "sqs", "queue_arn": cloud.arn}
    row = fired(stage, target, arn=cloud.arn, role=cloud.role())
    assert json.loads(cloud.received()["Body"]) == payload_of(row)
    assert stage.api.call("GET", f"v1/tenants/{stage.tenant}").body["external_id"] == (
        f"puntual/local/{stage.tenant}"
    )


def test_what_is_taken_out_of_the_registration_is_not_called_any_more(
    stage: Stage, cloud: Cloud
) -> None:
    stage.api.register(stage.tenant, targets=[cloud.arn])
    expression, fire = at_in(3)
    target = {"type": "sqs", "queue_arn": cloud.arn}
    made = stage.create(expression=expression, target=target)
    stage.api.register(stage.tenant)
    row = stage.wait_for_state(made["id"], fire, "DEAD", seconds=30)
    assert row["reason"] == "the queue is not registered any more"
    answer = cloud.sqs.receive_message(QueueUrl=cloud.url)
    assert not answer.get("Messages")


def test_a_target_is_tried_without_a_schedule(stage: Stage, cloud: Cloud) -> None:
    path = f"v1/tenants/{stage.tenant}/targets/try"
    stage.api.register(stage.tenant, targets=[cloud.arn])
    target = {"type": "sqs", "queue_arn": cloud.arn}
    tried = stage.api.call("POST", path, {"target": target, "payload": [1]}).expect(200).body
    message = cloud.received()
    assert message["Body"] == "[1]"
    assert message["MessageAttributes"]["Puntual-Try"]["StringValue"] == "true"
    assert tried["result"] == "delivered"
    assert tried["detail"] == f"SQS {message['MessageId']}"

    webhook = {"type": "webhook", "url": f"{stage.receiver.url}/refuses"}
    refused = stage.api.call("POST", path, {"target": webhook}).expect(200).body
    assert (refused["result"], refused["detail"], refused["retryable"]) == (
        "failed",
        "HTTP 400",
        False,
    )
    arrivals = [each for each in stage.receiver.book.of("try") if each.tenant == stage.tenant]
    assert [each.is_signed for each in arrivals] == [True]
    assert not stage.api.call("GET", f"v1/tenants/{stage.tenant}/schedules").body["schedules"]


def test_after_a_rotation_receivers_with_either_key_believe(stage: Stage) -> None:
    (old,) = stage.api.webhook_keys(stage.tenant)
    path = f"v1/tenants/{stage.tenant}/webhook-keys/rotate"
    stage.api.call("POST", path, {"generation": 1}).expect(200)
    new, kept = stage.api.webhook_keys(stage.tenant)
    assert kept == old
    try_path = f"v1/tenants/{stage.tenant}/targets/try"
    webhook = {"type": "webhook", "url": f"{stage.receiver.url}/ok"}
    for keys in ([new], [old], ["whsec_AAAA"]):
        stage.receiver.book.trust(stage.tenant, keys)
        stage.api.call("POST", try_path, {"target": webhook}).expect(200)
    arrivals = [each for each in stage.receiver.book.of("try") if each.tenant == stage.tenant]
    assert [each.is_signed for each in arrivals] == [True, True, False]
