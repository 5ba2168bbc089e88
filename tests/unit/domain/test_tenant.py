import pytest

from puntual.domain.errors import VALUE_SHOWN_LENGTH_MAX, Rejected
from puntual.domain.tenant import schedule_id_of, tenant_id_of

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
