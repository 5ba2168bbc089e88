"""A row that cannot be read stops nobody: a later release wrote it, or it was damaged."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from puntual.aws import Item
from puntual.domain.instant import text_of
from tests.builders import (
    NINE,
    TENANT,
    a_cursor,
    a_page,
    a_planned,
    a_rule,
    a_schedule,
    a_tenant,
    a_version,
)
from tests.contract.conftest import Aws

BUCKET = "2026-11-30T09:00Z#0"


def rows_of(aws: Aws, table: str) -> list[Any]:
    return aws.dynamodb.scan(TableName=table)["Items"]


def damage(aws: Aws, table: str, item: Item, **changed: str) -> None:
    texts: Item = {name: {"S": text} for name, text in changed.items()}
    aws.dynamodb.put_item(TableName=table, Item=item | texts)


def test_heads_that_cannot_be_read_are_left_out_and_the_others_given(aws: Aws) -> None:
    aws.world.tenants.register(a_tenant())
    keys = []
    for name in ("good", "later"):
        version = a_version(schedule=name)
        head = a_schedule(version)
        aws.schedules.create(head, version, None, shard=0)
        keys.append(head.key)
    [later] = [row for row in rows_of(aws, "schedules") if row["schedule"]["S"] == "later"]
    damage(aws, "schedules", later, body=later["body"]["S"].replace("fire_once", "of the future"))
    assert set(aws.schedules.heads(keys)) == {keys[0]}


def test_versions_that_cannot_be_read_are_left_out_and_the_others_given(aws: Aws) -> None:
    aws.world.tenants.register(a_tenant())
    versions = [a_version(schedule=name) for name in ("good", "later")]
    for version in versions:
        aws.schedules.create(a_schedule(version), version, None, shard=0)
    [later] = [
        row
        for row in rows_of(aws, "schedule_versions")
        if row["tenant_schedule"]["S"].endswith("#later")
    ]
    damage(aws, "schedule_versions", later, body="junk")
    numbers = {version.key: 1 for version in versions}
    assert aws.schedules.versions(numbers) == {versions[0].key: versions[0]}


def test_cursors_that_cannot_be_read_go_to_quarantine_and_the_bucket_empties(aws: Aws) -> None:
    for number in range(3):
        item: Item = {"bucket": {"S": BUCKET}, "cursor": {"S": f"junk-{number}"}}
        damage(aws, "agenda", item, scheduled_for="never")
    cursor = a_cursor(NINE)
    aws.agenda.put(0, [cursor])
    bucket = cursor.bucket
    assert aws.agenda.due(0, bucket, limit=2) == (cursor,)
    aws.agenda.delete(0, [cursor])
    assert aws.agenda.due(0, bucket, limit=2) == ()
    quarantined = {row["cursor"]["S"] for row in rows_of(aws, "agenda")}
    assert quarantined == {"junk-0", "junk-1", "junk-2"}
    assert {row["bucket"]["S"] for row in rows_of(aws, "agenda")} == {"quarantine#0"}


def test_pages_that_cannot_be_read_stay_and_the_others_are_given(aws: Aws) -> None:
    page = a_page(a_planned(), written_at=NINE)
    aws.world.outbox.put(page)
    junk: Item = {"shard": {"N": "0"}, "body": {"B": b"junk"}}
    damage(aws, "outbox", junk, page="2026-11-30T08:59Z#junk", written_at=text_of(NINE))
    left = aws.world.outbox.left(0, written_before=NINE + timedelta(minutes=2), limit=10)
    assert left == (page,)
    assert len(rows_of(aws, "outbox")) == 2


def test_rules_that_cannot_be_read_are_counted_and_the_others_given(
    aws: Aws, caplog: pytest.LogCaptureFixture
) -> None:
    aws.world.tenants.register(a_tenant())
    for name in ("good", "later", "junk"):
        version = a_version(schedule=name)
        aws.schedules.create(a_schedule(version), version, None, shard=0)
    for row in rows_of(aws, "schedules"):
        if row["schedule"]["S"] == "later":
            damage(aws, "schedules", row, spread=row["spread"]["S"].replace("#sa#", "#zz#"))
        if row["schedule"]["S"] == "junk":
            damage(aws, "schedules", row, spread="0z")
    schedules = replace(aws.schedules, rules_per_page=1)
    pages = list(schedules.active_rules(TENANT))
    assert [rule for page in pages for rule, _ in page.counts] == [a_rule()]
    assert sum(page.unreadable for page in pages) == 2
    assert any("#zz#" in (page.unreadable_rule or "") for page in pages)
    assert sum(page.share for page in pages) == 1
    assert not caplog.records, "whoever asked tells it, once for all of them"


def test_a_place_that_cannot_be_read_does_not_end_the_reading(aws: Aws) -> None:
    aws.world.tenants.register(a_tenant())
    for number in range(4):
        version = a_version(schedule=f"job-{number}")
        aws.schedules.create(a_schedule(version), version, None, shard=0)
    for number, row in enumerate(rows_of(aws, "schedules")[:2]):
        damage(aws, "schedules", row, spread=f"0z-junk-{number}")
    schedules = replace(aws.schedules, rules_per_page=1)
    pages = list(schedules.active_rules(TENANT))
    assert sum(page.unreadable for page in pages) == 2
    assert sum(page.schedules for page in pages) == 4
    assert sum(page.share for page in pages) == pytest.approx(1)
