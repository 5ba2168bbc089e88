"""The webhook adapter against a real receiver on loopback, polite and hostile."""

import base64
import hmac
import http.server
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from puntual.adapters.http_webhooks import HttpWebhooks, _retry_after, is_public, resolved
from puntual.domain.target import (
    Accepted,
    Delivered,
    Delivery,
    DeliveryResult,
    Failed,
    WebhookTarget,
)
from puntual.domain.webhook_keys import signature_headers
from tests.builders import NINE, an_occurrence
from tests.fakes.manual_clock import ManualClock
from tests.receivers import Answer, Receiver, answering, receiving

SECRET = "s3cr3t"  # noqa: S105 a payload, not a password
PAYLOAD = f'{{"token":"{SECRET}"}}'
KEYS = (b"the new key", b"the one before it")
FIVE_SECONDS = timedelta(seconds=5)
SHORT = timedelta(milliseconds=300)
LONGER_THAN_SHORT = 3.0
"""Seconds of wall time within which a call of a SHORT deadline has surely ended."""

TRUSTS_NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def a_delivery(url: str, *, within: timedelta = FIVE_SECONDS) -> Delivery:
    return Delivery(
        occurrence=an_occurrence(),
        attempt=3,
        target=WebhookTarget(url=url),
        payload=PAYLOAD,
        deadline=NINE + within,
        keys=KEYS,
    )


def webhooks(
    *,
    allow_private: bool = True,
    resolve: Callable[[str, int], list[str]] = resolved,
    tls: ssl.SSLContext | None = None,
) -> HttpWebhooks:
    return HttpWebhooks(
        clock=ManualClock(NINE),
        allow_private=allow_private,
        resolve=resolve,
        tls=tls or TRUSTS_NOBODY,
    )


def deliver(receiver: Receiver, path: str = "/hooks", **how: timedelta) -> DeliveryResult:
    return webhooks().deliver(a_delivery(f"http://127.0.0.1:{receiver.port}{path}", **how))


# What is sent


def test_the_receiver_gets_a_post_of_the_payload_with_the_occurrences_names() -> None:
    with receiving(answering(200)) as receiver:
        assert deliver(receiver, "/hooks?x=1&y=%20") == Delivered(detail="HTTP 200")
    [(path, headers, body)] = receiver.requests
    assert (path, body) == ("/hooks?x=1&y=%20", PAYLOAD.encode())
    assert {name: headers[name] for name in headers if name != "Accept-Encoding"} == {
        "Host": f"127.0.0.1:{receiver.port}",
        "Content-Type": "application/json",
        "Content-Length": str(len(PAYLOAD)),
        "User-Agent": "Puntual",
        "Connection": "close",
        "Idempotency-Key": an_occurrence().id,
        "Puntual-Tenant": "acme",
        "Puntual-Schedule": "invoices",
        "Puntual-Scheduled-For": "2026-11-30T09:00:00.000Z",
        "Puntual-Attempt": "3",
        **signature_headers(
            KEYS, message_id=an_occurrence().id, sent_at=NINE, body=PAYLOAD.encode()
        ),
    }


def test_the_signature_is_of_the_bytes_that_are_sent_and_has_a_part_for_each_key() -> None:
    with receiving(answering(200)) as receiver:
        deliver(receiver)
    [(_, headers, body)] = receiver.requests
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    parts = [part.removeprefix("v1,") for part in headers["webhook-signature"].split(" ")]
    assert [base64.b64decode(part) for part in parts] == [
        hmac.digest(key, signed, "sha256") for key in KEYS
    ]


def test_nothing_leaves_unsigned() -> None:
    with receiving(answering(200)) as receiver:
        unsigned = replace(a_delivery(f"http://127.0.0.1:{receiver.port}/"), keys=())
        with pytest.raises(AssertionError):
            webhooks().deliver(unsigned)
    assert receiver.requests == []


def test_a_url_without_a_path_asks_for_the_root() -> None:
    with receiving(answering(200)) as receiver:
        deliver(receiver, "")
        deliver(receiver, "?x=1")
    assert [path for path, _, _ in receiver.requests] == ["/", "/?x=1"]


def test_a_payload_beyond_ascii_is_sent_as_utf_8() -> None:
    with receiving(answering(200)) as receiver:
        delivery = Delivery(
            occurrence=an_occurrence(),
            attempt=1,
            target=WebhookTarget(url=f"http://127.0.0.1:{receiver.port}/"),
            payload='"ñandú"',
            deadline=NINE + FIVE_SECONDS,
            keys=KEYS,
        )
        webhooks().deliver(delivery)
    assert receiver.requests[0][2] == '"ñandú"'.encode()


