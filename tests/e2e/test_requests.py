"""What is asked for beside the rule: triggers, a backfill of what was missed, a bounded rule."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
from pynamodb.connection import Connection

from puntual.adapters.dynamodb_ledger import DynamoDbLedger
from puntual.adapters.dynamodb_schedules import DynamoDbSchedules
from puntual.domain.instant import text_of
from puntual.domain.run import RETENTION_MIN, RunState, Span
from puntual.domain.schedule import ScheduleVersion, head_of
from puntual.domain.target import WebhookTarget
from scripts.signed_api import Answer
from scripts.waiting import until
from tests.builders import a_rule, a_run, a_version, an_occurrence
from tests.e2e.conftest import Stage

TEN_MINUTES = timedelta(minutes=10)
CATCH_UPS_PER_MINUTE = 6
CALLERS = 4
"""Each call at once is a process of the emulator's."""


def asked(
    stage: Stage, schedule: str, what: str, body: object = None, *, key: str | None = None
) -> Answer:
    headers = {} if key is None else {"Idempotency-Key": key}
    return stage.api.call("POST", stage.path(schedule, f"/{what}"), body, headers=headers)


def ended(stage: Stage, schedule: str, ref: str) -> dict[str, Any]:
    row = until(
        lambda: stage.api.occurrence(stage.tenant, schedule, ref),
        lambda row: row["state"] not in {"SCHEDULED", "ENQUEUED", "RUNNING"},
        seconds=90,
    )
    assert row["state"] == "SUCCEEDED", row
    return row


def test_ten_triggers_within_a_second_are_ten_runs(stage: Stage) -> None:
    schedule = stage.create(expression="0 0 1 1 *")["id"]
    with ThreadPoolExecutor(CALLERS) as pool:
        answers = list(pool.map(lambda _: asked(stage, schedule, "trigger"), range(10)))
    assert {answer.status for answer in answers} == {202}
    for answer in answers:
        row = stage.api.occurrence(stage.tenant, schedule, answer.body["ref"])
        assert row["id"] == answer.body["id"], "no ref that was given out is unknown"
    arrivals = stage.receiver.wait_for(schedule, 10, seconds=60)
    assert {each.key for each in arrivals} == {answer.body["id"] for answer in answers}
    for answer in answers:
        assert ended(stage, schedule, answer.body["ref"])["lag_seconds"] is not None


def test_a_key_that_comes_twice_is_one_run_also_at_once(stage: Stage) -> None:
    schedule, key = stage.create(expression="0 0 1 1 *")["id"], uuid.uuid4().hex
    with ThreadPoolExecutor(CALLERS) as pool:
        answers = list(pool.map(lambda _: asked(stage, schedule, "trigger", key=key), range(4)))
    answers.append(asked(stage, schedule, "trigger", key=key))
    assert {answer.status for answer in answers} == {202}
    (ref,) = {answer.body["ref"] for answer in answers}
    row = ended(stage, schedule, ref)
    assert {each.key for each in stage.receiver.book.of(schedule)} == {row["id"]}
    listed = list(stage.api.occurrences(stage.tenant, schedule))
    assert [each["ref"] for each in listed] == [ref]


