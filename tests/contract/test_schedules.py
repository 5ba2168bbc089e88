"""Heads and versions: each change one transaction with its cursor and its quota."""

from collections import Counter
from collections.abc import Collection
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from itertools import islice

import pytest
from pynamodb.exceptions import TransactWriteError

from puntual.adapters.dynamodb_schedules import DynamoDbSchedules
from puntual.application.ports import (
    AlreadyExists,
    Created,
    QuotaReached,
    SchedulePage,
    TenantUnknown,
    UnreadableHead,
)
from puntual.aws import WAITS
from puntual.domain.agenda import Cursor
from puntual.domain.errors import Unavailable
from puntual.domain.expression import Fold, Gap, Rule
from puntual.domain.forecast import RulePage
from puntual.domain.labels import label_filters_of
from puntual.domain.policies import Misfire, MisfirePolicy, Policies, RetryPolicy
from puntual.domain.schedule import Schedule, ScheduleKey, ScheduleState, ScheduleVersion
from puntual.domain.target import AwsTarget, Service
from puntual.domain.tenant import ScheduleId, TenantId
from tests.builders import (
    NINE,
    SCHEDULE,
    TENANT,
    a_cursor,
    a_rule,
    a_schedule,
    a_tenant,
    a_version,
)
from tests.contract.conftest import Aws, World
from tests.contract.sdk import leaving_unprocessed, recording, refusing, repeating, timing_out
from tests.fakes.in_memory_agenda import InMemoryAgenda
from tests.fakes.in_memory_schedules import InMemorySchedules
from tests.fakes.in_memory_tenants import InMemoryTenants

KEY = ScheduleKey(tenant=TENANT, schedule=SCHEDULE)
SHARD = 2
FULL_RULE = replace(
    a_rule("cron(0 9 ? * MON *)", time_zone="Europe/Madrid"),
    gap=Gap.FIRE_AFTER,
    fold=Fold.BOTH,
    start_at=NINE,
    end_at=NINE + timedelta(days=90, milliseconds=1),
)
FULL_POLICIES = Policies(
    misfire=MisfirePolicy(
        policy=Misfire.SKIP, after=timedelta(seconds=5), max_lateness=timedelta(days=2)
    ),
    retry=RetryPolicy(max_attempts=9, base=timedelta(seconds=1), cap=timedelta(hours=2)),
    window=timedelta(minutes=3),
)


def created(world: World, version: ScheduleVersion | None = None) -> ScheduleVersion:
    """Create a schedule of a registered tenant, with a cursor at its start."""
    made = version or a_version()
    if world.tenants.get(made.tenant) is None:
        world.tenants.register(a_tenant(made.tenant))
    cursor = a_cursor(made.effective_from, version=made)
    assert world.schedules.create(a_schedule(made), made, cursor, shard=SHARD) == Created()
    return made


def second(
    state: ScheduleState = ScheduleState.ACTIVE, *, author: str = "ana"
) -> tuple[Schedule, ScheduleVersion, Cursor]:
    version = a_version(version=2, state=state, author=author)
    return a_schedule(version), version, a_cursor(version.effective_from, version=version)


def count(world: World) -> int:
    tenant = world.tenants.get(TENANT)
    assert tenant is not None
    return tenant.schedules


def cursors_at(world: World, version: ScheduleVersion) -> tuple[Cursor, ...]:
    return world.agenda.due(SHARD, version.effective_from, limit=10)


def test_a_schedule_that_nobody_made_is_absent(world: World) -> None:
    assert world.schedules.head(KEY) is None
    assert world.schedules.version(KEY, 1) is None


@pytest.mark.parametrize(
    "version",
    [
        a_version(),
        a_version(
            rule=FULL_RULE,
            policies=FULL_POLICIES,
            target=AwsTarget(
                service=Service.EVENTBRIDGE,
                arn="arn:aws:events:us-east-1:123456789012:event-bus/orders",
                role_arn="arn:aws:iam::123456789012:role/puntual-target-a",
                source="acme.orders",
                detail_type="Order Due",
            ),
            payload='{"name":"¡olé! 🎉","half":"\\ud83d"}',
            request="fingerprint",
        ),
        a_version(payload="\ud83d"),
    ],
)
def test_a_schedule_is_read_as_it_was_created(world: World, version: ScheduleVersion) -> None:
    created(world, version)
    assert world.schedules.head(KEY) == a_schedule(version)
    assert world.schedules.version(KEY, 1) == version
    assert count(world) == 1


