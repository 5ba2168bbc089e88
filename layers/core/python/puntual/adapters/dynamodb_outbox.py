"""The outbox in DynamoDB: partition `shard`, sort key `page`; the page itself is in `body`."""

from dataclasses import dataclass
from datetime import datetime

from aws_lambda_powertools import Logger

from puntual.application.codec import page_of_packed
from puntual.aws import (
    DynamoDBClient,
    page_item,
    page_key,
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
        with unavailable_if_transient("put a page"):
            put_if_absent(self.client, self.table, page_item(page), key="page")

    def delete(self, page: Page) -> None:
        with unavailable_if_transient("delete a page"):
            self.client.delete_item(TableName=self.table, Key=page_key(page))

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
