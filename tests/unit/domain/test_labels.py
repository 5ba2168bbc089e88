"""Labels: what they may be, and which filters take them."""

import pytest

from puntual.domain.errors import Rejected
from puntual.domain.labels import (
    FILTERS_MAX,
    KEY_LENGTH_MAX,
    LABELS_BYTES_MAX,
    LABELS_MAX,
    VALUE_LENGTH_MAX,
    LabelFilter,
    label_filters_of,
    labels_of,
)


def test_labels_are_kept_in_the_order_of_their_keys() -> None:
    assert labels_of({"team": "billing", "env": "prod"}) == (("env", "prod"), ("team", "billing"))
    assert labels_of({}) == ()


@pytest.mark.parametrize(
    "label",
    [
        ("k" * KEY_LENGTH_MAX, "v" * VALUE_LENGTH_MAX),
        ("Aa0._/-", ""),
        ("x", "a = b, ñ 日"),
    ],
)
def test_the_longest_and_the_oddest_labels_are_taken(label: tuple[str, str]) -> None:
    assert labels_of(dict([label])) == (label,)


@pytest.mark.parametrize(
    ("labels", "field", "allowed"),
    [
        ({"": "x"}, "labels", "1 to 63"),
        ({"k" * (KEY_LENGTH_MAX + 1): "x"}, "labels", "1 to 63"),
        ({"a=b": "x"}, "labels", "1 to 63"),
        ({"ñ": "x"}, "labels", "1 to 63"),
        ({"a\n": "x"}, "labels", "1 to 63"),
        ({"a": "x" * (VALUE_LENGTH_MAX + 1)}, "labels.a", "up to 255"),
        ({"a": "x\ny"}, "labels.a", "printable"),
        ({"a": "\u2028"}, "labels.a", "printable"),
        ({"a": "\ud800"}, "labels.a", "printable"),
        ({f"k{n}": "" for n in range(LABELS_MAX + 1)}, "labels", "at most 20"),
        ({f"k{n}": "ñ" * 100 for n in range(LABELS_MAX)}, "labels", f"{LABELS_BYTES_MAX} bytes"),
    ],
)
def test_what_is_no_label_is_refused_by_name(
    labels: dict[str, str], field: str, allowed: str
) -> None:
    with pytest.raises(Rejected) as caught:
        labels_of(labels)
    assert caught.value.field == field
    assert allowed in caught.value.allowed


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("team", True),
        ("team=billing", True),
        ("team=bill", False),
        ("team=", False),
        ("empty=", True),
        ("empty", True),
        ("tea", False),
    ],
)
def test_a_filter_takes_a_key_or_a_key_with_its_value(text: str, taken: bool) -> None:  # noqa: FBT001 what the table says
    (label,) = label_filters_of([text])
    assert label.text == text
    assert label.takes((("empty", ""), ("team", "billing"))) is taken


def test_filters_are_the_same_in_any_order_and_however_often() -> None:
    asked = label_filters_of(["b=1", "a", "a"])
    assert asked == (LabelFilter(key="a"), LabelFilter(key="b", value="1"))
    assert asked == label_filters_of(["a", "b=1"])


@pytest.mark.parametrize(
    "texts", [[""], ["=x"], ["a b"], ["a=\n"], [f"k{n}" for n in range(FILTERS_MAX + 1)]]
)
def test_what_is_no_filter_is_refused(texts: list[str]) -> None:
    with pytest.raises(Rejected) as caught:
        label_filters_of(texts)
    assert caught.value.field == "label"