def test_a_first_cursor_is_part_of_the_creation(world: World) -> None:
    version = created(world)
    assert cursors_at(world, version) == (a_cursor(version.effective_from, version=version),)


def test_a_schedule_without_a_fire_has_no_cursor(world: World) -> None:
    world.tenants.register(a_tenant())
    version = a_version(state=ScheduleState.COMPLETED)
    head = a_schedule(version)
    assert world.schedules.create(head, version, None, shard=SHARD) == Created()
    assert world.schedules.head(KEY) == head
    assert cursors_at(world, version) == ()


def test_a_schedule_that_exists_is_not_created_over(world: World) -> None:
    version = created(world)
    other = a_version(author="eve")
    answer = world.schedules.create(a_schedule(other), other, None, shard=SHARD)
    assert answer == AlreadyExists()
    assert world.schedules.version(KEY, 1) == version
    assert count(world) == 1


def test_a_creation_that_is_repeated_finds_its_own(world: World) -> None:
    created(world)
    created(world)
    assert count(world) == 1


def test_a_creation_that_is_repeated_late_still_finds_its_own(world: World) -> None:
    created(world)
    head, version, cursor = second()
    assert world.schedules.advance(head, version, cursor, shard=SHARD)
    created(world)
    assert world.schedules.head(KEY) == head


def test_a_tenant_that_is_not_registered_creates_nothing(world: World) -> None:
    version = a_version()
    answer = world.schedules.create(a_schedule(version), version, a_cursor(), shard=SHARD)
    assert answer == TenantUnknown()
    assert world.schedules.head(KEY) is None
    assert cursors_at(world, version) == ()
    assert world.tenants.get(TENANT) is None


def test_a_quota_is_reached_by_the_schedule_beyond_it(world: World) -> None:
    world.tenants.register(a_tenant(schedules_max=2))
    for name in ("one", "two"):
        created(world, a_version(schedule=name))
    third = a_version(schedule="three")
    answer = world.schedules.create(a_schedule(third), third, a_cursor(version=third), shard=SHARD)
    assert answer == QuotaReached()
    assert world.schedules.head(third.key) is None
    assert world.schedules.version(third.key, 1) is None
    assert count(world) == 2


def test_a_schedule_that_exists_is_told_so_even_at_the_quota(world: World) -> None:
    world.tenants.register(a_tenant(schedules_max=1))
    created(world)
    created(world)
    other = a_version(author="eve")
    answer = world.schedules.create(a_schedule(other), other, None, shard=SHARD)
    assert answer == AlreadyExists()


def test_an_advance_ends_the_version_before_it(world: World) -> None:
    first = created(world)
    head, version, cursor = second()
    assert world.schedules.advance(head, version, cursor, shard=SHARD)
    assert world.schedules.head(KEY) == head
    assert world.schedules.version(KEY, 1) == replace(first, until=version.effective_from)
    assert world.schedules.version(KEY, 2) == version
    assert cursors_at(world, version) == (cursor,)
    assert cursors_at(world, first) == (a_cursor(first.effective_from, version=first),)
    assert count(world) == 1


def test_of_two_advances_from_one_version_one_is_lost(world: World) -> None:
    first = created(world)
    head, version, cursor = second()
    assert world.schedules.advance(head, version, cursor, shard=SHARD)
    late = replace(
        version, author="eve", effective_from=version.effective_from + timedelta(hours=9)
    )
    late_cursor = a_cursor(late.effective_from, version=late)
    assert not world.schedules.advance(a_schedule(late), late, late_cursor, shard=SHARD)
    assert world.schedules.version(KEY, 2) == version
    assert world.schedules.version(KEY, 1) == replace(first, until=version.effective_from)
    assert cursors_at(world, late) == ()


