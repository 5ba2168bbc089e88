"""What a run that is asked for costs, counted on the real adapters: `python -m bench.requests`."""

import sys
from collections.abc import Iterator
from datetime import timedelta

from bench.costs import FIRE, Bench, bench
from bench.meter import Bill
from puntual.adapters.dynamodb_requests import DynamoDbRequests
from puntual.application.announced import Announced
from puntual.application.plan_cursors import PlanCursors
from puntual.application.send_request import SendRequest
from puntual.application.settle_message import VersionCache
from puntual.domain.backfill import BACKFILL_MAX
from puntual.domain.message import message_of
from puntual.domain.occurrence import Kind
from puntual.domain.request import Request
from puntual.domain.run import RETENTION_MIN
from puntual.domain.run_request import OwnedFire, RunRequest, Survey
from tests.builders import HORIZON, a_request, a_version

KEYED = Request(key="k-1", body="what was asked for")


def sender(world: Bench) -> SendRequest:
    plan_cursors = PlanCursors(
        schedules=world.schedules,
        agenda=world.agenda,
        outbox=world.outbox,
        ledger=world.ledger,
        clock=world.clock,
    )
    return SendRequest(
        schedules=world.schedules,
        requests=DynamoDbRequests(
            client=world.dynamodb, table="occurrences", retention=RETENTION_MIN
        ),
        outbox=world.outbox,
        ledger=world.ledger,
        announced=Announced(
            shards=world.shards,
            plan_cursors=plan_cursors,
            clock=world.clock,
            shard_count=1,
            horizon=HORIZON,
        ),
        clock=world.clock,
        ids=world.ids,
    )


def sending(request: RunRequest, *, keyed: bool) -> Bill:
    """Give the bill of sending what was asked for and of relaying its pages."""
    with bench() as world:
        send = sender(world)

        def asked() -> None:
            send(request, KEYED if keyed else None)
            for page in world.pages():
                world.relay_page(page)

        return world.meter.of(asked)


def executing(request: RunRequest) -> Bill:
    """Give the bill of executing what was asked for, each delivered at its first try."""
    version = a_version()
    cache = VersionCache()
    cache.put(version)
    with bench() as world:
        world.stores_heads([version])
        sender(world)(request, None)
        world.clock.advance_to(FIRE)
        execute = world.execute_occurrence(cache)
        messages = [message_of(planned, now=FIRE) for planned in request.planned]
        return world.meter.of(lambda: [execute(message) for message in messages])


def triggered() -> RunRequest:
    return a_request(fingerprint=KEYED.fingerprint)


def backfilled() -> RunRequest:
    """Give a full backfill of a schedule that fires each minute."""
    fires = [OwnedFire(1, FIRE - timedelta(minutes=number)) for number in range(BACKFILL_MAX)]
    return a_request(
        *reversed(fires),
        kind=Kind.BACKFILL,
        fingerprint=KEYED.fingerprint,
        survey=Survey(looked_at=BACKFILL_MAX, ran=0, pending=0, rest_from=None),
    )


def lines() -> Iterator[str]:
    yield f"{'write units per occurrence':<40} {'ask, relay':>10} {'execute':>8}"
    one = executing(triggered()).write_units
    for name, keyed in (("triggered", False), ("triggered under a key", True)):
        yield f"{name:<40} {sending(triggered(), keyed=keyed).write_units:>10.3f} {one:>8.3f}"
    units = sending(backfilled(), keyed=True).write_units / BACKFILL_MAX
    yield f"{'one of a backfill of a thousand':<40} {units:>10.3f} {one:>8.3f}"


def main() -> None:
    for line in lines():
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
