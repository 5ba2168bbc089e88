"""The shares of limits in DynamoDB, beside the registration: sort key `shares#NAME`."""

from dataclasses import dataclass

from puntual.application.codec import holders_of_text, holders_text
from puntual.aws import DynamoDBClient, Item, swap_item, unavailable_if_transient
from puntual.domain.share import ShareKey, Shares


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbShares:
    client: DynamoDBClient
    table: str

    def read(self, key: ShareKey) -> Shares:
        with unavailable_if_transient("read shares"):
            answer = self.client.get_item(
                TableName=self.table, Key=_key_of(key), ConsistentRead=True
            )
        if "Item" not in answer:
            return Shares(key=key, holders={})
        row = answer["Item"]
        return Shares(
            key=key,
            holders=holders_of_text(row["holders"]["S"]),
            held=int(row["held"]["N"]),
            write_id=row["write_id"]["S"],
        )

    def swap(self, shares: Shares, *, seen: Shares) -> bool:
        values: Item = {
            "holders": {"S": holders_text(shares.holders)},
            "held": {"N": str(shares.held)},
        }
        with unavailable_if_transient("take a share"):
            return swap_item(
                self.client,
                self.table,
                _key_of(shares.key),
                values,
                write_id=shares.write_id,
                seen=seen.write_id,
            )


def _key_of(key: ShareKey) -> Item:
    return {"tenant": {"S": key.tenant}, "item": {"S": f"shares#{key.name}"}}
