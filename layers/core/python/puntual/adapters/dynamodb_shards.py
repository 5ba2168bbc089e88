"""The shards in DynamoDB: partition `shard`. Each time rises in an update of its own."""

from dataclasses import dataclass
from datetime import datetime

from puntual.aws import (
    DynamoDBClient,
    Item,
    put_if_absent,
    took,
    unavailable_if_transient,
)
from puntual.domain.instant import instant_of, text_of
from puntual.domain.shard import Shard


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbShards:
    client: DynamoDBClient
    table: str

    def ensure(self, shard: Shard) -> None:
        # Read first: the row is there but for the first time ever, and a read is cheaper.
        if self.get(shard.shard) is not None:
            return
        with unavailable_if_transient("make a shard"):
            put_if_absent(self.client, self.table, _item(shard), key="shard")

    def get(self, shard: int) -> Shard | None:
        with unavailable_if_transient("read a shard"):
            answer = self.client.get_item(
                TableName=self.table, Key=_key(shard), ConsistentRead=True
            )
        return _shard_of(answer["Item"]) if "Item" in answer else None

    def all(self) -> tuple[int, ...]:
        with unavailable_if_transient("list the shards"):
            answers = self.client.get_paginator("scan").paginate(
                TableName=self.table,
                ProjectionExpression="#shard",
                ExpressionAttributeNames={"#shard": "shard"},
                ConsistentRead=True,
            )
            return tuple(
                sorted(int(row["shard"]["N"]) for page in answers for row in page["Items"])
            )

    def lease(self, shard: int, *, owner: str, now: datetime, until: datetime) -> bool:
        free = "attribute_not_exists(#owner) OR #owner = :owner OR #until <= :now"
        return self._updated(
            shard,
            "SET #owner = :owner, #until = :until",
            f"attribute_exists(#shard) AND ({free})",
            names={"#shard": "shard", "#owner": "lease_owner", "#until": "lease_until"},
            values={
                ":owner": {"S": owner},
                ":now": {"S": text_of(now)},
                ":until": {"S": text_of(until)},
            },
        )

    def release(self, shard: int, *, owner: str) -> None:
        self._updated(
            shard,
            "REMOVE #owner, #until",
            "#owner = :owner",
            names={"#owner": "lease_owner", "#until": "lease_until"},
            values={":owner": {"S": owner}},
        )

    def announce(self, shard: int, planned_through: datetime) -> None:
        self._raise("planned_through", shard, planned_through)

    def close(self, shard: int, *, completed_through: datetime, drained_through: datetime) -> None:
        self._raise("completed_through", shard, completed_through)
        self._raise("drained_through", shard, drained_through)

    def _raise(self, name: str, shard: int, to: datetime) -> None:
        """Let one time rise. Where it stands higher, or no row is, the condition fails: no-op."""
        self._updated(
            shard,
            "SET #time = :to",
            "#time < :to",
            names={"#time": name},
            values={":to": {"S": text_of(to)}},
        )

    def _updated(
        self, shard: int, update: str, condition: str, *, names: dict[str, str], values: Item
    ) -> bool:
        with unavailable_if_transient("update a shard"):
            return took(
                lambda: self.client.update_item(
                    TableName=self.table,
                    Key=_key(shard),
                    UpdateExpression=update,
                    ConditionExpression=condition,
                    ExpressionAttributeNames=names,
                    ExpressionAttributeValues=values,
                )
            )


def _key(shard: int) -> Item:
    return {"shard": {"N": str(shard)}}


def _item(shard: Shard) -> Item:
    item: Item = _key(shard.shard) | {
        "planned_through": {"S": text_of(shard.planned_through)},
        "completed_through": {"S": text_of(shard.completed_through)},
        "drained_through": {"S": text_of(shard.drained_through)},
    }
    if shard.lease_until is not None:
        item["lease_owner"] = {"S": shard.lease_owner}
        item["lease_until"] = {"S": text_of(shard.lease_until)}
    return item


def _shard_of(item: Item) -> Shard:
    return Shard(
        shard=int(item["shard"]["N"]),
        planned_through=instant_of(item["planned_through"]["S"]),
        completed_through=instant_of(item["completed_through"]["S"]),
        drained_through=instant_of(item["drained_through"]["S"]),
        lease_owner=item["lease_owner"]["S"] if "lease_owner" in item else "",
        lease_until=instant_of(item["lease_until"]["S"]) if "lease_until" in item else None,
    )
