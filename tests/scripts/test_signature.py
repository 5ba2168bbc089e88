"""A receiver's check of signatures: ours, and the one that docs/webhooks.md gives away."""

import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from puntual.domain.webhook_keys import keys_of, signature_headers
from scripts.signature import is_signed
from tests.builders import a_tenant

DOCUMENT = Path(__file__).parents[2] / "docs" / "webhooks.md"
BODY = b'{"order":7}'
KEYS = keys_of(a_tenant(key_generation=2), root=b"root")
NEW, OLD = (key.text for key in KEYS)

Check = Callable[[Mapping[str, str], bytes, list[str]], bool]


def documented() -> Check:
    code = re.search(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {}
    exec(code[1], names)  # noqa: S102 our own document
    check: Check = names["is_from_puntual"]
    return check


@pytest.fixture(params=["ours", "documented"])
def check(request: pytest.FixtureRequest) -> Check:
    if request.param == "documented":
        return documented()
    return lambda headers, body, keys: is_signed(headers, body, keys, now=time.time())


def headers_of(*, seconds_from_now: int = 0) -> dict[str, str]:
    return signature_headers(
        tuple(key.secret for key in KEYS),
        message_id="m1",
        sent_at=datetime.fromtimestamp(time.time() + seconds_from_now, tz=UTC),
        body=BODY,
    )


@pytest.mark.parametrize("keys", [[NEW], [OLD], [OLD, NEW]])
def test_either_key_of_a_rotation_is_enough(check: Check, keys: list[str]) -> None:
    assert check(headers_of(), BODY, keys)


def test_another_tenants_key_is_not(check: Check) -> None:
    (other,) = keys_of(a_tenant("globex"), root=b"root")
    assert not check(headers_of(), BODY, [other.text])
    assert not check(headers_of(), BODY, [])


@pytest.mark.parametrize(
    "changed",
    [
        {"webhook-id": "m2"},
        {"webhook-timestamp": "0"},
        {"webhook-timestamp": str(2**40)},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,"},
    ],
)
def test_nothing_of_what_was_signed_may_be_changed(check: Check, changed: dict[str, str]) -> None:
    assert not check(headers_of() | changed, BODY, [NEW])


def test_not_even_a_byte_of_the_body_may_be_changed(check: Check) -> None:
    assert not check(headers_of(), BODY + b" ", [NEW])


@pytest.mark.parametrize("seconds", [-400, 400])
def test_a_request_of_another_time_is_refused(check: Check, seconds: int) -> None:
    assert not check(headers_of(seconds_from_now=seconds), BODY, [NEW])
