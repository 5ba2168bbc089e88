"""Requests: what callers asked to run, remembered under their keys."""

from dataclasses import replace
from datetime import timedelta

import pytest

from puntual.application.ports import Requests
from puntual.domain.occurrence import Kind
from puntual.domain.run_request import OwnedFire, RunRequest, Survey
from puntual.domain.schedule import ScheduleKey
from puntual.domain.tenant import ScheduleId
from tests.builders import NINE, SCHEDULE, TENANT, a_request
from tests.contract.conftest import RETENTION, Aws, World
from tests.contract.sdk import repeating

KEY = ScheduleKey(tenant=TENANT, schedule=SCHEDULE)
FIRES = tuple(
    OwnedFire(1 + number // 400, NINE - timedelta(days=20) + timedelta(minutes=number**2))
    for number in range(1000)
)


@pytest.fixture
def requests(world: World) -> Requests:
    return world.requests


def test_what_nobody_asked_for_is_not_there(requests: Requests) -> None:
    assert requests.read(KEY, "r-1") is None


@pytest.mark.parametrize(
    "asked",
    [
        a_request(),
        a_request(
            *FIRES,
            kind=Kind.BACKFILL,
            authorised_version=7,
            per_minute=90,
            survey=Survey(looked_at=1200, ran=150, pending=50, rest_from=NINE),
        ),
        replace(
            a_request(kind=Kind.BACKFILL),
            fires=(),
            survey=Survey(looked_at=0, ran=0, pending=0, rest_from=None),
        ),
    ],
    ids=["manual", "backfill", "nothing"],
)
def test_a_request_is_read_as_it_was_put(requests: Requests, asked: RunRequest) -> None:
    assert requests.put(asked) == asked
    assert requests.read(KEY, "r-1") == asked


def test_the_first_request_under_a_key_stands(requests: Requests) -> None:
    first, second = a_request(), a_request(OwnedFire(2, NINE), fingerprint="key.other")
    requests.put(first)
    assert requests.put(second) == first
    assert requests.read(KEY, "r-1") == first


def test_schedules_and_ids_are_apart(requests: Requests) -> None:
    requests.put(a_request())
    other = ScheduleKey(tenant=TENANT, schedule=ScheduleId("other"))
    assert requests.read(other, "r-1") is None
    assert requests.read(KEY, "r-2") is None


def test_a_request_that_the_sdk_puts_twice_is_its_own(aws: Aws) -> None:
    with repeating(aws.dynamodb, "PutItem"):
        assert aws.world.requests.put(a_request()) == a_request()


def test_a_request_is_no_run_and_expires_as_runs_do(aws: Aws) -> None:
    aws.world.requests.put(a_request(*FIRES))
    assert aws.world.ledger.between(KEY, first="0", last="~", limit=10) == ()
    (row,) = aws.dynamodb.scan(TableName="occurrences")["Items"]
    assert row["expires_at"] == {"N": str(int((NINE + RETENTION).timestamp()))}
    assert len(row["body"]["B"]) < 5 * 1024, "a thousand fires are a few write units"
