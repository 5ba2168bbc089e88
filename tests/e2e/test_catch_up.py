"""Planners that are killed for minutes: what they missed is made up for, the oldest first."""

import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from scripts.functions import kill_function
from scripts.waiting import until
from tests.e2e.conftest import Stage

OUTAGE_SECONDS = 290.0
"""Two minutes of it were planned ahead, and the last fire may not be late when it ends."""

LATE_AFTER_SECONDS = 5
LATE_ONES = 2
CAUGHT_UP_SECONDS = 240.0


def late_runs(stage: Stage, schedule: str) -> list[dict[str, Any]]:
    """Give the runs that began late, by their scheduled times."""
    return [
        row
        for row in stage.api.occurrences(stage.tenant, schedule)
        if row.get("started_at") and began_after(row) > timedelta(seconds=LATE_AFTER_SECONDS)
    ]


def began_after(row: dict[str, Any]) -> timedelta:
    started, due = row["started_at"], row["scheduled_for"]
    return datetime.fromisoformat(started) - datetime.fromisoformat(due)


def test_the_dry_run_tells_what_each_policy_would_do(stage: Stage) -> None:
    misfire = {"policy": "catch_up", "misfire_after_seconds": 5, "limit": 3}
    made = stage.create(expression="* * * * *", misfire=misfire)
    assert made["misfire"]["policy"] == "catch_up"
    start = (datetime.now(UTC) + timedelta(hours=1)).replace(second=30, microsecond=0)
    end = start + timedelta(minutes=10)
    query = f"from={start:%Y-%m-%dT%H:%M:%SZ}&until={end:%Y-%m-%dT%H:%M:%SZ}"
    path = stage.path(made["id"], f"/catch-up-preview?{query}")
    told = stage.api.call("GET", path).expect(200).body
    assert (told["fires"], told["on_time"]) == (10, 0)
    runs = {policy: outcome["runs"] for policy, outcome in told["policies"].items()}
    assert runs == {"skip": 0, "fire_once": 1, "catch_up": 3}
    assert told["policies"]["catch_up"]["missed_ranges"][0]["reason"] == "limit"


@pytest.mark.disruptive
def test_what_killed_planners_missed_is_made_up_for_in_its_order(stage: Stage) -> None:
    misfire = {"policy": "catch_up", "misfire_after_seconds": LATE_AFTER_SECONDS}
    made = stage.create(expression="* * * * *", misfire=misfire)
    planner = stage.outputs["functions"]["planner"]
    ends, killed = time.monotonic() + OUTAGE_SECONDS, 0
    while time.monotonic() < ends:
        killed += kill_function(planner)
        time.sleep(0.05)
    assert killed
    late = until(
        lambda: late_runs(stage, made["id"]),
        lambda rows: len(rows) >= LATE_ONES,
        seconds=CAUGHT_UP_SECONDS,
    )
    assert len(late) >= LATE_ONES, late
    for elder, younger in pairwise(sorted(late, key=lambda row: str(row["scheduled_for"]))):
        assert elder["started_at"] <= younger["started_at"]
    rows = list(stage.api.occurrences(stage.tenant, made["id"]))
    assert not [row for row in rows if row["state"] == "MISSED"]
    fires = [row["scheduled_for"] for row in rows]
    first, last = (datetime.fromisoformat(fire) for fire in (fires[0], fires[-1]))
    assert len(fires) == (last - first) // timedelta(minutes=1) + 1, "none is left out"
