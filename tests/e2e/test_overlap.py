"""Fires of one schedule that meet: the first hangs, and an edit makes the next one come soon."""

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

HANGS_SECONDS = 20
CLAIMS = 8
ROUNDS = 10


def hanging(stage: Stage, overlap: str, path: str = "hangs-first") -> tuple[str, str]:
    """Create a schedule whose first fire is being delivered; give its id and that fire."""
    expression, fire = at_in(3)
    target = {
        "type": "webhook",
        "url": f"{stage.receiver.url}/{path}",
        "timeout_seconds": HANGS_SECONDS,
    }
    made = stage.create(expression=expression, target=target, overlap=overlap, retry=RETRY_QUICKLY)
    assert made["overlap"] == overlap
    assert stage.receiver.wait_for(made["id"], 1, seconds=20)
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


def order(stage: Stage, schedule: str) -> list[tuple[str, int]]:
    return [
        (arrival.scheduled_for, arrival.attempt) for arrival in stage.receiver.book.of(schedule)
    ]


def test_under_allow_both_run_at_once(stage: Stage) -> None:
    schedule, first = hanging(stage, "allow")
    second = fires_again(stage, schedule, 1)
    stage.wait_for_state(schedule, second, "SUCCEEDED", seconds=15)
    assert stage.occurrence(schedule, first)["state"] == "RUNNING"
    stage.wait_for_state(schedule, first, "SUCCEEDED", seconds=60)


def test_under_skip_if_running_the_second_is_skipped_and_the_third_runs(stage: Stage) -> None:
    schedule, first = hanging(stage, "skip_if_running")
    second = fires_again(stage, schedule, 1)
    row = stage.wait_for_state(schedule, second, "SKIPPED_OVERLAP", seconds=15)
    assert row["reason"] == f"{first} was running"
    stage.wait_for_state(schedule, first, "SUCCEEDED", seconds=60)
    third = fires_again(stage, schedule, 2)
    stage.wait_for_state(schedule, third, "SUCCEEDED", seconds=15)
    assert order(stage, schedule) == [(first, 1), (first, 2), (third, 1)]


def test_under_queue_one_the_second_runs_after_the_first_and_the_third_is_skipped(
    stage: Stage,
) -> None:
    schedule, first = hanging(stage, "queue_one")
    second = fires_again(stage, schedule, 1)
    third = fires_again(stage, schedule, 2)
    row = stage.wait_for_state(schedule, third, "SKIPPED_OVERLAP", seconds=20)
    assert row["reason"] in {f"{first} was running", f"{second} was waiting"}
    stage.wait_for_state(schedule, second, "SUCCEEDED", seconds=90)
    assert stage.occurrence(schedule, first)["state"] == "SUCCEEDED"
    assert order(stage, schedule) == [(first, 1), (first, 2), (second, 1)]


def test_under_cancel_running_the_first_is_asked_to_end_and_not_tried_again(
    stage: Stage,
) -> None:
    schedule, first = hanging(stage, "cancel_running", "hangs")
    second = fires_again(stage, schedule, 1)
    row = stage.wait_for_state(schedule, first, "CANCELED", seconds=60)
    assert row["cancel_requested"]
    assert row["reason"] == "overlap after attempt 1"
    stage.wait_for_state(schedule, second, "SUCCEEDED", seconds=60)
    assert order(stage, schedule) == [(first, 1), (second, 1)]


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
        client=client, table=outputs["tables"]["occurrences"], retention=RETENTION_MIN
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
    return a_run(occurrence, write_id=f"{schedule}-{number}")
