"""A create that was cut off anywhere is repeated safely under its Idempotency-Key."""

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from urllib3.exceptions import HTTPError

from scripts.functions import kill_function
from scripts.signed_api import Answer
from scripts.waiting import until
from tests.e2e.conftest import Stage

CREATES = 12
IN_PROGRESS_SECONDS = 60.0
"""A killed create holds its key until its function's time is up."""


@pytest.mark.kills_api
def test_creates_whose_function_is_killed_make_one_schedule_each_when_repeated(
    stage: Stage,
) -> None:
    keys = [uuid.uuid4().hex for _ in range(CREATES)]
    path = f"v1/tenants/{stage.tenant}/schedules"
    body = {
        "expression": "rate(1 hour)",
        "target": {"type": "webhook", "url": f"{stage.receiver.url}/ok"},
    }

    def create(key: str) -> Answer:
        return stage.api.call("POST", path, body, headers={"Idempotency-Key": key})

    def cut_off(key: str) -> None:
        with suppress(HTTPError, ValueError):  # no answer, or none in JSON
            create(key)

    killed = 0
    with ThreadPoolExecutor(CREATES) as pool:
        creates = [pool.submit(cut_off, key) for key in keys]
        while not all(create.done() for create in creates):
            killed += kill_function(stage.outputs["functions"]["api"])
            time.sleep(0.1)
    assert killed

    def repeated(key: str) -> Answer:
        return until(
            lambda: create(key), lambda answer: answer.status == 201, seconds=IN_PROGRESS_SECONDS
        )

    with ThreadPoolExecutor(CREATES) as pool:
        first = list(pool.map(repeated, keys))
        again = list(pool.map(repeated, keys))
    assert {answer.status for answer in first} == {201}
    assert [answer.body for answer in first] == [answer.body for answer in again]
    listed = stage.api.call("GET", f"{path}?limit=100").expect(200).body["schedules"]
    assert sorted(schedule["id"] for schedule in listed) == sorted(
        answer.body["id"] for answer in first
    )
    usage = stage.api.call("GET", f"v1/tenants/{stage.tenant}").expect(200).body["usage"]
    assert usage["schedules"] == len(set(keys))
