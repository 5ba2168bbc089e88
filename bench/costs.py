"""What an occurrence costs on its way, counted on the real adapters: `python -m bench.costs`.

The real planner, relay and executor work on moto's tables and queues; the meter counts calls and
units. Nothing here depends on the machine or on time. Tables, builders and fakes are the tests'
own, so that both mean the same by a schedule.
"""

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import batched, count
from typing import Any

import boto3
from moto import mock_aws

from bench.meter import Bill, Meter
from puntual.adapters.dynamodb_agenda import DynamoDbAgenda
from puntual.adapters.dynamodb_breakers import DynamoDbBreakers
from puntual.adapters.dynamodb_budgets import DynamoDbBudgets
from puntual.adapters.dynamodb_ledger import DynamoDbLedger
from puntual.adapters.dynamodb_outbox import DynamoDbOutbox
from puntual.adapters.dynamodb_schedules import DynamoDbSchedules, HeadRow
from puntual.adapters.dynamodb_shards import DynamoDbShards
from puntual.adapters.dynamodb_shares import DynamoDbShares
from puntual.adapters.dynamodb_tenants import DynamoDbTenants
from puntual.adapters.sqs_lanes import SqsLanes
from puntual.application.admit_attempt import AdmitAttempt
from puntual.application.catch_up_tokens import CatchUpTokens
from puntual.application.draw_tokens import DrawTokens
from puntual.application.execute_occurrence import ExecuteOccurrence
from puntual.application.known_tenants import KnownTenants
from puntual.application.plan_cursors import PlanCursors
from puntual.application.plan_recoveries import PlanRecoveries
from puntual.application.plan_shard import PlanShard
from puntual.application.relay_page import RelayPage
from puntual.application.settle_message import SettleMessage, VersionCache
from puntual.application.take_callback import TakeCallback
from puntual.aws import bound
from puntual.domain.callback_token import Ticket
from puntual.domain.lane import Lane
from puntual.domain.message import Message
from puntual.domain.page import Page
from puntual.domain.policies import Completion, CompletionPolicy, Overlap, Policies
from puntual.domain.run import RETENTION_MIN
from puntual.domain.schedule import ScheduleVersion
from puntual.domain.shard import CLOSE_AFTER
from puntual.domain.target import Accepted
from puntual.domain.tenant import Quotas, Tenant
from tests.builders import (
    HORIZON,
    NINE,
    TENANT,
    a_cursor,
    a_message,
    a_rule,
    a_schedule,
    a_shard,
    a_version,
    an_occurrence,
)
from tests.contract.tables import KEYS, make_tables
from tests.fakes.counting_ids import CountingIds
from tests.fakes.fixed_root_secret import FixedRootSecret
from tests.fakes.in_memory_budgets import InMemoryBudgets
from tests.fakes.in_memory_tenants import InMemoryTenants
from tests.fakes.manual_clock import ManualClock
from tests.fakes.scripted_targets import ScriptedTargets
from tests.fakes.seeded_chance import FixedChance
from tests.gates import GatePorts, failing_by, gates_of

SCHEDULES = 1_000
EXECUTED = 50
TENANTS = 40
HOURS_A_DAY = 24
MINUTES_OF_HOUR = 60
SHARD = 0
REGION = "us-east-1"
FIRE = NINE + timedelta(minutes=9)
"""Within the horizon of a pass at nine, and the only fire of each schedule in it."""

LIMITED = {
    "with 100 fires a second": Quotas(fires_per_minute_max=6_000),
    "with room to run": Quotas(running_max=1_000),
    "one at a time": Quotas(running_max=1),
}

DOLLARS_PER_WRITE_UNIT = 0.625e-6
DOLLARS_PER_READ_UNIT = 0.125e-6
DOLLARS_PER_SQS_REQUEST = 0.40e-6
"""List prices on demand, us-east-1."""

PLANNING_WRITE_UNITS_MAX = 2.5
EXECUTION_WRITE_UNITS_MAX = 2.0
CALLS_MAX = 0.3
"""Budgets per occurrence: planning's and execution's write units, and calls of plan and relay."""


