"""Lines: their numbers, their ends, and the ids that are named in them."""

import pytest

from puntual.domain.ndjson import lines_of


def test_blank_lines_count_and_are_left_out() -> None:
    lines = list(lines_of(b'\n{"id":"a"}\r\n \t\r\n{"id":"b"}'))
    assert [(line.number, line.content, line.named) for line in lines] == [
        (2, b'{"id":"a"}', "a"),
        (4, b'{"id":"b"}', "b"),
    ]


@pytest.mark.parametrize("content", [b"", b"\n", b"\r\n\r\n", b"\xef\xbb\xbf"])
def test_a_file_may_have_no_lines(content: bytes) -> None:
    assert list(lines_of(content)) == []


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    (line,) = lines_of(b'\xef\xbb\xbf{"id":"a"}')
    assert line.named == "a"


@pytest.mark.parametrize(
    "content",
    [
        b'{"id":',
        b'{"id":7}',
        b'{"id":null}',
        b"{}",
        b'["id"]',
        b'"id"',
        b"\xff\xfe",
        b'{"id":"\xff"}',
        b"[" * 100_000,
        b"9" * 5_000,
    ],
)
def test_a_line_that_names_no_id_is_a_line_all_the_same(content: bytes) -> None:
    (line,) = lines_of(content)
    assert line.named is None