def test_an_advance_of_a_schedule_that_is_absent_is_lost(world: World) -> None:
    head, version, cursor = second()
    assert not world.schedules.advance(head, version, cursor, shard=SHARD)
    assert world.schedules.head(KEY) is None


def test_an_advance_that_is_repeated_finds_its_own(world: World) -> None:
    created(world)
    head, version, cursor = second()
    assert world.schedules.advance(head, version, cursor, shard=SHARD)
    assert world.schedules.advance(head, version, cursor, shard=SHARD)


def test_an_advance_that_is_repeated_late_still_finds_its_own(world: World) -> None:
    created(world)
    head, version, cursor = second()
    assert world.schedules.advance(head, version, cursor, shard=SHARD)
    third = a_version(version=3)
    assert world.schedules.advance(a_schedule(third), third, None, shard=SHARD)
    assert world.schedules.advance(head, version, cursor, shard=SHARD)
    assert world.schedules.head(KEY) == a_schedule(third)


def test_a_cancel_gives_the_quota_back_once(world: World) -> None:
    created(world)
    head, version, _ = second(ScheduleState.CANCELED)
    for _ in range(2):
        assert world.schedules.advance(head, version, None, shard=SHARD)
        assert count(world) == 0


def test_a_pause_keeps_its_place_in_the_quota(world: World) -> None:
    created(world)
    head, version, _ = second(ScheduleState.PAUSED)
    assert world.schedules.advance(head, version, None, shard=SHARD)
    assert count(world) == 1


def test_an_active_head_of_the_version_is_completed_once(world: World) -> None:
    version = created(world)
    assert not world.schedules.complete(KEY, 2)
    assert world.schedules.complete(KEY, 1)
    assert not world.schedules.complete(KEY, 1)
    assert world.schedules.head(KEY) == replace(a_schedule(version), state=ScheduleState.COMPLETED)


def test_a_head_that_moved_on_or_is_absent_is_not_completed(world: World) -> None:
    assert not world.schedules.complete(KEY, 1)
    created(world)
    head, version, _ = second(ScheduleState.PAUSED)
    world.schedules.advance(head, version, None, shard=SHARD)
    assert not world.schedules.complete(KEY, 1)
    assert not world.schedules.complete(KEY, 2)
    assert world.schedules.head(KEY) == head


def test_heads_are_read_a_hundred_at_a_time(world: World) -> None:
    versions = [a_version(schedule=f"job-{number:03d}") for number in range(100)]
    made = versions[::10]
    for version in made:
        created(world, version)
    heads = world.schedules.heads([version.key for version in versions])
    assert heads == {version.key: a_schedule(version) for version in made}
    assert world.schedules.heads([]) == {}


def listed(
    world: World,
    *,
    prefix: str = "",
    state: ScheduleState | None = None,
    after: str | None = None,
    limit: int = 10,
    tenant: str = TENANT,
    labels: tuple[str, ...] = (),
) -> SchedulePage:
    return world.schedules.listed(
        TenantId(tenant),
        prefix=prefix,
        state=state,
        after=None if after is None else ScheduleId(after),
        limit=limit,
        labels=label_filters_of(labels),
    )


def names(page: SchedulePage) -> list[str]:
    return [head.schedule for head in page.schedules]


@pytest.fixture
def five(world: World) -> World:
    """Five schedules of one tenant, of which `b-2` is paused, and one of another's."""
    for name in ("b-3", "a", "b-1", "c", "b-2"):
        created(world, a_version(schedule=name))
    created(world, a_version(tenant="other", schedule="b-9"))
    paused = a_version(schedule="b-2", version=2, state=ScheduleState.PAUSED)
    assert world.schedules.advance(a_schedule(paused), paused, None, shard=SHARD)
    return world


def test_a_listing_is_of_one_tenant_by_id(five: World) -> None:
    page = listed(five)
    assert names(page) == ["a", "b-1", "b-2", "b-3", "c"]
    assert page.after is None
    assert page.schedules[0] == a_schedule(a_version(schedule="a"))