@dataclass(slots=True, kw_only=True)
class Bench:
    """The use cases on metered adapters, at nine o'clock."""

    meter: Meter
    dynamodb: Any
    schedules: DynamoDbSchedules
    agenda: DynamoDbAgenda
    outbox: DynamoDbOutbox
    ledger: DynamoDbLedger
    shards: DynamoDbShards
    lanes: SqsLanes
    clock: ManualClock = field(default_factory=lambda: ManualClock(NINE))
    ids: CountingIds = field(default_factory=CountingIds)

    @property
    def relay_page(self) -> RelayPage:
        return RelayPage(outbox=self.outbox, lanes=self.lanes, clock=self.clock)

    @property
    def plan_shard(self) -> PlanShard:
        plan_cursors = PlanCursors(
            schedules=self.schedules,
            agenda=self.agenda,
            outbox=self.outbox,
            ledger=self.ledger,
            clock=self.clock,
        )
        return PlanShard(
            shards=self.shards,
            agenda=self.agenda,
            outbox=self.outbox,
            plan_cursors=plan_cursors,
            plan_recoveries=PlanRecoveries(
                plan_cursors=plan_cursors,
                tokens=self.catch_up,
                clock=self.clock,
            ),
            relay_page=self.relay_page,
            clock=self.clock,
            ids=self.ids,
            horizon=HORIZON,
            weight_of=lambda _: 1,
        )

    @property
    def catch_up(self) -> CatchUpTokens:
        """Nothing is late here, so nobody draws on it."""
        draw = DrawTokens(budgets=InMemoryBudgets(), clock=self.clock, ids=self.ids)
        return CatchUpTokens(
            known=KnownTenants(tenants=InMemoryTenants(), clock=self.clock),
            draw=draw,
            clock=self.clock,
        )

    def settle_message(self, versions: VersionCache) -> SettleMessage:
        return SettleMessage(
            schedules=self.schedules,
            ledger=self.ledger,
            lanes=self.lanes,
            clock=self.clock,
            ids=self.ids,
            catch_up=self.catch_up,
            versions=versions,
        )

    def execute_occurrence(
        self, versions: VersionCache, targets: ScriptedTargets | None = None
    ) -> ExecuteOccurrence:
        gates = self.gates
        return ExecuteOccurrence(
            settle_message=self.settle_message(versions),
            targets=targets or ScriptedTargets(),
            fail_attempt=failing_by(gates),
            admit=gates,
        )

    def take_callback(self, versions: VersionCache) -> TakeCallback:
        gates = self.gates
        return TakeCallback(
            root_secret=FixedRootSecret(),
            settle_message=self.settle_message(versions),
            fail_attempt=failing_by(gates),
            rooms=gates.rooms,
        )

    @property
    def gates(self) -> AdmitAttempt:
        return gates_of(
            GatePorts(
                tenants=DynamoDbTenants(table="tenants"),
                budgets=DynamoDbBudgets(client=self.dynamodb, table="tenants"),
                shares=DynamoDbShares(client=self.dynamodb, table="tenants"),
                breakers=DynamoDbBreakers(client=self.dynamodb, table="tenants"),
            ),
            clock=self.clock,
            ids=self.ids,
            chance=FixedChance(),
        )

    def stores_heads(self, versions: list[ScheduleVersion]) -> None:
        """Put heads as a create would, without a transaction for each."""
        row = bound(HeadRow, "schedules")
        items = [row.of(a_schedule(version)).serialize() for version in versions]
        for batch in batched(items, 25, strict=False):
            writes = [{"PutRequest": {"Item": item}} for item in batch]
            self.dynamodb.batch_write_item(RequestItems={"schedules": writes})

    def pages(self) -> tuple[Page, ...]:
        limit = SCHEDULES
        return self.outbox.left(SHARD, written_before=NINE + timedelta(days=1), limit=limit)


