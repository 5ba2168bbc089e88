"""What must outlive a deployment, and what messages can count on."""

from collections.abc import Mapping
from typing import Any

import pytest
from aws_cdk.assertions import Template

from infra.environments import ENVIRONMENTS
from tests.infra.conftest import Synthesise, Templates

FOURTEEN_DAYS = 14 * 24 * 3600
LANES = ("strict", "flexible", "recovery")

KEYS: Mapping[str, Mapping[str, str]] = {
    "schedules": {"tenant_schedule": "HASH"},
    "schedule-versions": {"tenant_schedule": "HASH", "version": "RANGE"},
    "agenda": {"bucket": "HASH", "cursor": "RANGE"},
    "outbox": {"shard": "HASH", "page": "RANGE"},
    "occurrences": {"tenant_schedule": "HASH", "run": "RANGE"},
    "shards": {"shard": "HASH"},
    "tenants": {"tenant": "HASH", "item": "RANGE"},
    "zone-releases": {"item": "HASH"},
    "idempotency": {"id": "HASH"},
}
NUMBERS = {"version", "shard"}


def tables(template: Template) -> Mapping[str, Mapping[str, Any]]:
    found = template.find_resources("AWS::DynamoDB::Table")
    return {resource["Properties"]["TableName"]: resource for resource in found.values()}


def queues(template: Template) -> Mapping[str, Mapping[str, Any]]:
    found = template.find_resources("AWS::SQS::Queue")
    return {resource["Properties"]["QueueName"]: resource for resource in found.values()}


def test_every_table_has_the_keys_of_the_design(prod: Templates) -> None:
    keys = {
        name.removeprefix("puntual-prod-"): {
            key["AttributeName"]: key["KeyType"] for key in table["Properties"]["KeySchema"]
        }
        for name, table in tables(prod.storage).items()
    }
    assert keys == KEYS


def test_key_attributes_are_text_but_for_versions_and_shards(prod: Templates) -> None:
    for name, table in tables(prod.storage).items():
        for attribute in table["Properties"]["AttributeDefinitions"]:
            expected = "N" if attribute["AttributeName"] in NUMBERS else "S"
            assert attribute["AttributeType"] == expected, (name, attribute)


def indexes(template: Template) -> Mapping[str, Mapping[str, Any]]:
    schedules = tables(template)["puntual-prod-schedules"]["Properties"]
    return {index["IndexName"]: index for index in schedules["GlobalSecondaryIndexes"]}


@pytest.mark.parametrize(
    ("name", "sort", "holds"),
    [("by_tenant", "schedule", "ALL"), ("by_spread", "spread", "KEYS_ONLY")],
)
def test_a_tenants_schedules_can_be_listed_and_sampled(
    prod: Templates, name: str, sort: str, holds: str
) -> None:
    index = indexes(prod.storage)[name]
    assert index["KeySchema"] == [
        {"AttributeName": "tenant", "KeyType": "HASH"},
        {"AttributeName": sort, "KeyType": "RANGE"},
    ]
    assert index["Projection"] == {"ProjectionType": holds}
    assert len(indexes(prod.storage)) == 2


def test_the_tenants_can_be_listed_and_their_counts_and_budgets_cost_the_index_nothing(
    prod: Templates,
) -> None:
    [index] = tables(prod.storage)["puntual-prod-tenants"]["Properties"]["GlobalSecondaryIndexes"]
    assert index["IndexName"] == "by_item"
    assert index["KeySchema"] == [
        {"AttributeName": "item", "KeyType": "HASH"},
        {"AttributeName": "tenant", "KeyType": "RANGE"},
    ]
    assert index["Projection"] == {
        "ProjectionType": "INCLUDE",
        "NonKeyAttributes": ["schedules_max", "quotas"],
    }


def test_an_index_is_as_warm_as_its_table(prod: Templates) -> None:
    # A cold index throttles the writes of the warm table it belongs to.
    schedules = tables(prod.storage)["puntual-prod-schedules"]["Properties"]
    for index in indexes(prod.storage).values():
        assert index["WarmThroughput"] == schedules["WarmThroughput"]


def test_a_table_that_hardly_anybody_calls_is_not_warmed_up(prod: Templates) -> None:
    cold = {
        name
        for name, table in tables(prod.storage).items()
        if "WarmThroughput" not in table["Properties"]
    }
    assert cold == {"puntual-prod-zone-releases"}


def test_only_the_outbox_is_streamed(prod: Templates) -> None:
    streams = {
        name: table["Properties"]["StreamSpecification"]
        for name, table in tables(prod.storage).items()
        if "StreamSpecification" in table["Properties"]
    }
    assert streams == {"puntual-prod-outbox": {"StreamViewType": "NEW_IMAGE"}}


def test_only_occurrences_and_idempotency_records_expire(prod: Templates) -> None:
    expiry = {
        name: table["Properties"]["TimeToLiveSpecification"]["AttributeName"]
        for name, table in tables(prod.storage).items()
        if "TimeToLiveSpecification" in table["Properties"]
    }
    assert expiry == {
        "puntual-prod-occurrences": "expires_at",
        "puntual-prod-idempotency": "expiration",
    }


