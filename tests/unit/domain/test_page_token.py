"""Page tokens: what `page_token` gave comes back, and any other text is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puntual.domain.page_token import ForeignPageToken, page_token, position_of
from tests.builders import a_forged_page_token

LISTING = ("schedules", "acme")


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=40), max_size=4).map(tuple))
def test_a_position_comes_back(position: tuple[str, ...]) -> None:
    token = page_token(position, listing=LISTING)
    assert position_of(token, listing=LISTING, length=len(position)) == position


def test_a_token_can_be_forged() -> None:
    forged = a_forged_page_token(b'["a"]', listing=LISTING)
    assert forged == page_token(("a",), listing=LISTING)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"xx",
        b"5",
        b"null",
        b"[]",
        b"[7]",
        b"[null]",
        b'["a","b"]',
        b'{"a":"b"}',
        b'"a"',
        b"\xff\xfe",
        b"[" * 700,
        b"9" * 700,
    ],
)
def test_content_that_is_not_ours_is_refused_though_its_digest_is_right(content: bytes) -> None:
    token = a_forged_page_token(content, listing=LISTING)
    with pytest.raises(ForeignPageToken) as caught:
        position_of(token, listing=LISTING, length=1)
    assert caught.value.field == "page_token"


@given(st.binary(max_size=60))
def test_no_content_does_more_than_be_refused(content: bytes) -> None:
    token = a_forged_page_token(content, listing=LISTING)
    try:
        (text,) = position_of(token, listing=LISTING, length=1)
    except ForeignPageToken:
        return
    assert isinstance(text, str)


@given(st.text(max_size=60))
def test_no_text_does_more_than_be_refused(token: str) -> None:
    with pytest.raises(ForeignPageToken):
        position_of(token, listing=LISTING, length=1)