@contextmanager
def bench() -> Iterator[Bench]:
    with mock_aws():
        dynamodb = boto3.client("dynamodb", region_name=REGION)
        sqs = boto3.client("sqs", region_name=REGION)
        make_tables(dynamodb)
        urls = {lane: sqs.create_queue(QueueName=lane)["QueueUrl"] for lane in Lane}
        keys = {table: tuple(name for name, _ in names) for table, names in KEYS.items()}
        with Meter(keys=keys).listening(dynamodb, sqs) as meter:
            yield Bench(
                meter=meter,
                dynamodb=dynamodb,
                schedules=DynamoDbSchedules(
                    client=dynamodb,
                    schedules_table="schedules",
                    versions_table="schedule_versions",
                    agenda_table="agenda",
                    tenants_table="tenants",
                ),
                agenda=DynamoDbAgenda(client=dynamodb, table="agenda"),
                outbox=DynamoDbOutbox(client=dynamodb, table="outbox"),
                ledger=DynamoDbLedger(
                    client=dynamodb,
                    table="occurrences",
                    outbox_table="outbox",
                    retention=RETENTION_MIN,
                ),
                shards=DynamoDbShards(client=dynamodb, table="shards"),
                lanes=SqsLanes(client=sqs, queue_urls=urls),
            )


def versions_due(*, shared: bool) -> list[ScheduleVersion]:
    """Give a thousand schedules that fire together, of one rule or each of its own."""
    rules = (
        a_rule("rate(1 day)")
        if shared
        else a_rule(f"rate({HOURS_A_DAY * MINUTES_OF_HOUR + number} minutes)")
        for number in count()
    )
    return [
        a_version(
            tenant=f"tenant-{number % TENANTS:04d}",
            schedule=f"invoices-{_chosen(number)}",
            rule=replace(rule, anchor=FIRE - timedelta(days=2)),
        )
        for number, rule in zip(range(SCHEDULES), rules, strict=False)
    ]


def _chosen(number: int) -> str:
    """Give an id as people's systems choose them: nothing that compresses well."""
    return hashlib.blake2b(str(number).encode(), digest_size=8).hexdigest()


def planning(*, shared: bool) -> tuple[Bill, Bill]:
    """Give the bills of a pass over a thousand cursors of a bucket, and of relaying its pages."""
    versions = versions_due(shared=shared)
    with bench() as world:
        world.shards.ensure(replace(a_shard(SHARD), drained_through=NINE - CLOSE_AFTER))
        world.stores_heads(versions)
        world.agenda.put(SHARD, [a_cursor(FIRE, version=version) for version in versions])
        planned = world.meter.of(
            lambda: world.plan_shard(SHARD, deadline=NINE + timedelta(minutes=9))
        )
        pages = world.pages()
        assert sum(len(page.planned) for page in pages) == SCHEDULES
        relayed = world.meter.of(lambda: [world.relay_page(page) for page in pages])
        assert world.pages() == ()
    return planned, relayed


def execution(overlap: Overlap = Overlap.ALLOW) -> Bill:
    """Give the bill of executing occurrences, each delivered at its first try and alone."""
    with executing(Policies(overlap=overlap)) as (world, cache, messages):
        execute = world.execute_occurrence(cache)
        return world.meter.of(lambda: [execute(message) for message in messages])


def callbacks() -> tuple[Bill, Bill, Bill]:
    """Give the bills of deliveries that are taken, of heartbeats, and of completes.

    A heartbeat makes the lease check hop once; a complete is found by it, and it goes.
    """
    completion = CompletionPolicy(policy=Completion.CALLBACK)
    with executing(Policies(completion=completion)) as (world, cache, messages):
        accepting = ScriptedTargets(lambda _: Accepted(detail="HTTP 202"))
        execute, take = world.execute_occurrence(cache, accepting), world.take_callback(cache)
        tickets = [Ticket(occurrence=message.occurrence, attempt=1) for message in messages]
        delivered = world.meter.of(lambda: [execute(message) for message in messages])
        world.clock.advance(completion.heartbeat)
        beaten = world.meter.of(
            lambda: (
                [take.heartbeat(ticket) for ticket in tickets]
                + [execute(message) for message in messages]
            )
        )
        ended = world.meter.of(
            lambda: (
                [take.complete(ticket, result="42 rows") for ticket in tickets]
                + [execute(message) for message in messages]
            )
        )
    return delivered, beaten, ended


