import json
from dataclasses import replace
from datetime import timedelta

import pytest

from puntual.domain.callback_token import TOKEN_LENGTH_MAX
from puntual.domain.errors import Rejected
from puntual.domain.target import (
    FACTS,
    AwsTarget,
    Delivery,
    Service,
    aws_target_of,
    check_target_arn,
    payload_bytes_max_of,
    webhook_target_of,
    why_unregistered,
)
from tests.builders import NINE, TARGET, a_delivery, a_tenant, an_occurrence

SECONDS = timedelta(seconds=5)
ARN = "arn:aws:sqs:eu-west-1:123456789012:puntual-target-orders"

LABEL = "x" * 63
HOST = ".".join([LABEL, LABEL, LABEL, "x" * 61])
"""As long as a name may be: 253 characters."""

GOOD_URLS = [
    "https://acme.example",
    "https://acme.example/",
    "https://acme.example:8443/hooks?x=1&y=%20",
    "HTTPS://ACME.example/hooks",
    "https://[2001:db8::1]/hooks",
    "https://[::1]:8443/hooks",
    "https://192.0.2.1/hooks",
    "https://acme.example./hooks",
    "https://hooks_1.acme-corp.example/",
    "https://xn--acm-dma.example/",
    "https://localhost/",
    f"https://{LABEL}.example/",
    f"https://{HOST}/",
    f"https://{HOST}./",
    "https://acme.example/" + "x" * (2048 - len("https://acme.example/")),
]
BAD_URLS = [
    "",
    "acme.example/hooks",
    "//acme.example/hooks",
    "ftp://acme.example/",
    "file:///etc/passwd",
    "http://acme.example/hooks",
    "https://",
    "https:///hooks",
    "https://user@acme.example/",
    "https://user:secret@acme.example/",
    "https://:secret@acme.example/",
    "https://@acme.example/",
    "https://acme.example/#part",
    "https://acme.example/#",
    "https://acme.example:0/",
    "https://acme.example:65536/",
    "https://acme.example:port/",
    "https://[::1/",
    "https://[fe80::1%25eth0]/hooks",
    "https://[fe80::1%eth0]/hooks",
    "https://acme[::1]/",
    "https://[::1]acme/",
    "https://exa..mple.com/",
    "https://.acme.example/",
    "https://acme.example../",
    "https://./",
    "https://..:8443/",
    f"https://{LABEL}x.example/",
    f"https://acme.{LABEL}x/",
    f"https://{HOST}x/",
    "https://ac%6De.example/",
    "https://acme*.example/",
    "https://[v1.acme]/",
    "https://[v1.acme:8]/",
    "https://acme.example/a b",
    "https://acme.example/a\r\nHost: other",
    "https://acme.example/\x00",
    "https://acmé.example/",
    "https://acme.example/" + "x" * 2048,
    None,
    7,
    b"https://acme.example/",
]
ROLE = "arn:aws:iam::123456789012:role/puntual-target-acme"

ARNS = [
    (Service.SQS, ARN),
    (Service.SQS, ARN + ".fifo"),
    (Service.SQS, "arn:aws-us-gov:sqs:us-gov-west-1:123456789012:puntual-target-a"),
    (Service.SNS, "arn:aws:sns:eu-west-1:123456789012:puntual-target-news"),
    (Service.SNS, "arn:aws:sns:eu-west-1:123456789012:puntual-target-news.fifo"),
    (Service.EVENTBRIDGE, "arn:aws:events:eu-west-1:123456789012:event-bus/puntual-target-a.b"),
    (Service.LAMBDA, "arn:aws:lambda:eu-west-1:123456789012:function:puntual-target-f"),
    (Service.LAMBDA, "arn:aws:lambda:eu-west-1:123456789012:function:puntual-target-f:live"),
    (Service.LAMBDA, "arn:aws:lambda:eu-west-1:123456789012:function:puntual-target-f:$LATEST"),
    (
        Service.STEP_FUNCTIONS,
        "arn:aws:states:eu-west-1:123456789012:stateMachine:puntual-target-m",
    ),
    (
        Service.STEP_FUNCTIONS,
        "arn:aws:states:eu-west-1:123456789012:stateMachine:puntual-target-m:live",
    ),
]
NO_ARNS = [
    "",
    "arn:aws:s3:::puntual-target-orders",
    "arn:aws:sqs:eu-west-1:1234:puntual-target-orders",
    "arn:aws:sqs:eu-west-1:123456789012:puntual target",
    "arn:aws:sqs:eu-west-1:123456789012:puntual-target-" + "x" * 61,
    "arn:aws:sqs:*:123456789012:puntual-target-orders",
    "arn:aws:sns:eu-west-1:123456789012:puntual-target-news:subscription",
    "arn:aws:events:eu-west-1:123456789012:rule/puntual-target-a",
    "arn:aws:events:eu-west-1:123456789012:event-bus/aws.partner/acme/1",
    "arn:aws:lambda:eu-west-1:123456789012:layer:puntual-target-f",
    "arn:aws:lambda:eu-west-1:123456789012:function:puntual-target-f:live:2",
    "arn:aws:states:eu-west-1:123456789012:execution:puntual-target-m:x",
    "arn:aws:states:eu-west-1:123456789012:stateMachine:puntual-target-m/map",
    ARN + "\n",
    ARN + ".fifo.fifo",
    ARN + ":x",
    " " + ARN,
]
OUTSIDE = [
    (Service.SQS, "arn:aws:sqs:eu-west-1:123456789012:orders"),
    (Service.SQS, "arn:aws:sqs:eu-west-1:123456789012:puntual-prod-strict"),
    (Service.SNS, "arn:aws:sns:eu-west-1:123456789012:news"),
    (Service.EVENTBRIDGE, "arn:aws:events:eu-west-1:123456789012:event-bus/default"),
    (Service.LAMBDA, "arn:aws:lambda:eu-west-1:123456789012:function:puntual-prod-executor"),
    (Service.STEP_FUNCTIONS, "arn:aws:states:eu-west-1:123456789012:stateMachine:m"),
]
EVENT = {"source": "acme.orders", "detail_type": "Order Due"}


