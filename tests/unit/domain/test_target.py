from datetime import timedelta

import pytest

from puntual.domain.errors import Rejected
from puntual.domain.target import (
    Delivery,
    QueueTarget,
    is_target_queue,
    queue_target_of,
    webhook_target_of,
)
from tests.builders import NINE, TARGET, an_occurrence

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
    "https://[fe80::1%25eth0]/hooks",
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
GOOD_ARNS = [
    ARN,
    ARN + ".fifo",
    "arn:aws-us-gov:sqs:us-gov-west-1:123456789012:puntual-target-a",
]
BAD_ARNS = [
    "",
    "arn:aws:sqs:eu-west-1:123456789012:orders",
    "arn:aws:sqs:eu-west-1:123456789012:puntual-strict",
    "arn:aws:sqs:eu-west-1:123456789012:puntual-target-",
    "arn:aws:sns:eu-west-1:123456789012:puntual-target-orders",
    "arn:aws:sqs:eu-west-1:1234:puntual-target-orders",
    ARN + "\n",
    ARN + ".fifo.fifo",
    ARN + ":x",
    " " + ARN,
    "arn:aws:sqs:eu-west-1:123456789012:puntual-target-" + "x" * 61,
]


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


@pytest.mark.parametrize("arn", GOOD_ARNS)
def test_a_queue_that_the_tenant_registered_is_taken(arn: str) -> None:
    assert queue_target_of(arn, registered=(arn,)) == QueueTarget(arn=arn)
    assert QueueTarget(arn=arn).is_fifo == arn.endswith(".fifo")


@pytest.mark.parametrize("arn", BAD_ARNS)
def test_a_queue_that_the_executor_may_not_send_to_is_refused_though_registered(arn: str) -> None:
    assert not is_target_queue(arn)
    with pytest.raises(Rejected):
        queue_target_of(arn, registered=(arn,))


@pytest.mark.parametrize("arn", [ARN, None, 7, (ARN,)])
def test_a_queue_of_another_tenant_is_refused(arn: object) -> None:
    with pytest.raises(Rejected) as caught:
        queue_target_of(arn, registered=(ARN + "-2",))
    assert caught.value.field == "target.queue_arn"


def test_a_delivery_does_not_show_its_payload_where_it_is_printed() -> None:
    delivery = Delivery(
        occurrence=an_occurrence(), attempt=1, target=TARGET, payload="secret", deadline=NINE
    )
    assert "secret" not in repr(delivery)
