"""A burst of one tenant beside a few runs of another, at one minute, on the deployed system.

The emulator's queues know no message groups' fairness, and its lanes have too few executors to be
shared: what this shows is that the planner and the relay let the others through.
"""

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from scripts.signed_api import SignedApi
from tests.e2e.conftest import Stage

NOISY = 240
OTHERS = 5
MINUTE = timedelta(minutes=1)
LAG_MAX = timedelta(seconds=60)
"""Of the others, which wait in one line with the burst: half a minute on a busy machine."""


def test_a_few_runs_start_soon_beside_a_burst_of_another_tenant(
    stage: Stage, api: SignedApi
) -> None:
    noisy = f"a-{uuid.uuid4().hex[:8]}"  # its name sorts before that of the other
    api.register(noisy)
    stage.receiver.book.trust(noisy, api.webhook_keys(noisy))
    fire = datetime.now(UTC).replace(second=0, microsecond=0) + 4 * MINUTE
    expression = f"at({fire:%Y-%m-%dT%H:%M:%S})"
    target = {"type": "webhook", "url": f"{stage.receiver.url}/ok"}

    def create(number: int) -> None:
        made = {"id": f"n-{noisy}-{number}", "expression": expression, "target": target}
        api.create(noisy, made | {"payload": {}})

    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(create, range(NOISY)))
    made = [stage.create(expression=expression) for _ in range(OTHERS)]
    assert datetime.now(UTC) < fire, "the burst was made too slowly to say anything"
    seconds = (fire + LAG_MAX - datetime.now(UTC)).total_seconds() + 30
    for each in made:
        (arrival,) = stage.receiver.wait_for(each["id"], 1, seconds=seconds)
        assert arrival.arrived_at - fire <= LAG_MAX
