"""The releases of zone data in DynamoDB: partition `item`.

The row `in_use` says what is in use, as text in `body`; a row `rules#RELEASE` for each release that
ever was holds its data, compressed, some 60 KB. They are kept: versions name the release that they
were computed with.
"""

from dataclasses import dataclass

from puntual.application.codec import in_use_of_text, in_use_text, packed_rules, rules_of_packed
from puntual.aws import (
    DynamoDBClient,
    Item,
    PutItem,
    lost_to,
    put_if_absent,
    unavailable_if_transient,
)
from puntual.domain.zone_releases import ReleasesInUse
from puntual.domain.zone_rules import ZoneRules

IN_USE = "in_use"


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbZoneReleases:
    client: DynamoDBClient
    table: str

    def in_use(self) -> ReleasesInUse | None:
        item = self._item(IN_USE)
        return None if item is None else in_use_of_text(item["body"]["S"])

    def swap(self, in_use: ReleasesInUse, *, seen: ReleasesInUse | None) -> bool:
        body = in_use_text(in_use)
        request: PutItem = {
            "TableName": self.table,
            "Item": _key(IN_USE) | {"body": {"S": body}},
            "ConditionExpression": "attribute_not_exists(#body)",
            "ExpressionAttributeNames": {"#body": "body"},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        if seen is not None:
            request["ConditionExpression"] = "#body = :seen"
            request["ExpressionAttributeValues"] = {":seen": {"S": in_use_text(seen)}}
        with unavailable_if_transient("note zone releases"):
            in_the_way = lost_to(lambda: self.client.put_item(**request))
        return in_the_way is None or in_the_way.get("body") == {"S": body}

    def keep(self, rules: ZoneRules) -> None:
        item = _key(_rules_key(rules.release)) | {"body": {"B": packed_rules(rules)}}
        with unavailable_if_transient("keep zone rules"):
            put_if_absent(self.client, self.table, item, key="item")

    def rules(self, release: str) -> ZoneRules | None:
        item = self._item(_rules_key(release))
        return None if item is None else rules_of_packed(item["body"]["B"], release=release)

    def _item(self, key: str) -> Item | None:
        with unavailable_if_transient("read zone releases"):
            answer = self.client.get_item(TableName=self.table, Key=_key(key), ConsistentRead=True)
        return answer.get("Item")


def _rules_key(release: str) -> str:
    return f"rules#{release}"


def _key(item: str) -> Item:
    return {"item": {"S": item}}