@pytest.mark.parametrize("url", GOOD_URLS)
def test_an_absolute_https_url_is_taken_as_it_is(url: str) -> None:
    target = webhook_target_of(url, timeout=SECONDS, plain_http=False)
    assert (target.url, target.timeout) == (url, SECONDS)


@pytest.mark.parametrize("url", BAD_URLS)
def test_any_other_url_is_refused(url: object) -> None:
    with pytest.raises(Rejected) as caught:
        webhook_target_of(url, timeout=SECONDS, plain_http=False)
    assert caught.value.field == "target.url"


def test_plain_http_is_taken_only_where_the_environment_allows_it() -> None:
    url = "http://127.0.0.1:8080/hooks"
    assert webhook_target_of(url, timeout=SECONDS, plain_http=True).url == url
    with pytest.raises(Rejected, match="an absolute https URL"):
        webhook_target_of(url, timeout=SECONDS, plain_http=False)


@pytest.mark.parametrize(("service", "arn"), ARNS)
def test_a_resource_that_the_tenant_registered_is_taken(service: Service, arn: str) -> None:
    check_target_arn("targets.0", arn)
    tenant = a_tenant(targets=(arn,))
    target = aws_target_of(service, arn, tenant=tenant, **EVENT)
    assert (target.service, target.arn, target.role_arn) == (service, arn, None)
    assert target.is_fifo == arn.endswith(".fifo")
    assert target.region in {"eu-west-1", "us-gov-west-1"}
    assert why_unregistered(target, tenant) is None


@pytest.mark.parametrize("arn", NO_ARNS)
@pytest.mark.parametrize("service", Service)
def test_what_is_no_arn_of_a_target_is_refused_though_registered(
    service: Service, arn: str
) -> None:
    with pytest.raises(Rejected, match=r"targets\.3: .*one of these: queue, topic, event bus"):
        check_target_arn("targets.3", arn)
    with pytest.raises(Rejected):
        aws_target_of(service, arn, tenant=a_tenant(targets=(arn,)), **EVENT)


@pytest.mark.parametrize(("service", "arn"), ARNS)
def test_a_resource_of_another_service_is_refused(service: Service, arn: str) -> None:
    for other in set(Service) - {service}:
        with pytest.raises(Rejected, match=f"target.{FACTS[other].field}"):
            aws_target_of(other, arn, tenant=a_tenant(targets=(arn,)), **EVENT)


@pytest.mark.parametrize("arn", [ARN, None, 7, (ARN,)])
def test_a_resource_of_another_tenant_is_refused(arn: object) -> None:
    with pytest.raises(Rejected) as caught:
        aws_target_of(Service.SQS, arn, tenant=a_tenant(targets=(ARN + "-2",)))
    assert caught.value.field == "target.queue_arn"


@pytest.mark.parametrize(("service", "arn"), OUTSIDE)
def test_without_a_role_the_name_must_be_one_that_puntuals_own_role_may_call(
    service: Service, arn: str
) -> None:
    tenant = a_tenant(targets=(arn,), roles=(ROLE,))
    check_target_arn("targets.0", arn)
    with pytest.raises(Rejected, match="begins with puntual-target-"):
        aws_target_of(service, arn, tenant=tenant, **EVENT)
    assert aws_target_of(service, arn, tenant=tenant, role_arn=ROLE, **EVENT).role_arn == ROLE


