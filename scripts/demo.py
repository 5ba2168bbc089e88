"""The demo: schedules made through the API of the local system, and seen to fire.

It ends with 0 only if every expected occurrence was taken by its receiver exactly once, under its
own `Idempotency-Key` and with a valid signature. `--schedules N` makes N schedules of twenty
tenants due in the same minute, three in a hundred first answers an error, and a planner killed on
the way.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from scripts.emulator import Endpoint
from scripts.functions import kill_function
from scripts.local import OUTPUTS, client
from scripts.receiver import Receiver, receiving
from scripts.signed_api import SignedApi

TENANTS = ("acme", "globex")
CROWD_TENANTS = 20
CROWD_WRITERS = 8
CROWD_AHEAD = timedelta(seconds=135)
CROWD_PER_SECOND_MIN = 15
PLANNED_AHEAD = timedelta(seconds=120)
KILL_SURE_FROM = 500
"""Schedules from which a planner's pass is long enough to be met."""

FAILING_PERCENT = 3
SECONDS_MAX = 175
POLL_SECONDS = 0.5
GRACE = timedelta(seconds=60)
"""What is expected has at least this long to become true once it is due."""

console = Console()


@dataclass(slots=True, kw_only=True)
class Expected:
    """One schedule, the scheduled times that it should fire at, and how they should end."""

    tenant: str
    name: str
    schedule: str
    fires: tuple[str, ...]
    state: str = "SUCCEEDED"
    attempts: int = 1
    queue_url: str = ""
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def is_settled(self) -> bool:
        return all(self.rows.get(fire, {}).get("state") == self.state for fire in self.fires)


def main() -> int:
    parser = argparse.ArgumentParser(description="See schedules fire on the local system.")
    parser.add_argument("--schedules", type=int, default=0, metavar="N")
    count: int = parser.parse_args().schedules
    if count < 0:
        parser.error(f"--schedules: {count} is not allowed; allowed: 0 or more")
    outputs = json.loads(OUTPUTS.read_text())
    api = SignedApi(outputs["api_url"], region=outputs["region"])
    with receiving() as receiver:
        if count:
            return crowd(api, receiver, outputs, count)
        return tour(api, receiver, outputs)


# -- the tour: one schedule of each kind ---------------------------------------------------------


def tour(api: SignedApi, receiver: Receiver, outputs: Mapping[str, Any]) -> int:
    stamp = f"{datetime.now(UTC):%H%M%S}"
    queue_url, queue_arn = a_target_queue(outputs)
    for tenant in TENANTS:
        api.register(tenant, targets=[queue_arn])
        receiver.book.trust(tenant, api.webhook_keys(tenant))
    expected = create_tour(api, receiver, stamp, queue_url, queue_arn)
    until = time.monotonic() + SECONDS_MAX
    with Live(console=console, refresh_per_second=4) as live:
        while True:
            for each in expected:
                refresh(api, each)
            live.update(table_of(expected))
            if all(each.is_settled for each in expected) or time.monotonic() > until:
                break
            time.sleep(POLL_SECONDS)
    for each in expected:
        api.call("DELETE", SignedApi.path(each.tenant, each.schedule))
    return verdict(faults_of(expected, receiver, outputs))


def create_tour(
    api: SignedApi, receiver: Receiver, stamp: str, queue_url: str, queue_arn: str
) -> list[Expected]:
    """Create one schedule of each kind; gives what they should do."""
    ok = {"type": "webhook", "url": f"{receiver.url}/ok"}
    flaky = {"type": "webhook", "url": f"{receiver.url}/fails-once"}
    queue = {"type": "sqs", "queue_arn": queue_arn}
    quick = {"max_attempts": 3, "base_seconds": 1, "cap_seconds": 2}
    tokyo = datetime.now(ZoneInfo("Asia/Tokyo")) + timedelta(minutes=1, seconds=10)
    acme, globex = TENANTS

    def make(tenant: str, name: str, count: int = 1, **definition: object) -> Expected:
        body = {"id": f"{name}-{stamp}", "payload": {"demo": name}, **definition}
        made = api.create(tenant, body)
        fires = tuple(fire["utc"] for fire in made["next_fires"][:count])
        return Expected(tenant=tenant, name=name, schedule=made["id"], fires=fires)

    expected = [
        make(acme, "in-5-s", expression=at_in(5), target=ok),
        make(acme, "minutely", 2, expression="* * * * *", target=ok),
        make(
            globex,
            "tokyo",
            expression=f"cron({tokyo.minute} {tokyo.hour} * * ? *)",
            time_zone="Asia/Tokyo",
            target=ok,
        ),
        make(globex, "rate", expression="rate(1 minute)", target=ok),
        make(globex, "retried", expression=at_in(8), target=flaky, retry=quick),
        make(acme, "to-a-queue", expression=at_in(6), target=queue),
        make(globex, "canceled", expression=at_in(20), target=ok),
    ]
    expected[4].attempts = 2
    expected[5].queue_url = queue_url
    expected[6].state, expected[6].attempts = "CANCELED", 0
    api.call("DELETE", SignedApi.path(globex, expected[6].schedule)).expect(200)
    return expected


