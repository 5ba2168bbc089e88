"""What moto cannot show: that reads ask for consistency, which no test here would miss."""

from collections.abc import Callable

import pytest

from puntual.domain.budget import FIRES, BudgetKey
from puntual.domain.schedule import ScheduleKey
from puntual.domain.share import RUNNING, ShareKey
from tests.builders import NINE, SCHEDULE, TENANT, a_cursor, an_occurrence
from tests.contract.conftest import Aws, World
from tests.contract.sdk import recording

KEY = ScheduleKey(tenant=TENANT, schedule=SCHEDULE)


@pytest.mark.parametrize(
    ("operation", "read"),
    [
        ("GetItem", lambda world: world.schedules.head(KEY)),
        ("GetItem", lambda world: world.schedules.version(KEY, 1)),
        ("BatchGetItem", lambda world: world.schedules.heads([KEY])),
        ("BatchGetItem", lambda world: world.schedules.versions({KEY: 1})),
        ("Query", lambda world: world.agenda.due(0, NINE, limit=1)),
        ("Query", lambda world: world.agenda.due(0, NINE, limit=1, behind=a_cursor())),
        ("Query", lambda world: world.outbox.left(0, written_before=NINE, limit=1)),
        ("GetItem", lambda world: world.ledger.read(an_occurrence().key)),
        ("GetItem", lambda world: world.ledger.slot(KEY)),
        ("Query", lambda world: world.ledger.between(KEY, first="1", last="2", limit=1)),
        ("GetItem", lambda world: world.requests.read(KEY, "r-1")),
        ("GetItem", lambda world: world.shards.get(0)),
        ("Scan", lambda world: world.shards.all()),
        ("GetItem", lambda world: world.budgets.read(BudgetKey(tenant=TENANT, name=FIRES))),
        ("GetItem", lambda world: world.shares.read(ShareKey(tenant=TENANT, name=RUNNING))),
        ("GetItem", lambda world: world.zone_releases.in_use()),
        ("GetItem", lambda world: world.zone_releases.rules("2026.6")),
    ],
)
def test_a_read_is_strongly_consistent(
    aws: Aws, operation: str, read: Callable[[World], object]
) -> None:
    with recording(aws.dynamodb, operation) as calls:
        read(aws.world)
    (call,) = calls
    [request] = call["RequestItems"].values() if operation == "BatchGetItem" else [call]
    assert request["ConsistentRead"] is True
