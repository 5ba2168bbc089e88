"""The tables and queues as they are deployed, for moto."""

from typing import TYPE_CHECKING

from puntual.aws import DynamoDBClient

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.literals import ScalarAttributeTypeType

KEYS: dict[str, tuple[tuple[str, "ScalarAttributeTypeType"], ...]] = {
    "schedules": (("tenant_schedule", "S"),),
    "schedule_versions": (("tenant_schedule", "S"), ("version", "N")),
    "agenda": (("bucket", "S"), ("cursor", "S")),
    "outbox": (("shard", "N"), ("page", "S")),
    "occurrences": (("tenant_schedule", "S"), ("run", "S")),
    "shards": (("shard", "N"),),
    "tenants": (("tenant", "S"), ("item", "S")),
    "zone_releases": (("item", "S"),),
}
"""Partition key and, where there is one, sort key of each table."""


def make_tables(client: DynamoDBClient) -> None:
    for table, keys in KEYS.items():
        if table == "schedules":
            _make_schedules(client)
            continue
        if table == "tenants":
            _make_tenants(client)
            continue
        client.create_table(
            TableName=table,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[
                {"AttributeName": name, "AttributeType": kind} for name, kind in keys
            ],
            KeySchema=[
                {"AttributeName": name, "KeyType": "HASH" if place == 0 else "RANGE"}
                for place, (name, _) in enumerate(keys)
            ],
        )


def _make_schedules(client: DynamoDBClient) -> None:
    client.create_table(
        TableName="schedules",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": "tenant_schedule", "AttributeType": "S"},
            {"AttributeName": "tenant", "AttributeType": "S"},
            {"AttributeName": "schedule", "AttributeType": "S"},
            {"AttributeName": "spread", "AttributeType": "S"},
        ],
        KeySchema=[{"AttributeName": "tenant_schedule", "KeyType": "HASH"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_tenant",
                "KeySchema": [
                    {"AttributeName": "tenant", "KeyType": "HASH"},
                    {"AttributeName": "schedule", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            },
            {
                "IndexName": "by_spread",
                "KeySchema": [
                    {"AttributeName": "tenant", "KeyType": "HASH"},
                    {"AttributeName": "spread", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            },
        ],
    )


def _make_tenants(client: DynamoDBClient) -> None:
    client.create_table(
        TableName="tenants",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": "tenant", "AttributeType": "S"},
            {"AttributeName": "item", "AttributeType": "S"},
        ],
        KeySchema=[
            {"AttributeName": "tenant", "KeyType": "HASH"},
            {"AttributeName": "item", "KeyType": "RANGE"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_item",
                "KeySchema": [
                    {"AttributeName": "item", "KeyType": "HASH"},
                    {"AttributeName": "tenant", "KeyType": "RANGE"},
                ],
                "Projection": {
                    "ProjectionType": "INCLUDE",
                    "NonKeyAttributes": ["schedules_max", "quotas"],
                },
            }
        ],
    )
