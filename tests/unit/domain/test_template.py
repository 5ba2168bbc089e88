import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puntual.domain.template import PLACEHOLDERS, longest_values_of, rendered, values_of
from tests.builders import an_occurrence

OCCURRENCE = an_occurrence(scheduled_for=datetime(2026, 7, 1, 7, 0, tzinfo=UTC))
VALUES = values_of(OCCURRENCE, attempt=3, time_zone="Europe/Madrid")

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # Lone surrogates are refused when a payload is taken in.
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.sampled_from(PLACEHOLDERS).map("<{}>".format),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=12,
)


def text_of(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scheduled_for", "2026-07-01T07:00:00.000Z"),
        ("occurrence_id", OCCURRENCE.id),
        ("attempt", "3"),
        ("schedule_id", "invoices"),
        ("local_time", "2026-07-01T09:00:00+02:00"),
    ],
)
def test_a_placeholder_is_replaced_wherever_it_stands_in_a_string(name: str, value: str) -> None:
    payload = text_of({"a": [f"<{name}>", {"b": f"x<{name}><{name}>y"}]})
    assert json.loads(rendered(payload, VALUES)) == {"a": [value, {"b": f"x{value}{value}y"}]}


@pytest.mark.parametrize(
    "payload",
    [
        '{"a":"<unknown>"}',
        '{"a":"<Attempt>"}',
        '{"a":"< attempt >"}',
        '{"a":"<attempt"}',
        '{"a":"<attempt.__class__>"}',
        '{"a":"{attempt} $attempt %(attempt)s"}',
        '{"a": 1.50, "b": "as it was written"}',
        "null",
    ],
)
def test_everything_else_stays_as_it_is_to_the_byte(payload: str) -> None:
    assert rendered(payload, VALUES) == payload


def test_names_of_members_stay() -> None:
    payload = '{"<attempt>":"<attempt>"}'
    assert rendered(payload, VALUES) == '{"<attempt>":"3"}'


def test_a_value_is_not_looked_at_again() -> None:
    values = dict.fromkeys(PLACEHOLDERS, "<attempt>")
    assert rendered('["<schedule_id>"]', values) == '["<attempt>"]'


def test_a_value_cannot_break_out_of_its_string() -> None:
    values = dict.fromkeys(PLACEHOLDERS, '","admin":true,"x":"\\')
    assert json.loads(rendered('{"a":"<attempt>"}', values)) == {"a": values["attempt"]}


@given(JSON)
def test_only_strings_change_and_the_rest_comes_out_as_it_went_in(value: object) -> None:
    def replaced(each: object) -> object:
        match each:
            case str():
                for name in PLACEHOLDERS:
                    each = each.replace(f"<{name}>", VALUES[name])
                return each
            case list():
                return [replaced(inner) for inner in each]
            case dict():
                return {name: replaced(inner) for name, inner in each.items()}
        return each

    assert json.loads(rendered(text_of(value), VALUES)) == replaced(value)


@given(
    st.datetimes(datetime(2000, 1, 1), datetime(2399, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 bounds have no zone
    st.integers(1, 20),
    st.sampled_from(["UTC", "Asia/Kathmandu", "America/St_Johns", "Pacific/Kiritimati"]),
)
def test_no_value_is_longer_than_the_longest(when: datetime, attempt: int, zone: str) -> None:
    occurrence = an_occurrence(scheduled_for=when.replace(microsecond=0))
    values = values_of(occurrence, attempt=attempt, time_zone=zone)
    longest = longest_values_of(an_occurrence())
    assert all(len(values[name]) <= len(longest[name]) for name in PLACEHOLDERS)
