"""Exporting page by page; what comes out goes in again and says the same."""

from datetime import datetime, timedelta

import pytest

from puntual.application.export_schedules import PAGE_BYTES_MAX, ExportedSchedules
from puntual.domain.errors import Rejected
from puntual.domain.labels import label_filters_of
from puntual.domain.schedule import ScheduleKey, ScheduleState
from puntual.domain.tenant import ScheduleId, TenantId, UnknownTenant
from tests.builders import NINE, TENANT, a_tenant
from tests.control_plane_world import AUTHOR, World
from tests.fakes.manual_clock import ManualClock

OTHER = TenantId("globex")


def exported(
    world: World,
    *,
    state: ScheduleState | None = None,
    labels: tuple[str, ...] = (),
    prefix: str = "",
    limit: int = 1000,
    token: str | None = None,
    weight: int = 1,
    tenant: TenantId = TENANT,
) -> ExportedSchedules:
    return world.plane.export_schedules(
        tenant,
        prefix=prefix,
        state=state,
        labels=label_filters_of(labels),
        limit=limit,
        token=token,
        write=lambda version: version.schedule,
        weigh=lambda _: weight,
    )


def paged(world: World, **asked: object) -> list[tuple[str, ...]]:
    pages, token = list[tuple[str, ...]](), None
    for _ in range(300):
        page = exported(world, token=token, **asked)  # type: ignore[arg-type]
        pages.append(page.lines)
        token = page.page_token
        if token is None:
            return pages
    raise AssertionError("paging does not end")


@pytest.fixture
def five(world: World) -> World:
    for name in "cabed":
        world.created(schedule=name, labels={"of": name, "in": "all"})
    for name, change in (("b", world.plane.cancel_schedule), ("d", world.plane.pause_schedule)):
        change(ScheduleKey(tenant=TENANT, schedule=ScheduleId(name)), author=AUTHOR)
    return world


def test_canceled_schedules_are_left_out_unless_asked_for(five: World) -> None:
    assert exported(five) == ExportedSchedules(lines=("a", "c", "d", "e"), page_token=None)
    assert exported(five, state=ScheduleState.CANCELED).lines == ("b",)
    assert exported(five, state=ScheduleState.PAUSED).lines == ("d",)


def test_an_export_is_filtered_by_labels_and_prefix(five: World) -> None:
    assert exported(five, labels=("of=c",)).lines == ("c",)
    assert exported(five, labels=("in", "of=c")).lines == ("c",)
    assert exported(five, prefix="d").lines == ("d",)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_give_each_schedule_once(five: World, limit: int) -> None:
    pages = paged(five, limit=limit)
    assert [line for page in pages for line in page] == ["a", "c", "d", "e"]
    assert all(len(page) <= limit for page in pages)


def test_a_page_ends_before_it_is_too_large(five: World) -> None:
    assert paged(five, weight=PAGE_BYTES_MAX // 3) == [("a", "c", "d"), ("e",)]
    assert paged(five, weight=PAGE_BYTES_MAX * 2) == [("a",), ("c",), ("d",), ("e",)]


def test_more_than_are_read_at_once_come_in_their_order(world: World) -> None:
    world.tenants.register(a_tenant(schedules_max=250))
    names = [f"s{n:03}" for n in range(250)]
    for name in names:
        world.created(schedule=name)
    assert paged(world) == [tuple(names)]
    assert [len(page) for page in paged(world, limit=120)] == [120, 120, 10]


class SlowClock(ManualClock):
    """Each look takes ten seconds."""

    def now(self) -> datetime:
        self.advance(timedelta(seconds=10))
        return super().now()


def test_a_page_ends_when_its_time_is_up() -> None:
    world = World(clock=SlowClock(NINE))
    world.tenants.register(a_tenant(schedules_max=250))
    for n in range(250):
        world.created("0 0 1 1 *", schedule=f"s{n:03}")
    assert [len(page) for page in paged(world)] == [200, 50]


def test_a_page_token_is_of_one_export(five: World) -> None:
    five.tenants.register(a_tenant(OTHER))
    token = exported(five, limit=1).page_token
    for asked in ({"tenant": OTHER}, {"prefix": "a"}, {"labels": ("in",)}):
        with pytest.raises(Rejected) as caught:
            exported(five, token=token, **asked)
        assert caught.value.field == "page_token"


def test_an_unknown_tenant_has_no_export(world: World) -> None:
    with pytest.raises(UnknownTenant):
        exported(world, tenant=TenantId("nobody"))
