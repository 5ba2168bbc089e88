import base64
import hashlib
import hmac
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puntual.domain.callback_token import TOKEN_LENGTH_MAX, Ticket, UnknownCallback
from puntual.domain.callback_token import ticket_of as read
from puntual.domain.callback_token import token_of as make
from puntual.domain.occurrence import Kind
from tests.builders import NINE, an_occurrence

ROOT = b"the root"
TICKET = Ticket(occurrence=an_occurrence(), attempt=1)
TOKEN = make(TICKET, root=ROOT)
LONGEST = Ticket(
    occurrence=an_occurrence(
        tenant="t" * 64,
        schedule="s" * 64,
        version=1_000_000,
        kind=Kind.BACKFILL,
        request_id="r" * 64,
    ),
    attempt=20,
)


@pytest.mark.parametrize(
    "ticket",
    [
        TICKET,
        LONGEST,
        replace(TICKET, attempt=20),
        Ticket(occurrence=an_occurrence(kind=Kind.MANUAL, request_id="0f" * 16), attempt=3),
    ],
)
def test_a_token_names_its_attempt_itself(ticket: Ticket) -> None:
    assert read(make(ticket, root=ROOT), root=ROOT) == ticket


def test_tokens_fit_a_path_as_they_are() -> None:
    longest = make(LONGEST, root=ROOT)
    assert len(longest) <= TOKEN_LENGTH_MAX
    assert all(each.isalnum() or each in "-_" for each in longest + TOKEN)


def test_the_code_is_made_with_a_key_of_its_own() -> None:
    raw = base64.urlsafe_b64decode(TOKEN + "=" * (-len(TOKEN) % 4))
    key = hmac.digest(b"puntual callback tokens", ROOT, hashlib.sha256)
    assert raw[:16] == hmac.digest(key, raw[16:], hashlib.sha256)[:16]
    assert raw[:16] != hmac.digest(ROOT, raw[16:], hashlib.sha256)[:16]


@pytest.mark.parametrize(
    "other",
    [
        replace(TICKET, attempt=2),
        replace(TICKET, occurrence=an_occurrence(version=2)),
        replace(TICKET, occurrence=an_occurrence(tenant="rival")),
        replace(TICKET, occurrence=an_occurrence(schedule="other")),
        replace(TICKET, occurrence=an_occurrence(scheduled_for=NINE + timedelta(minutes=5))),
        replace(TICKET, occurrence=an_occurrence(kind=Kind.MANUAL, request_id="r")),
    ],
)
def test_no_other_attempt_shares_a_token_nor_its_code(other: Ticket) -> None:
    token = make(other, root=ROOT)
    assert token[:20] != TOKEN[:20]
    with pytest.raises(UnknownCallback):
        read(TOKEN[:20] + token[20:], root=ROOT)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "-",
        "not a token",
        "ñ",
        "A" * 16,
        TOKEN[:-1],
        TOKEN[1:],
        TOKEN + "A",
        TOKEN + "=",
        TOKEN.upper(),
        TOKEN + "\n",
        "A" * (TOKEN_LENGTH_MAX + 1),
        make(TICKET, root=b"another root"),
    ],
)
def test_any_other_text_is_unknown_and_shown_to_nobody(token: str) -> None:
    with pytest.raises(UnknownCallback) as caught:
        read(token, root=ROOT)
    assert (caught.value.value, str(caught.value)) == (
        "(not shown)",
        str(UnknownCallback()),
    )


@given(place=st.integers(0, len(TOKEN) - 1), letter=st.sampled_from("ABCxyz019-_"))
def test_a_token_with_any_other_letter_is_unknown(place: int, letter: str) -> None:
    forged = TOKEN[:place] + letter + TOKEN[place + 1 :]
    if forged != TOKEN:
        with pytest.raises(UnknownCallback):
            read(forged, root=ROOT)