def test_a_listing_is_filtered_by_prefix_and_state(five: World) -> None:
    assert names(listed(five, prefix="b-")) == ["b-1", "b-2", "b-3"]
    assert names(listed(five, state=ScheduleState.PAUSED)) == ["b-2"]
    assert names(listed(five, prefix="b-", state=ScheduleState.ACTIVE)) == ["b-1", "b-3"]
    assert names(listed(five, prefix="z")) == []
    assert names(listed(five, tenant="nobody")) == []


LABELED = {
    "a": (("env", "prod"), ("team", "billing")),
    "b": (("env", ""), ("team", "billing = big")),
    "c": (("team", "bill"), ("x/env", "prod")),
    "d": (),
}


@pytest.fixture
def labeled(world: World) -> World:
    for name, labels in LABELED.items():
        created(world, replace(a_version(schedule=name), labels=labels))
    return world


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (("team",), "abc"),
        (("team=billing",), "a"),
        (("team=billing = big",), "b"),
        (("env",), "ab"),
        (("env=",), "b"),
        (("env", "team=bill"), ""),
        (("env", "team=billing"), "a"),
        (("tea",), ""),
        (("nv",), ""),
        (("team=billin",), ""),
        (("missing",), ""),
    ],
)
def test_a_listing_is_filtered_by_labels(
    labeled: World, labels: tuple[str, ...], expected: str
) -> None:
    assert names(listed(labeled, labels=labels)) == list(expected)
    assert names(listed(labeled, labels=labels, state=ScheduleState.PAUSED)) == []


def test_heads_and_listings_give_the_labels(labeled: World) -> None:
    heads = {head.schedule: head for head in listed(labeled).schedules}
    for name, labels in LABELED.items():
        assert heads[ScheduleId(name)].labels == labels
        assert labeled.schedules.head(heads[ScheduleId(name)].key) == heads[ScheduleId(name)]
        version = labeled.schedules.version(heads[ScheduleId(name)].key, 1)
        assert version is not None
        assert version.labels == labels


def test_labels_go_with_the_edit_that_takes_them_off(labeled: World) -> None:
    bare = a_version(schedule="a", version=2)
    assert labeled.schedules.advance(a_schedule(bare), bare, None, shard=SHARD)
    assert names(listed(labeled, labels=("env=prod",))) == []


def test_versions_of_many_schedules_are_read_at_once(five: World) -> None:
    asked = {
        a_schedule(a_version(schedule=name)).key: number
        for name, number in {"a": 1, "b-2": 2, "c": 7, "absent": 1}.items()
    }
    versions = five.schedules.versions(asked)
    assert {key.schedule: version.version for key, version in versions.items()} == {
        "a": 1,
        "b-2": 2,
    }
    assert all(five.schedules.version(key, asked[key]) == each for key, each in versions.items())
    assert five.schedules.versions({}) == {}


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("state", [None, ScheduleState.ACTIVE])
def test_pages_of_a_listing_follow_each_other(
    five: World, limit: int, state: ScheduleState | None
) -> None:
    seen: list[str] = []
    after: str | None = None
    for _ in range(7):
        page = listed(five, state=state, after=after, limit=limit)
        assert len(page.schedules) <= limit
        seen += names(page)
        after = page.after
        if after is None:
            break
    assert after is None
    assert seen == names(listed(five, state=state))


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("a", ["b-1", "b-2", "b-3"]),
        ("b-1", ["b-2", "b-3"]),
        ("b-10", ["b-2", "b-3"]),
        ("b-3", []),
        ("c", []),
    ],
)
def test_a_listing_goes_on_after_any_id_within_its_prefix_or_not(
    five: World, after: str, expected: list[str]
) -> None:
    assert names(listed(five, prefix="b-", after=after)) == expected


def rules_of(world: World, tenant: str = TENANT) -> dict[Rule, int]:
    """Give the rules of the tenant's active schedules, with how many have them."""
    counts: Counter[Rule] = Counter()
    pages = list(world.schedules.active_rules(TenantId(tenant)))
    assert sum(page.share for page in pages) == 1
    for page in pages:
        assert page.unreadable == 0
        for rule, schedules in page.counts:
            counts[replace(rule, anchor=NINE)] += schedules
    return dict(counts)