# What the answer means


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_delivered(status: int) -> None:
    with receiving(answering(status)) as receiver:
        assert deliver(receiver) == Delivered(detail=f"HTTP {status}")


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_only_a_202_promises_the_callback_that_is_awaited(status: int) -> None:
    with receiving(answering(status)) as receiver:
        url = "https://callbacks.example/v1/callbacks/token"
        awaited = replace(
            a_delivery(f"http://127.0.0.1:{receiver.port}/hooks"),
            awaits_callback=True,
            callback_url=url,
        )
        result = webhooks().deliver(awaited)
    kind = Accepted if status == 202 else Delivered
    assert result == kind(detail=f"HTTP {status}")
    [(_, headers, _)] = receiver.requests
    assert headers["Puntual-Callback-Url"] == url


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 413, 422])
def test_a_4xx_is_final(status: int) -> None:
    with receiving(answering(status, {"Retry-After": "5"})) as receiver:
        assert deliver(receiver) == Failed(detail=f"HTTP {status}", retryable=False)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
def test_a_4xx_about_time_and_any_5xx_may_be_tried_again(status: int) -> None:
    with receiving(answering(status)) as receiver:
        assert deliver(receiver) == Failed(detail=f"HTTP {status}", retryable=True)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("retry_after", "wait"),
    [
        ("0", timedelta(0)),
        (" 120 ", timedelta(minutes=2)),
        ("Mon, 30 Nov 2026 09:10:00 GMT", timedelta(minutes=10)),
        ("Mon, 30 Nov 2026 08:00:00 GMT", timedelta(0)),
        ("Mon, 30 Nov 2026 09:10:00 -0000", timedelta(minutes=10)),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("1" * 400, None),
        ("", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(
    status: int, retry_after: str, wait: timedelta | None
) -> None:
    with receiving(answering(status, {"Retry-After": retry_after})) as receiver:
        result = deliver(receiver)
    assert result == Failed(detail=f"HTTP {status}", retryable=True, retry_after=wait)


@given(
    st.text(max_size=60)
    | st.from_regex(
        r"(Mon, )?[0-9]{1,4} Nov [0-9]{1,6} [0-9]{1,3}:[0-9]{1,3}(:[0-9]{1,3})? [+-][0-9]{1,20}",
        fullmatch=True,
    )
)
def test_no_retry_after_however_odd_raises_or_is_negative(value: str) -> None:
    wait = _retry_after(value, NINE)
    assert wait is None or wait >= timedelta(0)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with receiving(answering(200)) as other:
        location = {"Location": f"http://127.0.0.1:{other.port}/"}
        with receiving(answering(status, location)) as receiver:
            assert deliver(receiver) == Failed(detail=f"HTTP {status}", retryable=False)
    assert other.requests == []


def test_neither_payload_nor_answer_shows_in_the_result() -> None:
    with receiving(answering(500, {"X-Secret": SECRET}, SECRET.encode())) as receiver:
        result = deliver(receiver)
    assert SECRET not in repr(result)


def test_a_long_answer_is_not_read_to_its_end() -> None:
    def endless(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(b"x" * 65536)

    with receiving(endless) as receiver:
        assert deliver(receiver) == Delivered(detail="HTTP 200")


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\x00\xff nothing that HTTP knows\r\n\r\n",
        b"HTTP/1.1 many OK\r\n\r\n",
        b"HTTP/1.1 200 " + b"x" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
    ],
)
def test_an_answer_that_is_not_http_may_be_tried_again(said: bytes) -> None:
    def babble(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.wfile.write(said)
        handler.close_connection = True

    with receiving(babble) as receiver:
        result = deliver(receiver)
    assert isinstance(result, Failed)
    assert result.retryable
    assert result.detail.startswith("connection: ")


# Time


def hang(handler: http.server.BaseHTTPRequestHandler) -> None:
    assert handler.close_connection
    threading.Event().wait(LONGER_THAN_SHORT)


def drip(handler: http.server.BaseHTTPRequestHandler) -> None:
    """Say a byte of a header line at a time: no single read ever times out."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    for _ in range(100):
        handler.wfile.write(b"x")
        handler.wfile.flush()
        time.sleep(0.05)


def timed(call: Callable[[], DeliveryResult]) -> DeliveryResult:
    started = time.monotonic()
    result = call()
    assert time.monotonic() - started < LONGER_THAN_SHORT
    return result


@pytest.mark.parametrize("answer", [hang, drip])
def test_a_receiver_that_is_too_slow_is_cut_off_at_the_deadline(answer: Answer) -> None:
    with receiving(answer) as receiver:
        result = timed(lambda: deliver(receiver, within=SHORT))
    assert result == Failed(detail="timeout after 0.3 s", retryable=True)


def test_a_connection_that_is_never_taken_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        blocking = [socket.socket() for _ in range(4)]
        for each in blocking:
            each.settimeout(0)
            each.connect_ex(("127.0.0.1", port))
        result = timed(
            lambda: webhooks().deliver(a_delivery(f"http://127.0.0.1:{port}/", within=SHORT))
        )
        for each in blocking:
            each.close()
    assert result == Failed(detail="timeout after 0.3 s", retryable=True)


def test_nothing_is_called_when_no_time_is_left() -> None:
    with receiving(answering(200)) as receiver:
        result = deliver(receiver, within=timedelta(0))
    assert result == Failed(detail="timeout before the call", retryable=True, by_target=False)
    assert receiver.requests == []


def test_a_refused_connection_may_be_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    result = webhooks().deliver(a_delivery(f"http://127.0.0.1:{port}/"))
    assert result == Failed(detail="connection: ConnectionRefusedError", retryable=True)


def interim(*statuses: int) -> Answer:
    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        for status in statuses:
            handler.wfile.write(f"HTTP/1.1 {status} Wait\r\nLink: </style>\r\n\r\n".encode())
        answering(200)(handler)

    return answer


@pytest.mark.parametrize("statuses", [(100,), (102,), (103,), (103, 100, 102, 103)])
def test_interim_answers_are_passed_over(statuses: tuple[int, ...]) -> None:
    with receiving(interim(*statuses)) as receiver:
        assert deliver(receiver) == Delivered(detail="HTTP 200")


@pytest.mark.parametrize("chunk", [b"-1\r\n", b"-5\r\nabc", b"zz\r\n", b"ffffffff\r\n"])
def test_a_body_that_is_hostile_is_not_even_read(chunk: bytes) -> None:
    sent = [0]

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk)
        for _ in range(400):
            handler.wfile.write(b"x" * 1_000_000)
            sent[0] += 1

    with receiving(answer) as receiver:
        assert deliver(receiver) == Delivered(detail="HTTP 200")
    assert sent[0] < 400


def test_nothing_is_sent_where_the_name_took_all_the_time() -> None:
    clock = ManualClock(NINE)

    def slow(_: str, __: int) -> list[str]:
        clock.advance(FIVE_SECONDS)
        return ["127.0.0.1"]

    adapter = HttpWebhooks(clock=clock, allow_private=True, resolve=slow, tls=TRUSTS_NOBODY)
    with receiving(answering(200)) as receiver:
        result = adapter.deliver(a_delivery(f"http://slow.example:{receiver.port}/"))
    assert result == Failed(detail="timeout: the name was slow to resolve", retryable=True)
    assert receiver.requests == []


def test_a_name_that_does_not_resolve_may_be_tried_again() -> None:
    def no_such_name(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, f"{host}:{port}")

    result = webhooks(resolve=no_such_name).deliver(a_delivery("https://acme.example/"))
    assert result == Failed(detail="the host's name does not resolve", retryable=True)


@pytest.mark.parametrize("host", ["exa..mple.test", ".test", "x" * 64 + ".test"])
def test_a_host_that_is_no_name_is_given_up(host: str) -> None:
    result = webhooks().deliver(a_delivery(f"http://{host}/"))
    detail = "the host is not a name that DNS can hold"
    assert result == Failed(detail=detail, retryable=False, by_target=False)


def test_a_name_without_addresses_may_be_tried_again() -> None:
    result = webhooks(resolve=lambda _, __: []).deliver(a_delivery("https://acme.example/"))
    assert isinstance(result, Failed)
    assert result.retryable


# Addresses

REFUSED = Failed(
    detail="the host has a private or reserved address, which is refused",
    retryable=False,
    by_target=False,
)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",  # 127.0.0.1 as one decimal number
        "0177.0.0.1",  # octal
        "0x7f.0.0.1",  # hexadecimal
        "0x7f000001",
        "0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "100.64.0.1",
        "169.254.169.254",  # the metadata service
        "2852039166",  # the same, as a number
        "0xa9fea9fe",
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[::127.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",  # NAT64 of the metadata service
        "[64:ff9b::808:808]",
        "[64:ff9b:1::a9fe:a9fe]",
        "[2002:7f00:1::]",
        "[::ffff:0:7f00:1]",  # IPv4-translated
        "[2001:0:7f00:1::]",
        "[fe80::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",  # the metadata service over IPv6
        "[fec0::1]",
        "[ff02::1]",
        "[2001:db8::1]",
        "[3fff::1]",  # documentation too
    ],
)
def test_an_address_that_is_not_public_is_refused_however_it_is_spelled(host: str) -> None:
    result = webhooks(allow_private=False).deliver(a_delivery(f"http://{host}:1/"))
    assert result == REFUSED


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "2a00:1450::1%eth0"]
)
def test_an_address_on_the_internet_is_public(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_an_embedded_address_is_never_more_public_than_by_itself(
    ip: ipaddress.IPv4Address,
) -> None:
    assert is_public(f"::ffff:{ip}") == is_public(str(ip))
    for embedding in ("64:ff9b::", "::", "::ffff:0:"):
        assert not is_public(f"{embedding}{ip}")


@pytest.mark.parametrize(
    "addresses", [["8.8.8.8", "10.0.0.1"], ["10.0.0.1", "8.8.8.8"], ["2606:4700::1111", "::1"]]
)
def test_a_host_with_one_private_address_among_public_ones_is_refused(
    addresses: list[str],
) -> None:
    adapter = webhooks(allow_private=False, resolve=lambda _, __: addresses)
    assert adapter.deliver(a_delivery("https://acme.example/")) == REFUSED


def test_the_connection_goes_to_the_checked_address_though_the_name_changes_its_answer() -> None:
    answers = iter([["127.0.0.1"]])
    with receiving(answering(200)) as receiver:
        adapter = webhooks(resolve=lambda _, __: next(answers))
        result = adapter.deliver(a_delivery(f"http://rebinding.example:{receiver.port}/"))
    assert result == Delivered(detail="HTTP 200")
    assert receiver.requests[0][1]["Host"] == f"rebinding.example:{receiver.port}"


def test_an_address_that_does_not_answer_leaves_time_for_the_next() -> None:
    with receiving(answering(200)) as receiver:
        adapter = webhooks(resolve=lambda _, __: ["127.0.0.2", "127.0.0.1"])
        result = adapter.deliver(a_delivery(f"http://two.example:{receiver.port}/"))
    assert result == Delivered(detail="HTTP 200")


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a self-signed certificate for acme.example, key and all in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "acme.example")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("acme.example")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "acme.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.fixture
def server_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.fixture
def trusting(certificate: Path) -> HttpWebhooks:
    """Trusts the test's certificate, and finds every name on loopback."""
    return webhooks(
        resolve=lambda _, __: ["127.0.0.1"],
        tls=ssl.create_default_context(cafile=str(certificate)),
    )


@pytest.mark.parametrize("host", ["acme.example", "acme.example."])
def test_a_receiver_with_a_certificate_for_its_name_is_delivered_to(
    server_tls: ssl.SSLContext, trusting: HttpWebhooks, host: str
) -> None:
    with receiving(answering(200), server_tls) as receiver:
        result = trusting.deliver(a_delivery(f"https://{host}:{receiver.port}/hooks"))
    assert result == Delivered(detail="HTTP 200")


def test_a_receiver_with_a_certificate_for_another_name_gets_nothing(
    server_tls: ssl.SSLContext, trusting: HttpWebhooks
) -> None:
    with receiving(answering(200), server_tls) as receiver:
        result = trusting.deliver(a_delivery(f"https://other.example:{receiver.port}/{SECRET}"))
    assert result == Failed(detail="TLS: CERTIFICATE_VERIFY_FAILED", retryable=True)
    assert receiver.requests == []


def test_a_receiver_with_a_certificate_that_nobody_signed_gets_nothing(
    server_tls: ssl.SSLContext,
) -> None:
    with receiving(answering(200), server_tls) as receiver:
        url = f"https://acme.example:{receiver.port}/{SECRET}"
        result = webhooks(resolve=lambda _, __: ["127.0.0.1"]).deliver(a_delivery(url))
    assert result == Failed(detail="TLS: CERTIFICATE_VERIFY_FAILED", retryable=True)
    assert receiver.requests == []


def test_a_receiver_that_does_not_speak_tls_gets_nothing(trusting: HttpWebhooks) -> None:
    with receiving(answering(200)) as receiver:
        result = trusting.deliver(a_delivery(f"https://acme.example:{receiver.port}/"))
    assert isinstance(result, Failed)
    assert result.retryable
    assert receiver.requests == []


@pytest.mark.parametrize("answer", [hang, drip])
def test_a_slow_receiver_is_cut_off_at_the_deadline_through_tls_too(
    answer: Answer, server_tls: ssl.SSLContext, trusting: HttpWebhooks
) -> None:
    with receiving(answer, server_tls) as receiver:
        url = f"https://acme.example:{receiver.port}/"
        result = timed(lambda: trusting.deliver(a_delivery(url, within=SHORT)))
    assert result == Failed(detail="timeout after 0.3 s", retryable=True)


def test_a_handshake_that_never_ends_is_cut_off_at_the_deadline(trusting: HttpWebhooks) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://acme.example:{silent.getsockname()[1]}/"
        result = timed(lambda: trusting.deliver(a_delivery(url, within=SHORT)))
    assert result == Failed(detail="timeout after 0.3 s", retryable=True)
