"""The time that a forecast of 100,000 schedules takes: `python -m bench.forecast`.

The whole way is measured but for the network and DynamoDB: the SDK signs its requests and reads the
answers from bytes as DynamoDB would send them. Seconds are of the processor, over all threads.
"""

import json
import random  # noqa: TID251 with a seed: the same schedules every time
import sys
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from puntual.adapters.dynamodb_schedules import DynamoDbSchedules
from puntual.application.codec import spread_text
from puntual.application.forecast_fires import SCHEDULES_READ_MAX, ForecastFires
from puntual.domain.expression import Rule
from puntual.domain.forecast import Forecast
from tests.builders import NINE, TENANT, a_rule, a_schedule, a_tenant, a_version
from tests.fakes.in_memory_tenants import InMemoryTenants
from tests.fakes.manual_clock import ManualClock

SCHEDULES = SCHEDULES_READ_MAX
SECONDS_MAX = 5.0
HOUR = 60
DAY = 24 * HOUR
EXPRESSIONS = 50
QUARTERS = 4
REGION = "us-east-1"


def shared(source: random.Random) -> Rule:
    """One of 50 expressions."""
    number = source.randrange(EXPRESSIONS)
    return a_rule(f"{number % 5} {number // 5} * * *", time_zone="Europe/Madrid")


def daily(source: random.Random) -> Rule:
    """A minute of the day, as H H makes it, and an end of its own, so that none is like another."""
    minute = source.randrange(DAY)
    end_at = NINE + timedelta(days=30, seconds=source.randrange(DAY * HOUR * 30))
    return Rule(
        expression=f"{minute % HOUR} {minute // HOUR} * * *",
        time_zone="Europe/Madrid",
        anchor=NINE,
        end_at=end_at,
    )


def quarterly(source: random.Random) -> Rule:
    """Four minutes of every hour: 96 fires a day, in as many ways as an hour has."""
    minutes = sorted(source.sample(range(HOUR), QUARTERS))
    return a_rule(f"{','.join(map(str, minutes))} * * * *", time_zone="America/New_York")


def paced(source: random.Random) -> Rule:
    """A fixed rate from an instant of its own."""
    anchor = NINE - timedelta(seconds=source.randrange(DAY * HOUR * 30))
    return Rule(expression="rate(15 minutes)", time_zone="UTC", anchor=anchor)


def once(source: random.Random) -> Rule:
    """One wall time of the coming day."""
    wall = NINE + timedelta(seconds=source.randrange(DAY * HOUR))
    return a_rule(f"at({wall:%Y-%m-%dT%H:%M:%S})")


KINDS = {
    "50 expressions": shared,
    "a minute of the day each": daily,
    "96 fires a day each": quarterly,
    "a rate from its own anchor": paced,
    "a one-off of the coming day": once,
}


class _Body:
    """What the SDK reads an answer's bytes from."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self) -> Iterator[bytes]:
        yield self._content


class CannedIndex:
    """Answers queries of the index with bytes."""

    def __init__(self, rows: list[str]) -> None:
        self.rows = rows
        self.items = [json.dumps({"spread": {"S": row}}) for row in rows]

    def answer(self, request: Any, **_: Any) -> Any:
        asked = json.loads(request.body)
        values = asked["ExpressionAttributeValues"]
        after = asked.get("ExclusiveStartKey", {}).get("spread", {}).get("S", "")
        first = max(bisect_left(self.rows, values[":first"]["S"]), bisect_right(self.rows, after))
        end = bisect_right(self.rows, values[":last"]["S"])
        cut = min(end, first + asked["Limit"])
        last = {}
        if cut < end:
            last = {
                "tenant": {"S": TENANT},
                "tenant_schedule": {"S": f"{TENANT}#any"},
                "spread": {"S": self.rows[cut - 1]},
            }
        rest = f', "LastEvaluatedKey": {json.dumps(last)}' if last else ""
        content = f'{{"Items": [{", ".join(self.items[first:cut])}]{rest}}}'
        return AWSResponse(request.url, HTTPStatus.OK, HTTPHeaders(), _Body(content.encode()))


def forecast_seconds(kind: str) -> tuple[Forecast, float]:
    source = random.Random(kind)  # noqa: S311 nothing here is secret
    rule_of = KINDS[kind]
    rows = sorted(
        spread_text(a_schedule(a_version(schedule=f"job-{number}", rule=rule_of(source))))
        for number in range(SCHEDULES)
    )
    client = boto3.client("dynamodb", region_name=REGION)
    client.meta.events.register("before-send.dynamodb.Query", CannedIndex(rows).answer)
    tenants = InMemoryTenants()
    tenants.register(a_tenant())
    forecast_fires = ForecastFires(
        schedules=DynamoDbSchedules(
            client=client,
            schedules_table="schedules",
            versions_table="schedule_versions",
            agenda_table="agenda",
            tenants_table="tenants",
        ),
        tenants=tenants,
        # It stands still, so that a slow machine reads all of them too.
        clock=ManualClock(NINE),
    )
    start = time.process_time()
    forecast = forecast_fires(TENANT)
    return forecast, time.process_time() - start


def main() -> int:
    sys.stdout.write(f"{'forecast of 100,000 schedules':<30} {'seconds':>8} {'fires':>12}\n")
    slowest = 0.0
    for kind in KINDS:
        forecast, seconds = forecast_seconds(kind)
        assert forecast.schedules == SCHEDULES
        sys.stdout.write(f"{kind:<30} {seconds:>8.2f} {forecast.fires:>12}\n")
        slowest = max(slowest, seconds)
    sys.stdout.write(f"budget: {SECONDS_MAX} seconds\n")
    return 0 if slowest <= SECONDS_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