def test_the_rules_of_active_schedules_are_counted(world: World) -> None:
    assert rules_of(world) == {}
    for number, rule in enumerate((a_rule("0 9 * * *"), a_rule("0 9 * * *"), FULL_RULE, a_rule())):
        made = replace(rule, anchor=NINE if rule.is_paced else NINE + timedelta(seconds=number))
        created(world, a_version(schedule=f"job-{number}", rule=made))
    created(world, a_version(tenant="other", rule=a_rule("7 7 * * *")))
    assert rules_of(world) == {a_rule("0 9 * * *"): 2, FULL_RULE: 1, a_rule(): 1}
    assert rules_of(world, "other") == {a_rule("7 7 * * *"): 1}
    assert rules_of(world, "nobody") == {}


def test_an_edit_changes_the_rule_that_is_counted(world: World) -> None:
    created(world)
    version = a_version(version=2, rule=a_rule("0 9 * * *"))
    assert world.schedules.advance(a_schedule(version), version, None, shard=SHARD)
    assert rules_of(world) == {a_rule("0 9 * * *"): 1}


@pytest.mark.parametrize(
    "state", [ScheduleState.PAUSED, ScheduleState.CANCELED, ScheduleState.COMPLETED]
)
def test_a_schedule_that_is_no_longer_active_is_not_counted(
    world: World, state: ScheduleState
) -> None:
    created(world)
    head, version, _ = second(state)
    assert world.schedules.advance(head, version, None, shard=SHARD)
    assert rules_of(world) == {}


def test_a_schedule_that_is_created_complete_is_not_counted(world: World) -> None:
    created(world, a_version(state=ScheduleState.COMPLETED))
    assert rules_of(world) == {}


def test_a_completed_schedule_is_not_counted_until_it_is_changed(world: World) -> None:
    created(world)
    assert world.schedules.complete(KEY, 1)
    assert rules_of(world) == {}
    head, version, _ = second()
    assert world.schedules.advance(head, version, None, shard=SHARD)
    assert rules_of(world) == {a_rule(): 1}


def test_the_fake_can_forget_its_own_writes() -> None:
    tenants = InMemoryTenants()
    tenants.register(a_tenant())
    schedules = InMemorySchedules(agenda=InMemoryAgenda(), tenants=tenants, knows_own_writes=False)
    version = a_version()
    assert schedules.create(a_schedule(version), version, None, shard=0) == Created()
    assert schedules.create(a_schedule(version), version, None, shard=0) == AlreadyExists()
    head, version, cursor = second()
    assert schedules.advance(head, version, cursor, shard=0)
    assert not schedules.advance(head, version, cursor, shard=0)


def test_transactions_that_the_sdk_repeats_are_successes(aws: Aws) -> None:
    # moto does not know transactions' tokens, so here the repetition is refused and P9 decides.
    with repeating(aws.connection.client, "TransactWriteItems"):
        created(aws.world)
        head, version, _ = second(ScheduleState.CANCELED)
        assert aws.schedules.advance(head, version, None, shard=SHARD)
    assert count(aws.world) == 0


def test_a_transaction_that_timed_out_is_unavailable_and_can_be_repeated(aws: Aws) -> None:
    aws.world.tenants.register(a_tenant())
    with timing_out(aws.connection.client, "TransactWriteItems"), pytest.raises(Unavailable):
        created(aws.world)
    created(aws.world)
    assert count(aws.world) == 1


def test_a_throttled_transaction_is_unavailable(aws: Aws) -> None:
    client = aws.connection.client
    with (
        refusing(client, "TransactWriteItems", "ThrottlingException"),
        pytest.raises(Unavailable, match="ThrottlingException"),
    ):
        created(aws.world)


def test_a_transaction_still_in_progress_is_waited_for(aws: Aws) -> None:
    code = "TransactionInProgressException"
    with refusing(aws.connection.client, "TransactWriteItems", code, times=1):
        created(aws.world)
    assert aws.naps == [WAITS[0]]


def test_a_transaction_that_is_refused_for_a_bug_is_not_swallowed(aws: Aws) -> None:
    aws.world.tenants.register(a_tenant())
    with (
        refusing(aws.connection.client, "TransactWriteItems", "ValidationException"),
        pytest.raises(TransactWriteError) as caught,
    ):
        created(aws.world)
    assert caught.value.cause_response_code == "ValidationException"


