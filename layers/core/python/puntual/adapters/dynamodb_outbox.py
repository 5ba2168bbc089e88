"""The outbox in DynamoDB: partition `shard`, sort key `page`; the page itself is in `body`."""

from dataclasses import dataclass
from datetime import datetime

from aws_lambda_powertools import Logger

from puntual.application.codec import packed_page, page_key_text, page_of_packed
from puntual.aws import (
    DynamoDBClient,
    Item,
    put_if_absent,
    unavailable_if_transient,
)
from puntual.domain.instant import text_of
from puntual.domain.page import Page

logger = Logger(child=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbOutbox:
    client: DynamoDBClient
    table: str

    def put(self, page: Page) -> None:
        item: Item = _key(page) | {
            "body": {"B": packed_page(page)},
            "written_at": {"S": text_of(page.written_at)},
        }
        if page.carried:
            # Beside the body, so that the relay passes it over without unpacking it.
            item["carried"] = {"S": "planner"}
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
        pages = (_page_or_none(shard, body) for body in bodies)
        return tuple(page for page in pages if page is not None)


def _page_or_none(shard: int, body: bytes) -> Page | None:
    """Read a page; one that cannot be read stays, and must not keep the others from going."""
    try:
        return page_of_packed(body)
    except ValueError:
        logger.exception("unreadable page", shard=shard)
        return None


def _key(page: Page) -> Item:
    return {"shard": {"N": str(page.shard)}, "page": {"S": page_key_text(page)}}