@contextmanager
def executing(policies: Policies) -> Iterator[tuple[Bench, VersionCache, list[Message]]]:
    """Give a world in which the messages of schedules under these policies have just come."""
    versions = [
        replace(version, policies=policies) for version in versions_due(shared=True)[:EXECUTED]
    ]
    cache = VersionCache()
    for version in versions:
        cache.put(version)
    with bench() as world:
        world.stores_heads(versions)
        world.clock.advance_to(FIRE)
        messages = [
            a_message(
                an_occurrence(tenant=version.tenant, schedule=version.schedule, scheduled_for=FIRE),
                enqueued_at=FIRE,
            )
            for version in versions
        ]
        yield world, cache, messages


def execution_within_limits(quotas: Quotas) -> Bill:
    """Give the bill of executing occurrences of one tenant, which none of its limits holds."""
    versions = [replace(version, tenant=TENANT) for version in versions_due(shared=True)[:EXECUTED]]
    cache = VersionCache()
    for version in versions:
        cache.put(version)
    with bench() as world:
        world.stores_heads(versions)
        DynamoDbTenants(table="tenants").register(Tenant(tenant=TENANT, quotas=quotas))
        world.clock.advance_to(FIRE)
        execute = world.execute_occurrence(cache)
        messages = [
            a_message(
                an_occurrence(tenant=TENANT, schedule=version.schedule, scheduled_for=FIRE),
                enqueued_at=FIRE,
            )
            for version in versions
        ]
        return world.meter.of(lambda: [execute(message) for message in messages])


def dollars_per_million(*bills: tuple[Bill, int]) -> float:
    return sum(
        1e6
        * (
            bill.write_units * DOLLARS_PER_WRITE_UNIT
            + bill.read_units * DOLLARS_PER_READ_UNIT
            + bill.sqs_requests * DOLLARS_PER_SQS_REQUEST
        )
        / occurrences
        for bill, occurrences in bills
    )


def _line(name: str, bill: Bill, occurrences: int) -> str:
    return (
        f"{name:<30} {bill.write_units / occurrences:>8.3f} {bill.read_units / occurrences:>8.3f} "
        f"{bill.all_calls / occurrences:>8.3f}"
    )


def lines() -> Iterator[str]:
    yield f"{'per occurrence':<30} {'writes':>8} {'reads':>8} {'calls':>8}"
    executed = execution()
    for shared in (True, False):
        kind = "shared rule" if shared else "rules of their own"
        planned, relayed = planning(shared=shared)
        yield _line(f"plan, {kind}", planned, SCHEDULES)
        yield _line(f"relay, {kind}", relayed, SCHEDULES)
        dollars = dollars_per_million(
            (planned, SCHEDULES), (relayed, SCHEDULES), (executed, EXECUTED)
        )
        yield f"{'':<30} ${dollars:.2f} per million: tables and sends, with the line below"
    yield _line("execute", executed, EXECUTED)
    alone = execution(Overlap.QUEUE_ONE)
    yield _line("execute, with a slot", alone, EXECUTED)
    for name, quotas in LIMITED.items():
        yield _line(f"execute, {name}", execution_within_limits(quotas), EXECUTED)
    delivered, beaten, ended = callbacks()
    yield _line("execute, taken by 202", delivered, EXECUTED)
    yield _line("a heartbeat, and the hop", beaten, EXECUTED)
    yield _line("a complete, and the last look", ended, EXECUTED)
    yield (
        f"budgets: plan and relay {PLANNING_WRITE_UNITS_MAX} writes and {CALLS_MAX} calls, "
        f"execute {EXECUTION_WRITE_UNITS_MAX} writes"
    )


def main() -> None:
    for line in lines():
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
