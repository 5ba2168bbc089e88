from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from puntual.domain.errors import VALUE_SHOWN_LENGTH_MAX, Rejected
from puntual.domain.tenant import DEFAULT_QUOTAS, check_quotas, schedule_id_of, tenant_id_of

GOOD = ["a", "A-1_b.c", "0", "...", ".hidden", "x" * 64]
BAD = ["", "x" * 65, ".", "..", "a b", "a#b", "a/b", "ñ", "a\n", "a\x1f", "٣", None, 7, b"a", ["a"]]


@pytest.mark.parametrize("value", GOOD)
def test_a_plain_id_is_taken_as_it_is(value: str) -> None:
    assert tenant_id_of(value) == value
    assert schedule_id_of(value) == value


@pytest.mark.parametrize("value", BAD)
def test_an_id_that_could_be_mistaken_in_a_key_or_path_is_refused(value: object) -> None:
    with pytest.raises(Rejected) as tenant:
        tenant_id_of(value)
    with pytest.raises(Rejected) as schedule:
        schedule_id_of(value)
    assert (tenant.value.field, schedule.value.field) == ("tenant", "id")


def test_a_refusal_names_the_field_that_it_was_asked_about() -> None:
    with pytest.raises(Rejected) as caught:
        schedule_id_of("a b", field="schedule_id")
    assert "schedule_id: 'a b' is not allowed" in str(caught.value)


def test_a_refusal_repeats_only_the_start_of_what_it_refuses() -> None:
    with pytest.raises(Rejected) as caught:
        tenant_id_of("secret" * 1000)
    assert caught.value.value is not None
    assert len(caught.value.value) == VALUE_SHOWN_LENGTH_MAX + 1


QUOTA_BOUNDS = [
    ("schedules_max", 0, 20_000_000),
    ("fires_per_minute_max", 1, 3_000_000),
    ("running_max", 1, 1_000_000),
    ("catch_ups_per_minute", 1, 100_000),
    ("retries_per_minute", 1, 1_000_000),
    ("weight", 1, 100),
]


@pytest.mark.parametrize(("name", "least", "most"), QUOTA_BOUNDS)
def test_a_quota_beyond_its_bounds_is_refused_by_name(name: str, least: int, most: int) -> None:
    def checked(value: int) -> None:
        changed: dict[str, Any] = {name: value}
        check_quotas(replace(DEFAULT_QUOTAS, **changed))

    checked(least)
    checked(most)
    for value in (least - 1, most + 1):
        with pytest.raises(Rejected) as caught:
            checked(value)
        assert (caught.value.field, caught.value.value) == (f"quotas.{name}", str(value))
        assert caught.value.allowed == f"{least} to {most}"


@pytest.mark.parametrize("seconds", [-60, 0, 59, 86_401])
def test_an_interval_that_no_rule_could_be_judged_by_is_refused(seconds: int) -> None:
    for good in (60, 86_400):
        check_quotas(replace(DEFAULT_QUOTAS, smallest_interval=timedelta(seconds=good)))
    with pytest.raises(Rejected) as caught:
        check_quotas(replace(DEFAULT_QUOTAS, smallest_interval=timedelta(seconds=seconds)))
    assert caught.value.field == "quotas.smallest_interval_seconds"
