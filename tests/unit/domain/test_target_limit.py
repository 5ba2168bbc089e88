"""Limits of targets: what they are kept under, and what a registration may hold."""

import pytest

from puntual.domain.errors import Rejected
from puntual.domain.target import AwsTarget, Service, WebhookTarget, limited_name_of
from puntual.domain.target_limit import (
    PER_MINUTE_LIMIT,
    TARGET_LIMITS_MAX,
    TargetLimit,
    checked_limits,
    origin_of,
)
from tests.builders import a_tenant

ORIGIN = "https://acme.example"
QUEUE = "arn:aws:sqs:us-east-1:123456789012:puntual-target-bills"


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://acme.example/hooks/1?a=b", ORIGIN),
        ("https://ACME.example:443/hooks", ORIGIN),
        ("https://acme.example:8443", "https://acme.example:8443"),
        ("http://acme.example:80/", "http://acme.example"),
        ("http://acme.example:443/", "http://acme.example:443"),
        ("https://[2001:DB8::1]:8443/x", "https://[2001:db8::1]:8443"),
        ("https://acme.example./hooks", ORIGIN),
        ("https://[2001:db8:0:0:0:0:0:1]/", "https://[2001:db8::1]"),
    ],
)
def test_schedules_that_share_an_origin_share_its_limits(url: str, origin: str) -> None:
    assert origin_of(url) == origin == limited_name_of(WebhookTarget(url=url))
    assert checked_limits((TargetLimit(target=origin, running=1),))


def test_resources_are_limited_by_their_arns() -> None:
    assert limited_name_of(AwsTarget(service=Service.SQS, arn=QUEUE)) == QUEUE
    limit = TargetLimit(target=QUEUE, per_minute=60)
    tenant = a_tenant(target_limits=checked_limits((limit,)))
    assert tenant.limit_of(QUEUE) == limit
    assert tenant.limit_of(ORIGIN) is None


@pytest.mark.parametrize(
    ("limit", "field"),
    [
        (TargetLimit(target="https://acme.example/", running=1), "target_limits.0.target"),
        (TargetLimit(target="https://acme.example:443", running=1), "target_limits.0.target"),
        (TargetLimit(target="https://acme.example:0", running=1), "target_limits.0.target"),
        (TargetLimit(target="https://acme.example:65536", running=1), "target_limits.0.target"),
        (TargetLimit(target="https://ACME.example", running=1), "target_limits.0.target"),
        (TargetLimit(target="https://acme.example.", running=1), "target_limits.0.target"),
        (TargetLimit(target="https://acme.example:08443", running=1), "target_limits.0.target"),
        (TargetLimit(target="https://[2001:db8:0::1]", running=1), "target_limits.0.target"),
        (TargetLimit(target="https://[1:2]", running=1), "target_limits.0.target"),
        (TargetLimit(target="ftp://acme.example", running=1), "target_limits.0.target"),
        (TargetLimit(target="arn:aws:s3:::bucket", running=1), "target_limits.0.target"),
        (TargetLimit(target="", running=1), "target_limits.0.target"),
        (TargetLimit(target=ORIGIN), "target_limits.0.per_minute"),
        (TargetLimit(target=ORIGIN, per_minute=0), "target_limits.0.per_minute"),
        (
            TargetLimit(target=ORIGIN, per_minute=PER_MINUTE_LIMIT + 1),
            "target_limits.0.per_minute",
        ),
        (TargetLimit(target=ORIGIN, running=0), "target_limits.0.running"),
        (TargetLimit(target=ORIGIN, running=10_001), "target_limits.0.running"),
    ],
)
def test_a_limit_that_says_nothing_is_refused_by_name(limit: TargetLimit, field: str) -> None:
    with pytest.raises(Rejected) as caught:
        checked_limits((limit,))
    assert caught.value.field == field


def test_each_target_stands_once_and_they_are_bounded() -> None:
    limits = tuple(
        TargetLimit(target=f"https://{n}.example", running=1) for n in range(TARGET_LIMITS_MAX + 1)
    )
    assert checked_limits(limits[1:]) == limits[1:]
    with pytest.raises(Rejected, match="target_limits"):
        checked_limits(limits)
    with pytest.raises(Rejected) as caught:
        checked_limits((limits[0], limits[0]))
    assert caught.value.field == "target_limits.1.target"
