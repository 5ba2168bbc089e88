"""Refusals name the field, the value and what is allowed there."""

import pytest

from puntual.domain.errors import Rejected


def test_a_refusal_names_field_value_and_what_is_allowed() -> None:
    assert str(Rejected("limit", 0, "1 to 100")) == "limit: 0 is not allowed; allowed: 1 to 100"


@pytest.mark.parametrize(("value", "told"), [("x", "'x'"), (True, "true"), (1.5, "1.5")])
def test_a_refusal_tells_a_value_as_its_caller_writes_it(value: object, told: str) -> None:
    assert str(Rejected("limit", value, "1")) == f"limit: {told} is not allowed; allowed: 1"


def test_a_value_that_is_missing_is_called_missing() -> None:
    assert str(Rejected("target", None, "a value")) == "target: it is missing; allowed: a value"