def test_a_conflict_is_waited_out_then_unavailable(aws: Aws) -> None:
    version = a_version()
    with (
        refusing(
            aws.connection.client,
            "TransactWriteItems",
            "TransactionCanceledException",
            reasons=["None", "None", "TransactionConflict"],
        ),
        pytest.raises(Unavailable, match="TransactionConflict"),
    ):
        aws.schedules.create(a_schedule(version), version, None, shard=SHARD)
    assert aws.naps == list(WAITS)


def test_a_quota_refused_beside_a_conflict_is_asked_again(aws: Aws) -> None:
    version = a_version()
    with (
        refusing(
            aws.connection.client,
            "TransactWriteItems",
            "TransactionCanceledException",
            reasons=["TransactionConflict", "None", "ConditionalCheckFailed"],
            times=1,
        ),
    ):
        assert aws.schedules.create(a_schedule(version), version, None, shard=0) == TenantUnknown()
    assert aws.naps == [WAITS[0]]


def test_heads_left_unprocessed_are_not_taken_for_absent(aws: Aws) -> None:
    versions = [a_version(schedule=f"job-{number}") for number in range(9)]
    for version in versions:
        created(aws.world, version)
    keys = [version.key for version in versions]
    with leaving_unprocessed(
        aws.dynamodb, "BatchGetItem", unprocessed="UnprocessedKeys", taken=2, times=9
    ) as calls:
        assert list(aws.schedules.heads(keys)) == keys
    assert calls == [9, 7, 5, 3, 1]
    with (
        leaving_unprocessed(
            aws.dynamodb, "BatchGetItem", unprocessed="UnprocessedKeys", taken=1, times=99
        ),
        pytest.raises(Unavailable),
    ):
        aws.schedules.heads(keys)


def test_versions_are_read_until_nothing_is_left_unprocessed(aws: Aws) -> None:
    versions = [a_version(schedule=f"job-{number}") for number in range(5)]
    for version in versions:
        created(aws.world, version)
    numbers = {version.key: 1 for version in versions}
    with leaving_unprocessed(
        aws.dynamodb, "BatchGetItem", unprocessed="UnprocessedKeys", taken=2, times=9
    ) as calls:
        assert aws.schedules.versions(numbers).keys() == numbers.keys()
    assert calls == [5, 3, 1]


ZONES = ("Europe/Berlin", "Europe/Copenhagen")


def in_zone(
    world: World, name: str, time_zone: str, *, state: ScheduleState = ScheduleState.ACTIVE
) -> Schedule:
    rule = a_rule("0 9 * * *", time_zone=time_zone)
    return a_schedule(created(world, a_version(schedule=name, rule=rule, state=state)))


def all_active_in(world: World, zones: Collection[str], *, limit: int) -> list[Schedule]:
    heads: list[Schedule] = []
    after: ScheduleKey | None = None
    for _ in range(20):
        page = world.schedules.active_in(zones, after=after, limit=limit)
        assert len(page.heads) <= limit
        heads.extend(head for head in page.heads if isinstance(head, Schedule))
        after = page.after
        if after is None:
            return heads
    raise AssertionError("the scan does not end")


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_a_scan_gives_each_active_head_of_some_zones_once(world: World, limit: int) -> None:
    expected = [in_zone(world, f"s-{n}", ZONES[n % 2]) for n in range(5)]
    for state in set(ScheduleState) - {ScheduleState.ACTIVE}:
        in_zone(world, f"{state}", ZONES[0], state=state)
    for zone in ("UTC", "Europe/Berlin2", "Europe"):
        in_zone(world, zone.replace("/", "."), zone)
    found = all_active_in(world, ZONES, limit=limit)
    assert sorted(found, key=lambda head: head.schedule) == expected