def at_in(seconds: float) -> str:
    return f"at({datetime.now(UTC) + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S})"


def a_target_queue(outputs: Mapping[str, Any]) -> tuple[str, str]:
    """Give URL and ARN of the demo's own target queue, emptied."""
    sqs = client("sqs", Endpoint(url=outputs["endpoint"], ours=True))
    url = sqs.create_queue(QueueName="puntual-target-demo")["QueueUrl"]
    sqs.purge_queue(QueueUrl=url)
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return url, found["Attributes"]["QueueArn"]


def refresh(api: SignedApi, expected: Expected) -> None:
    if expected.is_settled:
        return
    for row in api.occurrences(expected.tenant, expected.schedule):
        if "scheduled_for" in row:
            expected.rows[row["scheduled_for"]] = row


def table_of(expected: Iterable[Expected]) -> Table:
    title = "Occurrences (UTC); lag: from due to visible in the queue"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
    for column in ("schedule", "due", "enqueued", "started", "finished"):
        table.add_column(column, no_wrap=True)
    for column in ("lag s", "try", "result"):
        table.add_column(column, justify="right", no_wrap=True)
    for each in expected:
        for fire in each.fires:
            table.add_row(*cells_of(each, fire, each.rows.get(fire, {})))
    return table


def cells_of(expected: Expected, fire: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    lag = row.get("lag_seconds")
    return (
        expected.name,
        fire[11:19],
        clock_of(row.get("enqueued_at")),
        clock_of(row.get("started_at")),
        clock_of(row.get("finished_at")),
        "" if lag is None else f"{lag:.2f}",
        str(row.get("attempt", "")),
        row.get("state", "…"),
    )


def clock_of(instant: str | None) -> str:
    return instant[11:21] if instant else ""


def faults_of(
    expected: Iterable[Expected], receiver: Receiver, outputs: Mapping[str, Any]
) -> list[str]:
    """Compare what was to happen with the ledger and with what arrived."""
    faults: list[str] = []
    for each in expected:
        for fire in each.fires:
            state = each.rows.get(fire, {}).get("state", "nowhere")
            if state != each.state:
                faults.append(f"{each.schedule} at {fire} is {state}, not {each.state}")
        if each.queue_url:
            faults += queue_faults_of(each, outputs)
        else:
            faults += receiver_faults_of(each, receiver)
    return faults


def receiver_faults_of(expected: Expected, receiver: Receiver) -> list[str]:
    """Every expected fire must have been taken once, under one key, after so many attempts."""
    arrivals = receiver.book.of(expected.schedule)
    faults: list[str] = []
    for fire in expected.fires:
        of_fire = [arrival for arrival in arrivals if arrival.scheduled_for == fire]
        taken = [arrival for arrival in of_fire if arrival.status == HTTPStatus.OK]
        wanted = 1 if expected.state == "SUCCEEDED" else 0
        if len(taken) != wanted or len(of_fire) != expected.attempts:
            faults.append(
                f"{expected.schedule} at {fire}: taken {len(taken)} times in {len(of_fire)} tries,"
                f" not {wanted} in {expected.attempts}"
            )
        if not all(arrival.is_signed for arrival in of_fire):
            faults.append(f"{expected.schedule} at {fire}: a request was not signed")
        keys = {arrival.key for arrival in of_fire}
        if of_fire and (len(keys) != 1 or "" in keys):
            faults.append(f"{expected.schedule} at {fire}: Idempotency-Key was {sorted(keys)}")
    return faults


def queue_faults_of(expected: Expected, outputs: Mapping[str, Any]) -> list[str]:
    sqs = client("sqs", Endpoint(url=outputs["endpoint"], ours=True))
    got = sqs.receive_message(
        QueueUrl=expected.queue_url,
        MaxNumberOfMessages=10,
        MessageAttributeNames=["All"],
        WaitTimeSeconds=1,
    ).get("Messages", [])
    keys = [message["MessageAttributes"]["Idempotency-Key"]["StringValue"] for message in got]
    if len(keys) == len(expected.fires) and len(set(keys)) == len(keys):
        return []
    return [f"{expected.schedule}: the queue holds {len(keys)} messages, not {len(expected.fires)}"]


def verdict(faults: list[str]) -> int:
    console.print()
    for fault in faults:
        console.print(f"[red]✗[/red] {fault}", highlight=False)
    if not faults:
        console.print("[green]✓[/green] every expected occurrence arrived exactly once")
    console.print("The local system runs on: `make up` says what to try, `make down` stops it.")
    return 1 if faults else 0


# -- the crowd: many schedules due in the same minute --------------------------------------------


def crowd(api: SignedApi, receiver: Receiver, outputs: Mapping[str, Any], count: int) -> int:
    due = minute_after(datetime.now(UTC) + CROWD_AHEAD)
    tenants = [f"crowd-{number:02d}" for number in range(min(count, CROWD_TENANTS))]
    for tenant in tenants:
        api.register(tenant)
    stamp = f"{datetime.now(UTC):%H%M%S}"
    target = {"type": "webhook", "url": f"{receiver.url}/sometimes/{FAILING_PERCENT}"}
    body = {
        "expression": f"at({due:%Y-%m-%dT%H:%M:%S})",
        "target": target,
        "retry": {"max_attempts": 5, "base_seconds": 1, "cap_seconds": 4},
    }

    def make(number: int) -> None:
        api.create(tenants[number % len(tenants)], {"id": f"c{stamp}-{number:05d}", **body})

    with crowd_progress() as progress:
        created = progress.add_task("created", total=count)
        with ThreadPoolExecutor(CROWD_WRITERS) as pool:
            for future in as_completed([pool.submit(make, number) for number in range(count)]):
                future.result()
                progress.advance(created)
        is_killed = watch_crowd(progress, receiver, outputs, due=due, count=count)
    report_lag(receiver, due)
    faults = crowd_faults(api, receiver, tenants, stamp, count)
    if count >= KILL_SURE_FROM and not is_killed:
        faults.append("no planner was caught in the middle of a pass, so none was killed")
    return verdict(faults)


def minute_after(instant: datetime) -> datetime:
    return instant.replace(second=0, microsecond=0) + timedelta(minutes=1)


def crowd_progress() -> Progress:
    columns = (TextColumn("{task.description:>12}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), console=console)


def watch_crowd(
    progress: Progress,
    receiver: Receiver,
    outputs: Mapping[str, Any],
    *,
    due: datetime,
    count: int,
) -> bool:
    """Show them arriving, and kill the planners once in the middle of a pass; tells if it did."""
    delivered = progress.add_task(f"due {due:%H:%M:%S}", total=count)
    is_killed = False
    until = due + GRACE + timedelta(seconds=count / CROWD_PER_SECOND_MIN)
    while datetime.now(UTC) < until:
        if not is_killed and datetime.now(UTC) > due - PLANNED_AHEAD and is_in_a_pass(outputs):
            is_killed = kill_function(outputs["functions"]["planner"]) > 0
            if is_killed:
                console.print("killed the planners in the middle of a pass")
        completed = len(taken_keys(receiver))
        progress.update(delivered, completed=completed)
        if completed >= count:
            break
        time.sleep(POLL_SECONDS / 5)
    return is_killed


def taken_keys(receiver: Receiver) -> set[str]:
    return {each.key for each in receiver.book.all() if each.status == HTTPStatus.OK}


def is_in_a_pass(outputs: Mapping[str, Any]) -> bool:
    """Tell whether a planner holds a shard."""
    dynamodb = client("dynamodb", Endpoint(url=outputs["endpoint"], ours=True))
    shards = dynamodb.scan(TableName=outputs["tables"]["shards"], ConsistentRead=True)["Items"]
    return any("lease_owner" in shard for shard in shards)


def report_lag(receiver: Receiver, due: datetime) -> None:
    lags = sorted(
        (each.arrived_at - due).total_seconds() for each in receiver.book.all() if each.attempt == 1
    )
    if lags:
        p50, p99 = lags[len(lags) // 2], lags[min(len(lags) - 1, len(lags) * 99 // 100)]
        console.print(
            f"first attempts reached the receiver after {p50:.1f} s (p50), {p99:.1f} s (p99), "
            f"{lags[-1]:.1f} s (last); an emulator on one machine, no figure of the service"
        )
    failed = sum(each.status != HTTPStatus.OK for each in receiver.book.all())
    console.print(f"{failed} attempts were answered with an error and tried again")


def crowd_faults(
    api: SignedApi, receiver: Receiver, tenants: list[str], stamp: str, count: int
) -> list[str]:
    """Every schedule must have been taken once, under one key, and its run SUCCEEDED."""
    keys: dict[str, set[str]] = {}
    taken: Counter[str] = Counter()
    for arrival in receiver.book.all():
        keys.setdefault(arrival.schedule, set()).add(arrival.key)
        taken[arrival.schedule] += arrival.status == HTTPStatus.OK
    faults: list[str] = []
    for number in range(count):
        schedule = f"c{stamp}-{number:05d}"
        if taken[schedule] != 1:
            faults.append(f"{schedule} was taken {taken[schedule]} times, not once")
        if len(keys.get(schedule, ())) > 1:
            faults.append(f"{schedule} came under {len(keys[schedule])} keys")

    def fault_in_ledger(number: int) -> str | None:
        schedule = f"c{stamp}-{number:05d}"
        rows = list(api.occurrences(tenants[number % len(tenants)], schedule))
        states = [row["state"] for row in rows]
        return None if states == ["SUCCEEDED"] else f"{schedule} is {states} in the ledger"

    with ThreadPoolExecutor(CROWD_WRITERS) as pool:
        faults += [fault for fault in pool.map(fault_in_ledger, range(count)) if fault]
    return faults


if __name__ == "__main__":
    raise SystemExit(main())
