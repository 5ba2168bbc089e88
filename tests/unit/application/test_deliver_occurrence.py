"""The last check before a delivery leaves: registration, size, keys."""

from dataclasses import replace
from datetime import timedelta

import pytest

from puntual.application.deliver_occurrence import (
    DeliverOccurrence,
)
from puntual.application.known_tenants import KNOWN_FOR, KnownTenants
from puntual.domain.callback_token import Ticket, ticket_of
from puntual.domain.target import (
    Accepted,
    AwsTarget,
    Delivered,
    Failed,
    Service,
    WebhookTarget,
)
from puntual.domain.tenant import Tenant
from puntual.domain.webhook_keys import keys_of
from tests.builders import NINE, TARGET, TENANT, a_delivery, a_tenant
from tests.fakes.counted_tenants import CountedTenants
from tests.fakes.fixed_root_secret import FixedRootSecret
from tests.fakes.manual_clock import ManualClock
from tests.fakes.scripted_targets import ScriptedTargets

ARN = "arn:aws:sqs:eu-west-1:123456789012:puntual-target-orders"
ROLE = "arn:aws:iam::123456789012:role/puntual-target-acme"
QUEUE = AwsTarget(service=Service.SQS, arn=ARN)
BY_ROLE = replace(QUEUE, role_arn=ROLE)
MOMENT = timedelta(milliseconds=1)


class World:
    def __init__(self) -> None:
        self.clock = ManualClock(NINE)
        self.tenants = CountedTenants()
        self.tenants.register(a_tenant(targets=(ARN,), roles=(ROLE,)))
        self.root_secret = FixedRootSecret()
        self.webhooks, self.aws = ScriptedTargets(), ScriptedTargets()
        self.deliver = DeliverOccurrence(
            known=KnownTenants(tenants=self.tenants, clock=self.clock),
            root_secret=self.root_secret,
            webhooks=self.webhooks,
            aws=self.aws,
            callbacks_at="https://callbacks.example",
        )


@pytest.fixture
def world() -> World:
    return World()


def test_each_kind_of_target_goes_its_own_way(world: World) -> None:
    assert isinstance(world.deliver.deliver(a_delivery(QUEUE)), Delivered)
    assert isinstance(world.deliver.deliver(a_delivery(TARGET)), Delivered)
    assert world.aws.deliveries == [a_delivery(QUEUE)]
    assert [delivery.target for delivery in world.webhooks.deliveries] == [TARGET]


def test_a_webhook_is_signed_with_the_tenants_keys_the_newest_first(world: World) -> None:
    world.tenants.raise_key_generation(TENANT, seen=1)
    world.deliver.deliver(a_delivery(TARGET))
    keys = keys_of(a_tenant(key_generation=2), root=world.root_secret.secret)
    assert world.webhooks.deliveries[0].keys == tuple(key.secret for key in keys)
    assert len(keys) == 2


@pytest.mark.parametrize(
    ("target", "left", "detail"),
    [
        (QUEUE, a_tenant(roles=(ROLE,)), "the queue is not registered any more"),
        (BY_ROLE, a_tenant(targets=(ARN,)), "the role is not registered any more"),
    ],
)
def test_what_is_taken_out_of_the_registration_is_not_called_half_a_minute_later(
    world: World, target: AwsTarget, left: Tenant, detail: str
) -> None:
    assert isinstance(world.deliver.deliver(a_delivery(target)), Delivered)
    world.tenants.register(left)
    world.clock.advance(KNOWN_FOR - MOMENT)
    assert isinstance(world.deliver.deliver(a_delivery(target)), Delivered)
    world.clock.advance(MOMENT)
    assert world.deliver.deliver(a_delivery(target)) == Failed(
        detail=detail, retryable=False, by_target=False
    )
    assert len(world.aws.deliveries) == 2