@pytest.mark.parametrize("name", ["dev", "staging", "prod"])
def test_state_is_protected_and_outlives_its_stack(synthesise: Synthesise, name: str) -> None:
    storage = synthesise(name).storage
    for table in tables(storage).values():
        assert table["DeletionPolicy"] == table["UpdateReplacePolicy"] == "Retain"
        properties = table["Properties"]
        assert properties["DeletionProtectionEnabled"] is True
        assert properties["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True
    for queue in queues(storage).values():
        assert queue["DeletionPolicy"] == queue["UpdateReplacePolicy"] == "Retain"


def test_local_state_goes_with_its_stack(local: Templates) -> None:
    for table in tables(local.storage).values():
        assert table["DeletionPolicy"] == "Delete"
        assert table["Properties"]["DeletionProtectionEnabled"] is False
    for queue in queues(local.storage).values():
        assert queue["DeletionPolicy"] == "Delete"


def test_tables_are_billed_on_demand_and_encrypted(prod: Templates) -> None:
    for table in tables(prod.storage).values():
        assert table["Properties"]["BillingMode"] == "PAY_PER_REQUEST"
        assert table["Properties"]["SSESpecification"] == {"SSEEnabled": True}


def test_each_lane_gives_up_after_twenty_receives_into_its_own_dead_letter_queue(
    prod: Templates,
) -> None:
    found = prod.storage.find_resources("AWS::SQS::Queue")
    for lane in LANES:
        policy = queues(prod.storage)[f"puntual-prod-{lane}"]["Properties"]["RedrivePolicy"]
        assert policy["maxReceiveCount"] == 20
        logical_id, attribute = policy["deadLetterTargetArn"]["Fn::GetAtt"]
        assert attribute == "Arn"
        assert found[logical_id]["Properties"]["QueueName"] == f"puntual-prod-{lane}-dlq"


def test_a_dead_letter_that_stays_unjudged_ends_after_twenty_receives_in_one_queue_for_all(
    prod: Templates,
) -> None:
    found = prod.storage.find_resources("AWS::SQS::Queue")
    for lane in LANES:
        policy = queues(prod.storage)[f"puntual-prod-{lane}-dlq"]["Properties"]["RedrivePolicy"]
        assert policy["maxReceiveCount"] == 20
        logical_id, attribute = policy["deadLetterTargetArn"]["Fn::GetAtt"]
        assert attribute == "Arn"
        assert found[logical_id]["Properties"]["QueueName"] == "puntual-prod-unreadable"
    assert "RedrivePolicy" not in queues(prod.storage)["puntual-prod-unreadable"]["Properties"]


@pytest.mark.parametrize("name", list(ENVIRONMENTS))
def test_an_outage_may_last_as_long_for_a_dead_letter_as_for_a_message(
    synthesise: Synthesise, name: str
) -> None:
    def patience(queue: Mapping[str, Any]) -> int:
        seconds: int = queue["VisibilityTimeout"]
        receives: int = queue["RedrivePolicy"]["maxReceiveCount"]
        return seconds * receives

    found = queues(synthesise(name).storage)
    for lane in LANES:
        message = found[f"puntual-{name}-{lane}"]["Properties"]
        dead_letter = found[f"puntual-{name}-{lane}-dlq"]["Properties"]
        assert patience(dead_letter) >= patience(message)


def test_every_queue_keeps_messages_for_fourteen_days_encrypted(prod: Templates) -> None:
    for template in (prod.storage, prod.compute):
        for name, queue in queues(template).items():
            assert queue["Properties"]["MessageRetentionPeriod"] == FOURTEEN_DAYS, name
            assert queue["Properties"]["SqsManagedSseEnabled"] is True, name


def test_every_queue_refuses_plain_http(prod: Templates) -> None:
    for template in (prod.storage, prod.compute):
        refused = {
            policy["Properties"]["Queues"][0]["Ref"]
            for policy in template.find_resources("AWS::SQS::QueuePolicy").values()
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
            if statement["Effect"] == "Deny"
            and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        }
        assert refused == set(template.find_resources("AWS::SQS::Queue"))


@pytest.mark.parametrize("name", list(ENVIRONMENTS))
def test_a_message_stays_hidden_as_long_as_its_executor_can_live(
    synthesise: Synthesise, name: str
) -> None:
    templates = synthesise(name)
    timeouts = {
        function["Properties"]["FunctionName"]: function["Properties"]["Timeout"]
        for function in templates.compute.find_resources("AWS::Lambda::Function").values()
    }
    for lane in LANES:
        found = queues(templates.storage)
        hidden = found[f"puntual-{name}-{lane}"]["Properties"]["VisibilityTimeout"]
        assert hidden >= timeouts[f"puntual-{name}-executor"]
        hidden = found[f"puntual-{name}-{lane}-dlq"]["Properties"]["VisibilityTimeout"]
        assert hidden >= timeouts[f"puntual-{name}-undeliverable"]
