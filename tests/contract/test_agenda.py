"""The agenda: cursors by bucket and shard, whole batches or none of the credit."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from puntual.application.ports import Agenda
from puntual.aws import WAITS
from puntual.domain.agenda import Cursor, Recovery
from puntual.domain.errors import Unavailable
from puntual.domain.instant import HOUR, MINUTE
from puntual.domain.policies import Policies
from tests.builders import NINE, a_cursor, a_version
from tests.contract.conftest import Aws, World
from tests.contract.sdk import leaving_unprocessed, refusing, repeating

SECOND = timedelta(seconds=1)
SHARD = 3


@pytest.fixture
def agenda(world: World) -> Agenda:
    return world.agenda


def some_cursors(count: int) -> tuple[Cursor, ...]:
    return tuple(
        a_cursor(version=a_version(schedule=f"job-{number:03d}")) for number in range(count)
    )


def test_a_bucket_that_nobody_filled_is_empty(agenda: Agenda) -> None:
    assert agenda.due(SHARD, NINE, limit=10) == ()


def test_a_cursor_is_read_as_it_was_put(agenda: Agenda) -> None:
    plain = a_cursor()
    jittered = a_cursor(
        version=a_version(version=12, policies=Policies(window=timedelta(seconds=50)))
    )
    assert jittered.available_at != jittered.scheduled_for
    agenda.put(SHARD, [plain, jittered])
    assert set(agenda.due(SHARD, NINE, limit=10)) == {plain, jittered}


def test_cursors_are_due_in_the_order_of_their_time(agenda: Agenda) -> None:
    cursors = [a_cursor(NINE + n * SECOND) for n in (0, 2, 10, 59)]
    agenda.put(SHARD, list(reversed(cursors)))
    assert agenda.due(SHARD, NINE, limit=10) == tuple(cursors)
    assert agenda.due(SHARD, NINE, limit=2) == tuple(cursors[:2])


def test_a_bucket_is_of_one_minute_and_one_shard(agenda: Agenda) -> None:
    agenda.put(SHARD, [a_cursor()])
    agenda.put(SHARD, [a_cursor(NINE + timedelta(minutes=1))])
    agenda.put(SHARD + 1, [a_cursor(NINE + SECOND)])
    assert agenda.due(SHARD, NINE, limit=10) == (a_cursor(),)


def test_behind_a_cursor_comes_nothing_else_of_its_tenant_at_its_instant(agenda: Agenda) -> None:
    tenants = ("a", "noisy", "noisy-2", "noisy.too", "noisyz", "z")
    versions = [
        a_version(tenant=tenant, schedule=schedule) for tenant in tenants for schedule in ("s", "z")
    ]
    now = [a_cursor(version=version) for version in versions]
    later = [a_cursor(NINE + SECOND, version=version) for version in versions]
    agenda.put(SHARD, [*now, *later])
    expected = tuple(cursor for cursor in now if cursor.tenant not in {"a", "noisy"}) + tuple(later)
    assert agenda.due(SHARD, NINE, limit=100, behind=now[2]) == expected
    assert agenda.due(SHARD, NINE, limit=100, behind=now[3]) == expected
    assert agenda.due(SHARD, NINE, limit=3, behind=now[2]) == expected[:3]
    assert agenda.due(SHARD, NINE, limit=100, behind=later[-1]) == ()


def test_putting_again_changes_nothing(agenda: Agenda) -> None:
    agenda.put(SHARD, [a_cursor()])
    agenda.put(SHARD, [a_cursor(), a_cursor()])
    assert agenda.due(SHARD, NINE, limit=10) == (a_cursor(),)


def test_versions_of_one_schedule_have_cursors_of_their_own(agenda: Agenda) -> None:
    cursors = [a_cursor(version=a_version(version=version)) for version in (1, 2)]
    agenda.put(SHARD, cursors)
    agenda.delete(SHARD, cursors[:1])
    assert agenda.due(SHARD, NINE, limit=10) == (cursors[1],)


def test_deleting_what_is_not_there_changes_nothing(agenda: Agenda) -> None:
    agenda.put(SHARD, [a_cursor()])
    agenda.delete(SHARD, [a_cursor(NINE + SECOND)])
    agenda.delete(SHARD + 1, [a_cursor()])
    assert agenda.due(SHARD, NINE, limit=10) == (a_cursor(),)


def test_nothing_may_be_put_or_deleted(agenda: Agenda) -> None:
    agenda.put(SHARD, [])
    agenda.delete(SHARD, [])


@pytest.mark.parametrize("count", [25, 26, 100])
def test_a_page_of_cursors_is_put_and_deleted_whole(agenda: Agenda, count: int) -> None:
    cursors = some_cursors(count)
    agenda.put(SHARD, cursors)
    assert agenda.due(SHARD, NINE, limit=200) == cursors
    agenda.delete(SHARD, cursors)
    assert agenda.due(SHARD, NINE, limit=200) == ()


def a_recovery(
    fire: datetime = NINE - HOUR, *, due: datetime = NINE, last: datetime = NINE, left: int = 7
) -> Cursor:
    recovery = Recovery(last=last, left=left)
    return replace(a_cursor(fire), available_at=due, recovery=recovery)


def test_a_recovery_cursor_is_read_as_it_was_put_behind_all_regular_ones(agenda: Agenda) -> None:
    recoveries = (a_recovery(last=NINE - MINUTE), a_recovery())
    for cursor in reversed(recoveries):
        agenda.recover(SHARD, cursor)
    agenda.put(SHARD, [a_cursor(NINE + 59 * SECOND)])
    due = agenda.due(SHARD, NINE, limit=10)
    assert due == (a_cursor(NINE + 59 * SECOND), *recoveries)


def test_of_two_recoveries_of_one_range_the_one_that_came_further_stays(agenda: Agenda) -> None:
    further = a_recovery(NINE - HOUR + MINUTE, left=3)
    for cursor in (a_recovery(), further, a_recovery(), further):
        agenda.recover(SHARD, cursor)
    assert agenda.due(SHARD, NINE, limit=10) == (further,)


def test_recoveries_of_other_minutes_and_ranges_stay_apart(agenda: Agenda) -> None:
    later = a_recovery(due=NINE + MINUTE)
    other = a_recovery(last=NINE - MINUTE)
    for cursor in (a_recovery(), later, other):
        agenda.recover(SHARD, cursor)
    agenda.delete(SHARD, [a_recovery()])
    assert agenda.due(SHARD, NINE, limit=10) == (other,)
    assert agenda.due(SHARD, NINE + MINUTE, limit=10) == (later,)


def test_a_recovery_cursor_in_quarantine_is_not_due(agenda: Agenda) -> None:
    agenda.quarantine(SHARD, a_recovery(), reason="KeyError: 'rule'")
    assert agenda.due(SHARD, NINE, limit=10) == ()


def test_a_cursor_in_quarantine_is_not_due(agenda: Agenda) -> None:
    agenda.quarantine(SHARD, a_cursor(), reason="KeyError: 'rule'")
    agenda.quarantine(SHARD, a_cursor(), reason="again")
    assert agenda.due(SHARD, NINE, limit=10) == ()


def test_quarantine_keeps_cursor_and_first_reason(aws: Aws) -> None:
    aws.agenda.quarantine(SHARD, a_cursor(), reason="x" * 2000)
    aws.agenda.quarantine(SHARD, a_cursor(), reason="again")
    (row,) = aws.dynamodb.scan(TableName="agenda")["Items"]
    assert row["bucket"] == {"S": f"quarantine#{SHARD}"}
    assert row["cursor"] == {"S": "2026-11-30T09:00:00.000Z#acme#invoices#1"}
    assert row["scheduled_for"] == {"S": "2026-11-30T09:00:00.000Z"}
    assert row["reason"]["S"].strip("x") == ""


def test_what_a_batch_left_unprocessed_is_sent_again(aws: Aws) -> None:
    cursors = some_cursors(25)
    with leaving_unprocessed(
        aws.dynamodb, "BatchWriteItem", unprocessed="UnprocessedItems", taken=10, times=2
    ) as calls:
        aws.agenda.put(SHARD, cursors)
    assert calls == [25, 15, 5]
    assert aws.agenda.due(SHARD, NINE, limit=100) == cursors
    assert aws.naps == list(WAITS[:2])


def test_a_batch_that_is_never_done_is_unavailable(aws: Aws) -> None:
    cursors = some_cursors(25)
    with (
        leaving_unprocessed(
            aws.dynamodb, "BatchWriteItem", unprocessed="UnprocessedItems", taken=1, times=99
        ),
        pytest.raises(Unavailable),
    ):
        aws.agenda.put(SHARD, cursors)
    assert aws.agenda.due(SHARD, NINE, limit=100) == cursors[: len(WAITS) + 1]
    aws.agenda.put(SHARD, cursors)
    assert aws.agenda.due(SHARD, NINE, limit=100) == cursors


def test_a_batch_that_the_sdk_repeats_is_done_once(aws: Aws) -> None:
    with repeating(aws.dynamodb, "BatchWriteItem"):
        aws.agenda.put(SHARD, some_cursors(3))
    assert aws.agenda.due(SHARD, NINE, limit=100) == some_cursors(3)


def test_a_bug_is_not_taken_for_bad_weather(aws: Aws) -> None:
    broken = replace(aws.agenda, table="no-such-table")
    with pytest.raises(aws.dynamodb.exceptions.ResourceNotFoundException):
        broken.put(SHARD, [a_cursor()])


@pytest.mark.parametrize("code", ["ProvisionedThroughputExceededException", "InternalServerError"])
def test_throttles_and_server_errors_are_unavailable(aws: Aws, code: str) -> None:
    with refusing(aws.dynamodb, "BatchWriteItem", code), pytest.raises(Unavailable) as caught:
        aws.agenda.put(SHARD, [a_cursor()])
    assert code in str(caught.value)