def test_a_role_that_is_not_registered_is_refused() -> None:
    with pytest.raises(Rejected) as caught:
        aws_target_of(Service.SQS, ARN, tenant=a_tenant(targets=(ARN,)), role_arn=ROLE)
    assert (caught.value.field, caught.value.value) == ("target.role_arn", ROLE)


@pytest.mark.parametrize(
    ("event", "field"),
    [
        ({**EVENT, "source": ""}, "target.source"),
        ({**EVENT, "source": "aws.s3"}, "target.source"),
        ({**EVENT, "source": "a b"}, "target.source"),
        ({**EVENT, "source": "x" * 257}, "target.source"),
        ({**EVENT, "detail_type": ""}, "target.detail_type"),
        ({**EVENT, "detail_type": "x" * 129}, "target.detail_type"),
        ({**EVENT, "detail_type": "a\nb"}, "target.detail_type"),
    ],
)
def test_an_events_names_are_bounded(event: dict[str, str], field: str) -> None:
    arn = "arn:aws:events:eu-west-1:123456789012:event-bus/puntual-target-a"
    with pytest.raises(Rejected) as caught:
        aws_target_of(Service.EVENTBRIDGE, arn, tenant=a_tenant(targets=(arn,)), **event)
    assert caught.value.field == field


def test_what_was_taken_out_of_the_registration_is_told() -> None:
    target = AwsTarget(service=Service.SQS, arn=ARN, role_arn=ROLE)
    assert why_unregistered(target, a_tenant(targets=(ARN,), roles=(ROLE,))) is None
    without_target = why_unregistered(target, a_tenant(roles=(ROLE,)))
    assert without_target == "the queue is not registered any more"
    without_role = why_unregistered(target, a_tenant(targets=(ARN,)))
    assert without_role == "the role is not registered any more"
    assert why_unregistered(TARGET, a_tenant()) is None


def test_every_service_takes_the_payload_that_it_is_said_to_take_with_its_names_beside_it() -> None:
    limits = {
        Service.SQS: 1_048_576,
        Service.SNS: 262_144,
        Service.EVENTBRIDGE: 262_144,
        Service.LAMBDA: 1_000_000,
        Service.STEP_FUNCTIONS: 262_144,
    }
    for service, limit in limits.items():
        target = AwsTarget(service=service, arn=ARN)
        longest = replace(
            a_delivery(target, payload="x" * payload_bytes_max_of(target)),
            callback_url="https://callbacks.example/v1/callbacks/" + "t" * TOKEN_LENGTH_MAX,
        )
        names = sum(len(name) + len(text) + len("String") for name, text in longest.told().items())
        assert len(longest.enveloped()) <= limit
        assert len(longest.payload) + names + 128 + 256 <= limit


def test_a_delivery_is_named_anew_in_each_round_and_not_in_each_attempt() -> None:
    names = [a_delivery(attempt=attempt).once_name for attempt in (1, 2)]
    assert names == [an_occurrence().id] * 2
    assert a_delivery(round_=2).once_name == f"{an_occurrence().id}-2"


def test_where_a_callback_ends_an_attempt_each_is_named_anew() -> None:
    awaited = replace(a_delivery(attempt=2, round_=1), awaits_callback=True)
    assert awaited.once_name == f"{an_occurrence().id}-1-2"


def test_the_address_to_call_back_is_beside_the_payload_and_never_printed() -> None:
    url = "https://callbacks.example/v1/callbacks/t0ken"
    awaited = replace(a_delivery(), awaits_callback=True, callback_url=url)
    assert awaited.told()["Puntual-Callback-Url"] == url
    assert json.loads(awaited.enveloped())["puntual"]["callback_url"] == url
    assert "t0ken" not in repr(awaited)
    assert "Puntual-Callback-Url" not in a_delivery().told()


def test_an_envelope_holds_the_payload_as_it_is_beside_the_names() -> None:
    assert json.loads(a_delivery(attempt=3, payload='["é"]').enveloped()) == {
        "puntual": {
            "idempotency_key": an_occurrence().id,
            "tenant": "acme",
            "schedule": "invoices",
            "scheduled_for": "2026-11-30T09:00:00.000Z",
            "attempt": 3,
            "try": False,
        },
        "payload": ["é"],
    }


def test_only_a_try_says_that_it_is_one() -> None:
    assert a_delivery(is_try=True).told()["Puntual-Try"] == "true"
    assert "Puntual-Try" not in a_delivery().told()


def test_a_delivery_does_not_show_its_payload_where_it_is_printed() -> None:
    delivery = Delivery(
        occurrence=an_occurrence(),
        attempt=1,
        target=TARGET,
        payload="secret",
        deadline=NINE,
        keys=(b"secret",),
    )
    assert "secret" not in repr(delivery)