def test_what_is_added_to_the_registration_is_called_at_once(world: World) -> None:
    assert isinstance(world.deliver.deliver(a_delivery(QUEUE)), Delivered)
    added = replace(QUEUE, arn=f"{ARN}-2")
    world.tenants.register(a_tenant(targets=(ARN, added.arn)))
    assert isinstance(world.deliver.deliver(a_delivery(added)), Delivered)
    by_role = replace(added, role_arn=ROLE)
    world.tenants.register(a_tenant(targets=(ARN, added.arn), roles=(ROLE,)))
    assert isinstance(world.deliver.deliver(a_delivery(by_role)), Delivered)


def test_a_registration_is_read_once_in_half_a_minute(world: World) -> None:
    for _ in range(3):
        world.deliver.deliver(a_delivery(QUEUE))
    assert world.tenants.reads == 1
    world.clock.advance(KNOWN_FOR)
    world.deliver.deliver(a_delivery(QUEUE))
    assert world.tenants.reads == 2


@pytest.mark.parametrize("target", [QUEUE, TARGET])
def test_a_tenant_that_is_not_registered_gets_nothing_delivered(
    world: World, target: AwsTarget
) -> None:
    world.tenants.rows.clear()
    result = world.deliver.deliver(a_delivery(target))
    detail = "the tenant is not registered"
    assert result == Failed(detail=detail, retryable=False, by_target=False)


def test_what_cannot_be_read_now_may_be_tried_again(world: World) -> None:
    world.root_secret.is_out_of_reach = True
    keyless = world.deliver.deliver(a_delivery(TARGET))
    assert keyless == Failed(
        detail="the signing keys could not be read", retryable=True, by_target=False
    )
    world.clock.advance(KNOWN_FOR)
    world.tenants.is_out_of_reach = True
    unread = world.deliver.deliver(a_delivery(QUEUE))
    assert unread == Failed(
        detail="the tenant's registration could not be read", retryable=True, by_target=False
    )
    assert world.webhooks.deliveries == world.aws.deliveries == []


def test_a_payload_beyond_what_the_target_takes_does_not_leave(world: World) -> None:
    topic = AwsTarget(service=Service.SNS, arn=ARN)
    at_most = a_delivery(topic, payload="é" * (126 * 1024))
    assert isinstance(world.deliver.deliver(at_most), Delivered)
    result = world.deliver.deliver(replace(at_most, payload=at_most.payload + "x"))
    detail = "payload of 258049 bytes, beyond 258048"
    assert result == Failed(detail=detail, retryable=False, by_target=False)


# Callbacks


@pytest.mark.parametrize("target", [TARGET, QUEUE])
def test_who_is_waited_for_gets_the_address_of_its_attempt(
    world: World, target: AwsTarget | WebhookTarget
) -> None:
    delivery = replace(a_delivery(target, attempt=3), awaits_callback=True)
    world.deliver.deliver(delivery)
    [sent] = world.webhooks.deliveries + world.aws.deliveries
    address, _, token = sent.callback_url.rpartition("/")
    assert address == "https://callbacks.example/v1/callbacks"
    ticket = ticket_of(token, root=world.root_secret.secret)
    assert ticket == Ticket(occurrence=delivery.occurrence, attempt=3)
    assert token not in repr(sent)


def test_who_is_not_waited_for_gets_none(world: World) -> None:
    world.deliver.deliver(a_delivery(TARGET))
    assert world.webhooks.deliveries[0].callback_url == ""


def test_what_a_service_takes_is_no_success_before_the_callback(world: World) -> None:
    delivery = replace(a_delivery(QUEUE), awaits_callback=True)
    assert world.deliver.deliver(delivery) == Accepted(detail="HTTP 200")
    assert world.deliver.deliver(a_delivery(QUEUE)) == Delivered(detail="HTTP 200")
    refused = Failed(detail="SQS AccessDenied", retryable=False)
    world.aws.script = lambda _: refused
    assert world.deliver.deliver(delivery) == refused


def test_without_the_root_nobody_is_told_to_call_back(world: World) -> None:
    world.root_secret.is_out_of_reach = True
    result = world.deliver.deliver(replace(a_delivery(QUEUE), awaits_callback=True))
    detail = "the key of callbacks could not be read"
    assert result == Failed(detail=detail, retryable=True, by_target=False)
    assert world.aws.deliveries == []
