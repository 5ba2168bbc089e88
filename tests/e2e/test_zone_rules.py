"""New zone data, as an operator meets them: a measure, a command, and schedules that follow."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any

import pytest

from puntual.adapters.dynamodb_zone_releases import DynamoDbZoneReleases
from puntual.domain.instant import truncated_to_millisecond
from puntual.domain.zone_releases import FORMER_PLANNERS_GONE_AFTER, ReleasesInUse
from scripts.emulator import ROOT, Endpoint
from scripts.local import client
from scripts.waiting import until
from tests.e2e.conftest import Stage
from tests.zone_data import NO_WINTER_TIME, rules_with

TICK_SECONDS = 150.0
"""A tick comes once a minute, and now and then one is left out."""

FORMER, DEPLOYED = "2026.0", version("tzdata")
RULES = rules_with({"Europe/Berlin": NO_WINTER_TIME}, release=FORMER)


def now() -> datetime:
    return truncated_to_millisecond(datetime.now(UTC))


def endpoint_of(outputs: dict[str, Any]) -> Endpoint:
    return Endpoint(url=outputs["endpoint"], ours=False)


@pytest.fixture
def releases(outputs: dict[str, Any]) -> Iterator[DynamoDbZoneReleases]:
    dynamodb = client("dynamodb", endpoint_of(outputs))
    table = outputs["tables"]["zone_releases"]
    yield (found := DynamoDbZoneReleases(client=dynamodb, table=table))
    found.swap(ReleasesInUse(current=DEPLOYED, since=now()), seen=found.in_use())


def last_measured(outputs: dict[str, Any], since: float) -> float | None:
    """Give the newest ZoneRulesBehind in the ticker's log, if there is one from then on."""
    events = client("logs", endpoint_of(outputs)).filter_log_events(
        logGroupName=f"/aws/lambda/{outputs['functions']['ticker']}",
        startTime=int(since * 1000),
    )["events"]
    lines = [event["message"] for event in events if "ZoneRulesBehind" in event["message"]]
    return json.loads(lines[-1])["ZoneRulesBehind"][0] if lines else None


def wait_for_measure(outputs: dict[str, Any], value: float) -> None:
    since = time.time()
    seen = until(
        lambda: last_measured(outputs, since), lambda seen: seen == value, seconds=TICK_SECONDS
    )
    assert seen == value


def replan(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scripts.replan", "local", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - our own argv


def told_of(stage: Stage, run: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in run.stdout.splitlines() if line.startswith(f"{stage.tenant}/")]


def test_new_zone_data_are_measured_and_a_command_makes_schedules_follow_them(
    stage: Stage, releases: DynamoDbZoneReleases
) -> None:
    berlin, madrid = (
        stage.create(expression="0 9 * * *", time_zone=zone)
        for zone in ("Europe/Berlin", "Europe/Madrid")
    )
    releases.keep(RULES)
    former = ReleasesInUse(current=FORMER, since=now() - timedelta(days=90))
    assert releases.swap(former, seen=releases.in_use())
    wait_for_measure(stage.outputs, 1.0)

    dry = replan("--dry-run")
    assert (dry.returncode, dry.stderr) == (0, "")
    assert f"{stage.tenant}/{berlin['id']} version 2:" in dry.stdout
    assert madrid["id"] not in dry.stdout
    assert stage.api.schedule(stage.tenant, berlin["id"])["version"] == 1

    early = replan()
    assert early.returncode == 1
    assert "planners of the former release may be at work until" in early.stderr

    noted = releases.in_use()
    assert noted is not None
    assert noted.former == {FORMER}
    assert releases.swap(replace(noted, since=now() - FORMER_PLANNERS_GONE_AFTER), seen=noted)
    done = replan()
    assert (done.returncode, done.stderr) == (0, "")
    assert told_of(stage, done) == told_of(stage, dry) != []

    follows = stage.api.schedule(stage.tenant, berlin["id"])
    assert (follows["version"], follows["author"]) == (2, f"tzdata {DEPLOYED}")
    assert follows["next_fires"] == berlin["next_fires"]
    assert stage.api.schedule(stage.tenant, madrid["id"])["version"] == 1
    settled = releases.in_use()
    assert settled is not None
    assert (settled.current, settled.former) == (DEPLOYED, frozenset())
    again = replan()
    assert (again.returncode, told_of(stage, again)) == (0, [])
    wait_for_measure(stage.outputs, 0.0)


def test_an_alias_is_kept_as_it_is_spelt_and_resolved_beside_it(stage: Stage) -> None:
    made = stage.create(expression="0 9 * * *", time_zone="US/Eastern")
    assert (made["time_zone"], made["canonical_time_zone"]) == ("US/Eastern", "America/New_York")
    shown = stage.api.schedule(stage.tenant, made["id"])
    assert shown["time_zone"] == "US/Eastern"
    refused = stage.api.call(
        "POST",
        f"v1/tenants/{stage.tenant}/schedules",
        {"expression": "0 9 * * *", "time_zone": "us/eastern", "target": made["target"]},
    ).expect(400)
    assert refused.body["errors"][0]["allowed"].endswith("which is US/Eastern")
