"""A try: the checks of a create, one delivery, nothing in the ledger."""

from dataclasses import replace
from datetime import timedelta

import pytest

from puntual.domain.breaker import OpenBreaker, opened
from puntual.domain.definition import AwsDefinition, PayloadTooLarge, WebhookDefinition
from puntual.domain.errors import Rejected
from puntual.domain.target import Delivered, Delivery, DeliveryResult, Failed, Service
from puntual.domain.tenant import TenantId, UnknownTenant
from tests.builders import NINE, TENANT
from tests.control_plane_world import OWN_QUEUE, World

WEBHOOK = WebhookDefinition(url="https://acme.example/hooks", timeout=timedelta(seconds=840))
QUEUE = AwsDefinition(service=Service.SQS, arn=OWN_QUEUE)


@pytest.mark.parametrize(
    "result", [Delivered(detail="HTTP 200"), Failed(detail="HTTP 500", retryable=True)]
)
def test_it_tells_what_came_of_it_and_how_long_it_took(result: DeliveryResult) -> None:
    world = World()

    def answer(_: Delivery) -> DeliveryResult:
        world.clock.advance(timedelta(milliseconds=250))
        return result

    world.targets.script = answer
    tried = world.plane.try_target(TENANT, QUEUE, payload=7)
    assert (tried.result, tried.duration) == (result, timedelta(milliseconds=250))


def test_it_delivers_once_under_a_name_of_its_own_and_leaves_nothing_behind() -> None:
    world = World()
    before = world.writes()
    payload = {"at": "<local_time>, try <attempt> of <schedule_id>"}
    for _ in range(2):
        world.plane.try_target(TENANT, WEBHOOK, payload=payload)
    first, second = world.targets.deliveries
    assert first.is_try
    assert first.told()["Puntual-Schedule"] == "try"
    assert first.occurrence.id != second.occurrence.id
    assert first.payload == '{"at":"2026-11-30T09:00:00+00:00, try 1 of try"}'
    assert world.writes() == before


def test_it_waits_for_twenty_seconds_at_most() -> None:
    world = World()
    for target in (WEBHOOK, QUEUE, WebhookDefinition(url=WEBHOOK.url)):
        world.plane.try_target(TENANT, target, payload=None)
    waits = [delivery.deadline - NINE for delivery in world.targets.deliveries]
    assert waits == [timedelta(seconds=20), timedelta(seconds=20), timedelta(seconds=10)]


@pytest.mark.parametrize(
    ("target", "payload", "field"),
    [
        (WebhookDefinition(url="http://acme.example"), None, "target.url"),
        (AwsDefinition(service=Service.SQS, arn=f"{OWN_QUEUE}-2"), None, "target.queue_arn"),
        (QUEUE, "x" * 65_535, "payload"),
    ],
)
def test_what_a_create_refuses_is_refused_and_not_delivered(
    target: WebhookDefinition | AwsDefinition, payload: object, field: str
) -> None:
    world = World()
    with pytest.raises(Rejected) as caught:
        world.plane.try_target(TENANT, target, payload=payload)
    assert caught.value.field == field
    assert world.targets.deliveries == []


def test_a_payload_that_grows_too_large_for_its_target_is_refused_where_it_is_written() -> None:
    world = World()
    payload = "<schedule_id>" * 5_000
    with pytest.raises(PayloadTooLarge, match="at most 262144 bytes for this target"):
        world.created(payload=payload, schedule="s" * 64)
    world.created(payload=payload, schedule="s")


def test_a_target_that_was_just_registered_can_be_tried_at_once() -> None:
    world = World()
    world.plane.register_tenant(TENANT)
    with pytest.raises(Rejected):
        world.plane.try_target(TENANT, QUEUE, payload=None)
    world.plane.register_tenant(TENANT, targets=(OWN_QUEUE,))
    assert isinstance(world.plane.try_target(TENANT, QUEUE, payload=1).result, Delivered)


def test_a_tenant_that_is_not_registered_tries_nothing() -> None:
    with pytest.raises(UnknownTenant):
        World().plane.try_target(TenantId("nobody"), QUEUE, payload=None)


def test_it_goes_out_though_the_breaker_is_open_and_says_so() -> None:
    world = World()
    shut = opened(world.breakers.read(TENANT), "https://acme.example", NINE)
    assert world.breakers.swap(replace(shut, write_id="one"), seen=world.breakers.read(TENANT))
    tried = world.plane.try_target(TENANT, WEBHOOK, payload=None)
    until = NINE + timedelta(seconds=10)
    assert tried.breaker == OpenBreaker(target="https://acme.example", until=until, opened=1)
    assert world.plane.try_target(TENANT, QUEUE, payload=None).breaker is None
    assert world.breakers.read(TENANT).by_target == shut.by_target
