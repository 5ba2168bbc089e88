"""What an occurrence costs, by the same count as `python -m bench.costs`."""

import pytest

from bench.costs import (
    CALLS_MAX,
    EXECUTED,
    EXECUTION_WRITE_UNITS_MAX,
    PLANNING_WRITE_UNITS_MAX,
    SCHEDULES,
    TENANTS,
    callbacks,
    execution,
    planning,
)
from bench.meter import bytes_of_item, bytes_of_value, read_units, write_units
from bench.requests import executing, sending, triggered
from puntual.domain.policies import Overlap


@pytest.mark.parametrize("shared", [True, False])
def test_planning_and_relaying_stay_within_their_budgets(shared: bool) -> None:  # noqa: FBT001
    planned, relayed = planning(shared=shared)
    units = planned.write_units + relayed.write_units
    calls = planned.all_calls + relayed.all_calls
    assert 2 <= units / SCHEDULES <= PLANNING_WRITE_UNITS_MAX
    assert 0.1 <= calls / SCHEDULES <= CALLS_MAX
    assert relayed.calls["SendMessageBatch"] == SCHEDULES / 10
    assert planned.calls["BatchGetItem"] == SCHEDULES / 100, "heads a page at a time"


def test_executing_stays_within_its_budget() -> None:
    bill = execution()
    assert bill.write_units / EXECUTED <= EXECUTION_WRITE_UNITS_MAX
    assert bill.calls == {"GetItem": 2 * EXECUTED + TENANTS, "PutItem": 2 * EXECUTED}, "breakers"


def test_a_slot_costs_its_transactions_and_one_read_and_only_those_that_have_one() -> None:
    bill = execution(Overlap.QUEUE_ONE)
    assert bill.write_units / EXECUTED == 8, "two transactions of two rows, each billed twice"
    reads = 3 * EXECUTED + TENANTS
    assert bill.calls == {"GetItem": reads, "TransactWriteItems": 2 * EXECUTED}


@pytest.mark.parametrize(("keyed", "units"), [(False, 3), (True, 4)])
def test_a_triggered_run_costs_its_page_and_its_row_and_a_record_under_a_key(
    keyed: bool,  # noqa: FBT001 a case
    units: int,
) -> None:
    assert sending(triggered(), keyed=keyed).write_units == units
    assert executing(triggered()).write_units == 2, "its row costs its execution nothing"


def test_a_callback_costs_the_record_of_its_202_and_a_write_for_each_call() -> None:
    delivered, beaten, ended = callbacks()
    units = [bill.write_units / EXECUTED for bill in (delivered, beaten, ended)]
    assert units == [2, 1, 1]
    assert delivered.calls["SendMessageBatch"] == EXECUTED, "who looks at the lease"
    assert beaten.calls == {
        "GetItem": 2 * EXECUTED,
        "PutItem": EXECUTED,
        "SendMessageBatch": EXECUTED,
    }
    assert ended.calls["PutItem"] == EXECUTED


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": "año"}, 4),
        ({"N": "0"}, 1),
        ({"N": "7"}, 2),
        ({"N": "1000000"}, 2),
        ({"N": "1234"}, 3),
        ({"N": "-12345"}, 5),
        ({"B": b"abc"}, 3),
        ({"BOOL": True}, 1),
        ({"NULL": True}, 1),
        ({"L": [{"S": "ab"}, {"N": "7"}]}, 3 + (1 + 2) + (1 + 2)),
        ({"M": {"k": {"S": "ab"}}}, 3 + 1 + 1 + 2),
    ],
)
def test_a_value_is_as_large_as_dynamodb_counts_it(value: dict[str, object], size: int) -> None:
    assert bytes_of_value(value) == size


def test_an_item_is_its_names_and_values_and_units_are_started_ones() -> None:
    assert bytes_of_item({"key": {"S": "a"}, "n": {"N": "7"}}) == 3 + 1 + 1 + 2
    assert [write_units(size) for size in (0, 1, 1024, 1025)] == [1, 1, 1, 2]
    assert [read_units(size) for size in (0, 4096, 4097)] == [1, 1, 2]
