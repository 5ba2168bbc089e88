"""A burst of one tenant beside a few runs of another, at one minute, on the deployed system.

The emulator's queues know no message groups' fairness, and its lanes have too few executors to be
shared: what this shows is that the planner and the relay let the others through.
"""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count, islice

from puntual.domain.agenda import shard_of
from puntual.domain.fairness import QUANTUM
from puntual.domain.schedule import ScheduleKey
from puntual.domain.tenant import ScheduleId, TenantId
from scripts.signed_api import SignedApi
from tests.e2e.conftest import Stage

SHARDS = 4
NOISY = QUANTUM + 10
"""More of one shard than a turn has, and few enough not to hold up the tests beside this one."""

OTHERS = 5
MINUTE = timedelta(minutes=1)
LAG_MAX = timedelta(seconds=60)
"""Of the others, which wait in one line with the burst: half a minute on a busy machine."""


def of_one_shard(tenant: str, prefix: str) -> Iterator[str]:
    """Give ids of schedules that all lie in the first shard."""
    ids = (f"{prefix}-{uuid.uuid4().hex[:6]}-{number}" for number in count())
    for each in ids:
        key = ScheduleKey(tenant=TenantId(tenant), schedule=ScheduleId(each))
        if shard_of(key, SHARDS) == 0:
            yield each


def test_a_few_runs_start_soon_beside_a_burst_of_another_tenant(
    stage: Stage, api: SignedApi
) -> None:
    noisy = f"a-{uuid.uuid4().hex[:8]}"  # its name sorts before that of the other
    api.register(noisy)
    stage.receiver.book.trust(noisy, api.webhook_keys(noisy))
    fire = datetime.now(UTC).replace(second=0, microsecond=0) + 3 * MINUTE
    expression = f"at({fire:%Y-%m-%dT%H:%M:%S})"
    target = {"type": "webhook", "url": f"{stage.receiver.url}/ok"}

    def create(schedule: str) -> None:
        made = {"id": schedule, "expression": expression, "target": target}
        api.create(noisy, made | {"payload": {}})

    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(create, islice(of_one_shard(noisy, "noisy"), NOISY)))
    made = [
        stage.create(expression=expression, id=schedule)
        for schedule in islice(of_one_shard(stage.tenant, "other"), OTHERS)
    ]
    assert datetime.now(UTC) < fire, "the burst was made too slowly to say anything"
    seconds = (fire + LAG_MAX - datetime.now(UTC)).total_seconds() + 30
    for each in made:
        (arrival,) = stage.receiver.wait_for(each["id"], 1, seconds=seconds)
        assert arrival.arrived_at - fire <= LAG_MAX
