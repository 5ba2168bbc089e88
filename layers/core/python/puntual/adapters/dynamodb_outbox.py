"""The outbox in DynamoDB: partition `shard`, sort key `page`; the page itself is in `body`."""

from dataclasses import dataclass
from datetime import datetime

from puntual.application.codec import packed_page, page_key_text, page_of_packed
from puntual.aws import (
    DynamoDBClient,
    Item,
    put_if_absent,
    unavailable_if_transient,
)
from puntual.domain.instant import text_of
from puntual.domain.page import Page


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbOutbox:
    client: DynamoDBClient
    table: str

    def put(self, page: Page) -> None:
        item: Item = _key(page) | {
            "body": {"B": packed_page(page)},
            "written_at": {"S": text_of(page.written_at)},
        }
        with unavailable_if_transient("put a page"):
            put_if_absent(self.client, self.table, item, key="page")

    def delete(self, page: Page) -> None:
        with unavailable_if_transient("delete a page"):
            self.client.delete_item(TableName=self.table, Key=_key(page))

    def left(self, shard: int, *, written_before: datetime, limit: int) -> tuple[Page, ...]:
        with unavailable_if_transient("read the pages left"):
            answers = self.client.get_paginator("query").paginate(
                TableName=self.table,
                KeyConditionExpression="#shard = :shard",
                FilterExpression="#written_at < :before",
                ExpressionAttributeNames={"#shard": "shard", "#written_at": "written_at"},
                ExpressionAttributeValues={
                    ":shard": {"N": str(shard)},
                    ":before": {"S": text_of(written_before)},
                },
                ConsistentRead=True,
                PaginationConfig={"MaxItems": limit},
            )
            bodies = [item["body"]["B"] for answer in answers for item in answer["Items"]]
        return tuple(page_of_packed(body) for body in bodies)


def _key(page: Page) -> Item:
    return {"shard": {"N": str(page.shard)}, "page": {"S": page_key_text(page)}}
