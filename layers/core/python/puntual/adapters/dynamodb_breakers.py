"""The open breakers in DynamoDB, beside the registration: sort key `breakers`, a row a tenant."""

from dataclasses import dataclass

from puntual.application.codec import breakers_of_text, breakers_text
from puntual.aws import DynamoDBClient, Item, swap_item, unavailable_if_transient
from puntual.domain.breaker import Breakers
from puntual.domain.tenant import TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbBreakers:
    client: DynamoDBClient
    table: str

    def read(self, tenant: TenantId) -> Breakers:
        # At half the price: every executor asks every ten seconds, and nearly always for nothing.
        with unavailable_if_transient("read breakers"):
            answer = self.client.get_item(TableName=self.table, Key=_key_of(tenant))
        if "Item" not in answer:
            return Breakers(tenant=tenant, by_target={})
        row = answer["Item"]
        return Breakers(
            tenant=tenant,
            by_target=breakers_of_text(row["open"]["S"]),
            write_id=row["write_id"]["S"],
        )

    def swap(self, breakers: Breakers, *, seen: Breakers) -> bool:
        values: Item = {"open": {"S": breakers_text(breakers.by_target)}}
        with unavailable_if_transient("open or close a breaker"):
            return swap_item(
                self.client,
                self.table,
                _key_of(breakers.tenant),
                values,
                write_id=breakers.write_id,
                seen=seen.write_id,
            )


def _key_of(tenant: TenantId) -> Item:
    return {"tenant": {"S": tenant}, "item": {"S": "breakers"}}