def test_a_scan_goes_on_behind_any_head_that_it_gave(world: World) -> None:
    expected = {in_zone(world, f"s-{n}", ZONES[0]).key for n in range(6)}
    page = world.schedules.active_in(ZONES, after=None, limit=100)
    assert {head.key for head in page.heads} == expected
    seen = page.heads[:3]
    rest = world.schedules.active_in(ZONES, after=seen[-1].key, limit=100)
    assert rest.heads == page.heads[3:]


def test_a_scan_for_more_zones_than_a_table_can_be_asked_for_is_as_right(world: World) -> None:
    berlin = in_zone(world, "berlin", "Europe/Berlin")
    in_zone(world, "utc", "UTC")
    many = [f"Etc/Zone-{n}" for n in range(150)]
    assert all_active_in(world, [*many, "Europe/Berlin"], limit=100) == [berlin]
    in_a_request = [*many[:99], "Europe/Berlin"]
    assert all_active_in(world, in_a_request, limit=100) == [berlin]


def test_a_scan_names_a_head_that_cannot_be_read(aws: Aws) -> None:
    good, bad = (in_zone(aws.world, name, ZONES[0]) for name in ("good", "bad"))
    aws.dynamodb.update_item(
        TableName="schedules",
        Key={"tenant_schedule": {"S": f"{bad.tenant}#{bad.schedule}"}},
        UpdateExpression="SET body = :body",
        ExpressionAttributeValues={":body": {"S": '{"time_zone":"Europe/Berlin"}'}},
    )
    page = aws.world.schedules.active_in(ZONES, after=None, limit=100)
    assert set(page.heads) == {good, UnreadableHead(key=bad.key)}


RULES = 60
RULES_PER_PAGE = 7


def spread_out(aws: Aws) -> DynamoDbSchedules:
    """Give schedules of more rules than a page of this reader holds."""
    for number in range(RULES):
        created(aws.world, a_version(schedule=f"job-{number}", rule=a_rule(f"{number} 9 * * *")))
    return replace(aws.schedules, rules_per_page=RULES_PER_PAGE)


def test_pages_of_rules_come_to_all_of_them_once(aws: Aws) -> None:
    schedules = spread_out(aws)
    pages = list(schedules.active_rules(TENANT))
    assert len(pages) >= RULES / RULES_PER_PAGE
    read = [rule.expression for page in pages for rule, _ in page.counts]
    assert sorted(read) == sorted(f"{number} 9 * * *" for number in range(RULES))
    assert sum(page.share for page in pages) == 1
    assert all(0 < page.share < 1 for page in pages)


def test_the_first_pages_are_the_same_sample_every_time(aws: Aws) -> None:
    schedules = spread_out(aws)

    def sample() -> list[RulePage]:
        with closing(schedules.active_rules(TENANT)) as pages:
            return list(islice(pages, 3))

    assert sample() == sample()
    assert sum(page.schedules for page in sample()) == pytest.approx(
        RULES * sum(page.share for page in sample()), rel=0.5
    )


def test_whoever_closes_the_pages_asks_for_no_more(aws: Aws) -> None:
    schedules = spread_out(aws)
    with recording(aws.dynamodb, "Query") as queries:
        with closing(schedules.active_rules(TENANT)) as pages:
            next(pages)
        assert len(queries) == 1


def test_rules_that_are_throttled_leave_the_others_to_stand_for_them(aws: Aws) -> None:
    schedules = spread_out(aws)
    pages = schedules.active_rules(TENANT)
    read = [next(pages)]
    with refusing(aws.dynamodb, "Query", "ThrottlingException", times=4):
        read += list(pages)
    share = sum(page.share for page in read)
    assert 0 < share < 1
    assert sum(page.schedules for page in read) < RULES


def test_rules_of_which_none_can_be_read_are_unavailable(aws: Aws) -> None:
    with (
        refusing(aws.dynamodb, "Query", "ThrottlingException"),
        pytest.raises(Unavailable),
    ):
        next(aws.schedules.active_rules(TENANT))


def test_only_the_rule_of_a_schedule_is_read(aws: Aws) -> None:
    created(aws.world)
    with recording(aws.dynamodb, "Query") as queries:
        rules_of(aws.world)
    (query,) = queries
    assert (query["IndexName"], query["ProjectionExpression"]) == ("by_spread", "spread")
