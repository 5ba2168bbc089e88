"""The hostile wrappers: each kind of trouble does what it says, and a seed repeats it."""

import random
from datetime import timedelta

import pytest

from puntual.application.ports import Sending
from puntual.domain.errors import Unavailable
from puntual.domain.lane import Lane
from puntual.domain.run import RunState
from tests.builders import (
    NINE,
    a_cursor,
    a_message,
    a_page,
    a_run,
    a_schedule,
    a_shard,
    a_tenant,
    a_version,
    an_occurrence,
)
from tests.fakes.hostile import (
    HostileAgenda,
    HostileLanes,
    HostileLedger,
    HostileOutbox,
    HostileSchedules,
    HostileShards,
    Hostility,
    Rates,
)
from tests.fakes.in_memory_agenda import InMemoryAgenda
from tests.fakes.in_memory_lanes import InMemoryLanes
from tests.fakes.in_memory_ledger import InMemoryLedger
from tests.fakes.in_memory_outbox import InMemoryOutbox
from tests.fakes.in_memory_schedules import InMemorySchedules
from tests.fakes.in_memory_shards import InMemoryShards
from tests.fakes.in_memory_tenants import InMemoryTenants

CURSORS = [a_cursor(NINE + timedelta(seconds=second)) for second in range(20)]


def a_hostility(rates: Rates, *, seed: int = 7) -> Hostility:
    return Hostility(source=random.Random(seed), rates=rates)


def test_a_throttled_call_has_no_effect() -> None:
    agenda = InMemoryAgenda()
    hostile = HostileAgenda(agenda, a_hostility(Rates(throttled=1)))
    with pytest.raises(Unavailable):
        hostile.put(0, CURSORS)
    with pytest.raises(Unavailable):
        hostile.due(0, NINE, limit=1)
    assert agenda.cursors() == ()


def test_a_call_that_timed_out_took_effect() -> None:
    outbox, shards = InMemoryOutbox(), InMemoryShards()
    hostility = a_hostility(Rates(timed_out=1))
    with pytest.raises(Unavailable):
        HostileOutbox(outbox, hostility).put(a_page())
    with pytest.raises(Unavailable):
        HostileShards(shards, hostility).ensure(a_shard())
    assert outbox.left(0, written_before=NINE, limit=1) == (a_page(),)
    assert shards.all() == (0,)


@pytest.mark.parametrize("seed", range(5))
def test_a_partial_batch_is_unavailable_and_never_whole(seed: int) -> None:
    agenda = InMemoryAgenda()
    hostile = HostileAgenda(agenda, a_hostility(Rates(partial=1), seed=seed))
    with pytest.raises(Unavailable):
        hostile.put(0, CURSORS)
    assert len(agenda.cursors()) < len(CURSORS)


@pytest.mark.parametrize("seed", range(5))
def test_a_lane_gives_back_exactly_what_it_did_not_take(seed: int) -> None:
    lanes = InMemoryLanes()
    hostile = HostileLanes(lanes, a_hostility(Rates(partial=1), seed=seed))
    sendings = [
        Sending(message=a_message(an_occurrence(schedule=f"{n}")), delay=timedelta(0))
        for n in range(20)
    ]
    refused = hostile.send(Lane.STRICT, sendings)
    taken = lanes.sent[Lane.STRICT]
    assert refused
    assert not set(taken) & set(refused)
    assert {*taken, *refused} == set(sendings)
    assert hostile.send(Lane.STRICT, []) == ()


def test_a_lane_whose_answer_was_lost_gets_the_messages_twice() -> None:
    lanes = InMemoryLanes()
    hostile = HostileLanes(lanes, a_hostility(Rates(repeated=1)))
    sending = Sending(message=a_message(), delay=timedelta(0))
    assert hostile.send(Lane.STRICT, [sending]) == ()
    assert lanes.sent[Lane.STRICT] == [sending, sending]


@pytest.mark.parametrize("knows_own_writes", [True, False])
def test_a_repeated_write_succeeds_by_knowing_its_own(*, knows_own_writes: bool) -> None:
    hostility = a_hostility(Rates(repeated=1))
    ledger = HostileLedger(InMemoryLedger(knows_own_writes=knows_own_writes), hostility)
    assert ledger.swap(a_run(), seen=None) is knows_own_writes
    assert ledger.record(a_run(state=RunState.DEAD, write_id="two")) is knows_own_writes
    tenants = InMemoryTenants()
    tenants.register(a_tenant())
    schedules = HostileSchedules(
        InMemorySchedules(
            agenda=InMemoryAgenda(), tenants=tenants, knows_own_writes=knows_own_writes
        ),
        hostility,
    )
    schedules.create(a_schedule(), a_version(), None, shard=0)
    version = a_version(version=2)
    advanced = schedules.advance(a_schedule(version), version, None, shard=0)
    assert advanced is knows_own_writes
    assert schedules.head(version.key) == a_schedule(version)


def test_a_process_may_stop_at_every_io() -> None:
    seen: list[str] = []
    hostility = Hostility(source=random.Random(7), rates=Rates(repeated=1), at_io=seen.append)
    HostileOutbox(InMemoryOutbox(), hostility).put(a_page())
    assert seen == ["outbox.put"] * 3


def test_a_seed_repeats_its_troubles() -> None:
    def outcomes(seed: int) -> list[bool]:
        hostile = HostileOutbox(
            InMemoryOutbox(), a_hostility(Rates(throttled=0.5, timed_out=0.2), seed=seed)
        )
        return [_survives(hostile) for _ in range(40)]

    assert outcomes(7) == outcomes(7) != outcomes(8)


def _survives(outbox: HostileOutbox) -> bool:
    try:
        outbox.put(a_page())
    except Unavailable:
        return False
    return True
