"""The seats in DynamoDB, beside a tenant's registration: `seat#LANE#NUMBER` and `pace#LANE`.

Rows do not expire: a tenant has at most as many as a lane has executors, and one more.
"""

from dataclasses import dataclass
from datetime import datetime

from puntual.aws import DynamoDBClient, Item, took, unavailable_if_transient
from puntual.domain.fairness import Seat
from puntual.domain.instant import instant_of, text_of
from puntual.domain.message import Crowd


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbSeats:
    client: DynamoDBClient
    table: str

    def take(self, seat: Seat, *, owner: str, now: datetime, until: datetime) -> bool:
        """Who owns it already takes it again, so a write that is repeated takes it too (P9)."""
        with unavailable_if_transient("take a seat"):
            return took(
                lambda: self.client.update_item(
                    TableName=self.table,
                    Key=_key_of(seat),
                    UpdateExpression="SET #owner = :owner, #until = :until",
                    ConditionExpression=(
                        "attribute_not_exists(#owner) OR #owner = :owner OR #until <= :now"
                    ),
                    ExpressionAttributeNames={"#owner": "seat_owner", "#until": "seat_until"},
                    ExpressionAttributeValues={
                        ":owner": {"S": owner},
                        ":now": {"S": text_of(now)},
                        ":until": {"S": text_of(until)},
                    },
                )
            )

    def leave(self, seat: Seat, *, owner: str) -> None:
        with unavailable_if_transient("leave a seat"):
            took(
                lambda: self.client.update_item(
                    TableName=self.table,
                    Key=_key_of(seat),
                    UpdateExpression="REMOVE #owner, #until",
                    ConditionExpression="#owner = :owner",
                    ExpressionAttributeNames={"#owner": "seat_owner", "#until": "seat_until"},
                    ExpressionAttributeValues={":owner": {"S": owner}},
                )
            )

    def quick_until(self, crowd: Crowd) -> datetime | None:
        with unavailable_if_transient("read whether a crowd is quick"):
            answer = self.client.get_item(TableName=self.table, Key=_pace_key_of(crowd))
        return instant_of(answer["Item"]["quick_until"]["S"]) if "Item" in answer else None

    def note_quick(self, crowd: Crowd, *, until: datetime) -> None:
        with unavailable_if_transient("note whether a crowd is quick"):
            self.client.update_item(
                TableName=self.table,
                Key=_pace_key_of(crowd),
                UpdateExpression="SET #until = :until",
                ExpressionAttributeNames={"#until": "quick_until"},
                ExpressionAttributeValues={":until": {"S": text_of(until)}},
            )


def _key_of(seat: Seat) -> Item:
    crowd = seat.crowd
    return {"tenant": {"S": crowd.tenant}, "item": {"S": f"seat#{crowd.lane}#{seat.number}"}}


def _pace_key_of(crowd: Crowd) -> Item:
    return {"tenant": {"S": crowd.tenant}, "item": {"S": f"pace#{crowd.lane}"}}
