"""Fires of one schedule that meet: the first hangs, and an edit makes the next one come soon."""

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import boto3

from puntual.adapters.dynamodb_ledger import DynamoDbLedger
from puntual.domain.run import RETENTION_MIN, Run, RunSwap
from puntual.domain.schedule import ScheduleKey
from puntual.domain.slot import SlotSwap
from tests.builders import NINE, a_place, a_run, an_occurrence
from tests.e2e.conftest import RETRY_QUICKLY, Stage, at_in

HANGS_SECONDS = 10
SETTLED_SECONDS = 5.0
CLAIMS = 8
ROUNDS = 10


def hanging(stage: Stage, overlap: str) -> tuple[str, str]:
    """Create a schedule whose first fire is being delivered; give its id and that fire.

    It hangs thrice, and is then DEAD: some half a minute in all, but never long in anyone's way.
    """
    expression, fire = at_in(3)
    url = f"{stage.receiver.url}/hangs"
    target = {"type": "webhook", "url": url, "timeout_seconds": HANGS_SECONDS}
    made = stage.create(expression=expression, target=target, overlap=overlap, retry=RETRY_QUICKLY)
    assert made["overlap"] == overlap
    assert stage.receiver.wait_for(made["id"], 1, seconds=40)
    return made["id"], fire


def fires_again(stage: Stage, schedule: str, version: int) -> str:
    """Let an edit bring another fire, to a receiver that answers at once."""
    expression, fire = at_in(3)
    target = {"type": "webhook", "url": f"{stage.receiver.url}/ok"}
    stage.api.call(
        "PATCH",
        stage.path(schedule),
        {"expression": expression, "target": target},
        headers={"If-Match": f'"{version}"'},
    ).expect(200)
    return fire


def fires_called(stage: Stage, schedule: str) -> list[str]:
    """Give whose attempts arrived, in their order, each once."""
    arrivals = stage.receiver.book.of(schedule)
    return list(dict.fromkeys(arrival.scheduled_for for arrival in arrivals))


def test_under_allow_both_run_at_once(stage: Stage) -> None:
    schedule, first = hanging(stage, "allow")
    second = fires_again(stage, schedule, 1)
    stage.wait_for_state(schedule, second, "SUCCEEDED", seconds=30)
    assert stage.occurrence(schedule, first)["state"] in {"RUNNING", "RETRY_WAIT"}


def test_under_skip_if_running_the_second_is_skipped_and_the_third_runs(stage: Stage) -> None:
    schedule, first = hanging(stage, "skip_if_running")
    second = fires_again(stage, schedule, 1)
    row = stage.wait_for_state(schedule, second, "SKIPPED_OVERLAP", seconds=30)
    assert row["reason"] == f"{first} was running"
    stage.wait_for_state(schedule, first, "DEAD", seconds=60)
    third = fires_again(stage, schedule, 2)
    stage.wait_for_state(schedule, third, "SUCCEEDED", seconds=30)
    assert fires_called(stage, schedule) == [first, third]


def test_under_queue_one_the_second_runs_after_the_first_and_the_third_is_skipped(
    stage: Stage,
) -> None:
    schedule, first = hanging(stage, "queue_one")
    second = fires_again(stage, schedule, 1)
    time.sleep(SETTLED_SECONDS)
    third = fires_again(stage, schedule, 2)
    row = stage.wait_for_state(schedule, third, "SKIPPED_OVERLAP", seconds=30)
    assert row["reason"] in {f"{first} was running", f"{second} was waiting"}
    stage.wait_for_state(schedule, second, "SUCCEEDED", seconds=100)
    assert stage.occurrence(schedule, first)["state"] == "DEAD"
    *others, last = stage.receiver.book.of(schedule)
    assert {arrival.scheduled_for for arrival in others} == {first}
    assert last.scheduled_for == second


def test_under_cancel_running_the_first_is_asked_to_end_and_not_tried_again(
    stage: Stage,
) -> None:
    schedule, first = hanging(stage, "cancel_running")
    second = fires_again(stage, schedule, 1)
    row = stage.wait_for_state(schedule, first, "CANCELED", seconds=60)
    assert row["reason"] == f"overlap after attempt {row['attempt']}"
    assert row["attempt"] < RETRY_QUICKLY["max_attempts"]
    stage.wait_for_state(schedule, second, "SUCCEEDED", seconds=60)
    assert fires_called(stage, schedule) == [first, second]


def test_of_many_claims_of_one_slot_at_once_exactly_one_takes_it(
    stage: Stage, outputs: dict[str, Any]
) -> None:
    """Transactions are atomic under threads here, which moto's are not."""
    client = boto3.client(
        "dynamodb",
        endpoint_url=outputs["endpoint"],
        region_name=outputs["region"],
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 the emulator takes any
    )
    ledger = DynamoDbLedger(
        client=client,
        table=outputs["tables"]["occurrences"],
        outbox_table=outputs["tables"]["outbox"],
        retention=RETENTION_MIN,
    )
    for number in range(ROUNDS):
        runs = [_claim(stage.tenant, f"s-{number}", claimer) for claimer in range(CLAIMS)]

        def take(run: Run) -> bool:
            of = run.occurrence
            seen = ledger.slot(ScheduleKey(tenant=of.tenant, schedule=of.schedule))
            taken = replace(seen, running=a_place(run.occurrence), write_id=run.write_id)
            if seen.running is not None:
                return False
            swap = SlotSwap(slot=taken, seen=seen)
            return ledger.swap_with_slot(swap, RunSwap(run=run, seen=None))

        with ThreadPoolExecutor(CLAIMS) as pool:
            won = list(pool.map(take, runs))
        assert won.count(True) == 1
        rows = [run for run in runs if ledger.read(run.occurrence.key) is not None]
        assert [run for run, won in zip(runs, won, strict=True) if won] == rows


def _claim(tenant: str, schedule: str, number: int) -> Run:
    occurrence = an_occurrence(
        tenant=tenant, schedule=schedule, scheduled_for=NINE + timedelta(minutes=number)
    )
    return a_run(occurrence, write_id=uuid.uuid4().hex)
