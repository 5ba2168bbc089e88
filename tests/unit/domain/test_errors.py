"""Refusals name the field, the value and what is allowed there."""

from puntual.domain.errors import Rejected


def test_a_refusal_names_field_value_and_what_is_allowed() -> None:
    assert str(Rejected("limit", 0, "1 to 100")) == "limit: 0 is not allowed; allowed: 1 to 100"


def test_a_value_that_is_missing_is_called_missing() -> None:
    assert str(Rejected("target", None, "a value")) == "target: it is missing; allowed: a value"
