"""Requests in DynamoDB, in the ledger's table: sort key `request#ID`, behind all runs.

They expire as runs do; `body` holds all of a request but its keys.
"""

from dataclasses import dataclass
from datetime import timedelta

from puntual.application.codec import packed_request, request_of_packed, schedule_key_text
from puntual.aws import DynamoDBClient, Item, lost_to, unavailable_if_transient
from puntual.domain.run_request import RunRequest
from puntual.domain.schedule import ScheduleKey


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbRequests:
    client: DynamoDBClient
    table: str
    retention: timedelta

    def read(self, key: ScheduleKey, request_id: str) -> RunRequest | None:
        with unavailable_if_transient("read a request"):
            answer = self.client.get_item(
                TableName=self.table, Key=_key_of(key, request_id), ConsistentRead=True
            )
        return _request_of(answer["Item"], key, request_id) if "Item" in answer else None

    def put(self, request: RunRequest) -> RunRequest:
        expires_at = int((request.asked_at + self.retention).timestamp())
        item: Item = _key_of(request.key, request.id) | {
            "row": {"S": "request"},
            "body": {"B": packed_request(request)},
            "expires_at": {"N": str(expires_at)},
        }
        with unavailable_if_transient("put a request"):
            in_the_way = lost_to(
                lambda: self.client.put_item(
                    TableName=self.table,
                    Item=item,
                    ConditionExpression="attribute_not_exists(#run)",
                    ExpressionAttributeNames={"#run": "run"},
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            )
        return request if in_the_way is None else _request_of(in_the_way, request.key, request.id)


def _key_of(key: ScheduleKey, request_id: str) -> Item:
    return {"tenant_schedule": {"S": schedule_key_text(key)}, "run": {"S": f"request#{request_id}"}}


def _request_of(item: Item, key: ScheduleKey, request_id: str) -> RunRequest:
    return request_of_packed(item["body"]["B"], key=key, request_id=request_id)