def test_a_paused_schedule_is_triggered_and_a_canceled_one_is_not(stage: Stage) -> None:
    schedule = stage.create(expression="0 0 1 1 *")["id"]
    stage.api.call("POST", stage.path(schedule, "/pause")).expect(200)
    ref = asked(stage, schedule, "trigger").expect(202).body["ref"]
    assert ended(stage, schedule, ref)["version"] == 2
    stage.api.call("DELETE", stage.path(schedule)).expect(200)
    asked(stage, schedule, "trigger").expect(409)


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A schedule that was made an hour ago, as far as the tables know."""

    version: ScheduleVersion
    ledger: DynamoDbLedger

    def fire(self, number: int) -> datetime:
        return self.version.effective_from + number * TEN_MINUTES


def an_hour_old(stage: Stage) -> Past:
    tables = stage.outputs["tables"]
    client = boto3.client(
        "dynamodb",
        endpoint_url=stage.outputs["endpoint"],
        region_name=stage.outputs["region"],
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 the emulator takes any
    )
    began = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=65)
    version = a_version(
        tenant=stage.tenant,
        schedule=f"s-{uuid.uuid4().hex[:12]}",
        rule=a_rule("rate(10 minutes)", anchor=began),
        target=WebhookTarget(url=f"{stage.receiver.url}/ok"),
        effective_from=began,
    )
    schedules = DynamoDbSchedules(
        client=client,
        schedules_table=tables["schedules"],
        versions_table=tables["versions"],
        agenda_table=tables["agenda"],
        tenants_table=tables["tenants"],
        connection=Connection(
            host=stage.outputs["endpoint"], region=stage.outputs["region"], max_retry_attempts=1
        ),
    )
    head = head_of(version, created_at=began, min_valid_version=1)
    schedules.create(head, version, None, shard=0)
    ledger = DynamoDbLedger(
        client=client,
        table=tables["occurrences"],
        outbox_table=tables["outbox"],
        retention=RETENTION_MIN,
    )
    return Past(version=version, ledger=ledger)


def test_a_backfill_runs_what_was_missed_in_the_recovery_lane_and_nothing_else(
    stage: Stage,
) -> None:
    stage.api.register(stage.tenant, quotas={"catch_ups_per_minute": CATCH_UPS_PER_MINUTE})
    past = an_hour_old(stage)
    schedule = past.version.schedule
    past.ledger.put_spans(
        [
            Span(
                tenant=past.version.tenant,
                schedule=schedule,
                version=1,
                state=RunState.MISSED,
                first=past.fire(1),
                last=past.fire(4),
                reason="skip",
            )
        ]
    )
    second = an_occurrence(tenant=stage.tenant, schedule=schedule, scheduled_for=past.fire(2))
    past.ledger.swap(a_run(second, state=RunState.SUCCEEDED), seen=None)
    body = {"from": text_of(past.fire(0)), "until": text_of(past.fire(5))}
    dry = asked(stage, schedule, "backfill", {**body, "dry_run": True}).expect(200).body
    assert (dry["count"], dry["looked_at"], dry["ran"], dry["pending"]) == (3, 5, 1, 1)
    assert stage.receiver.book.of(schedule) == []
    key = uuid.uuid4().hex
    real = asked(stage, schedule, "backfill", body, key=key).expect(202).body
    assert (real["count"], real["first"]["scheduled_for"]) == (3, text_of(past.fire(1)))
    assert asked(stage, schedule, "backfill", body, key=key).body == real
    assert _delayed(stage) > 0, "the others wait for their turn"
    ended(stage, schedule, real["last"]["ref"])
    arrivals = stage.receiver.wait_for(schedule, 3, seconds=30)
    assert [each.scheduled_for for each in arrivals] == [
        text_of(past.fire(number)) for number in (1, 3, 4)
    ]
    first, last = arrivals[0].arrived_at, arrivals[-1].arrived_at
    assert last - first >= timedelta(seconds=2 * 60 / CATCH_UPS_PER_MINUTE - 2)
    again = asked(stage, schedule, "backfill", body).expect(202).body
    assert (again["count"], again["ran"]) == (0, 4)


def _delayed(stage: Stage) -> int:
    """Count what the recovery lane holds back."""
    client = boto3.client(
        "sqs",
        endpoint_url=stage.outputs["endpoint"],
        region_name=stage.outputs["region"],
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 the emulator takes any
    )
    queue = client.get_queue_url(QueueName="puntual-local-recovery")["QueueUrl"]

    def held() -> int:
        answer = client.get_queue_attributes(
            QueueUrl=queue, AttributeNames=["ApproximateNumberOfMessagesDelayed"]
        )
        return int(answer["Attributes"]["ApproximateNumberOfMessagesDelayed"])

    return until(held, lambda count: count > 0, seconds=10)


def test_a_rule_of_two_runs_is_completed_after_them(stage: Stage) -> None:
    made = stage.create(expression="rate(1 minute)", max_runs=2)
    schedule = made["id"]
    assert made["ends_at"] == made["next_fires"][1]["utc"]
    assert len(made["next_fires"]) == 2
    shown = until(
        lambda: stage.api.schedule(stage.tenant, schedule),
        lambda shown: shown["state"] == "COMPLETED",
        seconds=180,
    )
    assert shown["state"] == "COMPLETED"
    assert len(stage.receiver.book.of(schedule)) == 2
    ref = asked(stage, schedule, "trigger").expect(202).body["ref"]
    ended(stage, schedule, ref)
    assert stage.api.schedule(stage.tenant, schedule)["state"] == "COMPLETED"
