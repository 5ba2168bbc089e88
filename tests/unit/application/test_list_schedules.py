"""Listing a tenant's schedules, and its registration."""

import json

import pytest

from puntual.domain.errors import Rejected
from puntual.domain.page_token import ForeignPageToken
from puntual.domain.schedule import ScheduleKey, ScheduleState
from puntual.domain.tenant import SCHEDULES_MAX_LIMIT, Quotas, ScheduleId, TenantId, UnknownTenant
from tests.builders import TENANT, a_forged_page_token, a_tenant
from tests.control_plane_world import AUTHOR, OWN_QUEUE, World


def ids(
    world: World,
    *,
    prefix: str = "",
    state: ScheduleState | None = None,
    limit: int = 2,
) -> list[str]:
    found: list[str] = []
    token = None
    for _ in range(20):
        page = world.plane.list_schedules(
            TENANT, prefix=prefix, state=state, limit=limit, token=token
        )
        found.extend(head.schedule for head in page.schedules)
        token = page.page_token
        if token is None:
            return found
    raise AssertionError("paging does not end")


def test_pages_give_each_schedule_once_by_id(world: World) -> None:
    for name in ("b", "a.2", "a.1", "c", "a.3"):
        world.created(schedule=name)
    assert ids(world) == ["a.1", "a.2", "a.3", "b", "c"]
    assert ids(world, prefix="a.") == ["a.1", "a.2", "a.3"]
    world.plane.pause_schedule(
        ScheduleKey(tenant=TENANT, schedule=ScheduleId("a.2")), author=AUTHOR
    )
    assert ids(world, state=ScheduleState.PAUSED) == ["a.2"]


def test_a_page_token_of_another_listing_is_refused(world: World) -> None:
    for name in ("a", "b"):
        world.created(schedule=name)
    world.tenants.register(a_tenant("globex"))
    listing = world.plane.list_schedules
    token = listing(TENANT, prefix="", state=None, limit=1, token=None).page_token
    for tenant, prefix in ((TenantId("globex"), ""), (TENANT, "a")):
        with pytest.raises(Rejected) as caught:
            listing(tenant, prefix=prefix, state=None, limit=1, token=token)
        assert caught.value.field == "page_token"


def test_an_unknown_tenant_has_no_listing(world: World) -> None:
    with pytest.raises(UnknownTenant):
        world.plane.list_schedules(TenantId("nobody"), prefix="", state=None, limit=1, token=None)


@pytest.mark.parametrize("after", ["", "..", "a/b", "x" * 65, "\ud800", 7])
def test_a_forged_page_token_that_names_no_id_is_refused(world: World, after: object) -> None:
    world.created()
    token = a_forged_page_token(json.dumps([after]).encode(), listing=("schedules", TENANT, "", ""))
    with pytest.raises(ForeignPageToken):
        world.plane.list_schedules(TENANT, prefix="", state=None, limit=1, token=token)


def test_a_prefix_that_no_id_has_is_refused(world: World) -> None:
    with pytest.raises(Rejected) as caught:
        ids(world, prefix="a/b")
    assert caught.value.field == "prefix"


def test_a_registration_is_put_whole_and_usage_stays(world: World) -> None:
    world.created()
    tenant = world.plane.register_tenant(TENANT, quotas=Quotas(schedules_max=7), targets=())
    assert (tenant.quotas.schedules_max, tenant.schedules, tenant.targets) == (7, 1, ())
    assert world.plane.show_tenant(TENANT) == tenant
    with pytest.raises(UnknownTenant):
        world.plane.show_tenant(TenantId("nobody"))


@pytest.mark.parametrize(
    ("schedules_max", "queues", "field"),
    [
        (-1, (), "quotas.schedules_max"),
        (SCHEDULES_MAX_LIMIT + 1, (), "quotas.schedules_max"),
        (1, (OWN_QUEUE, "arn:aws:s3:::orders"), "targets.1"),
        (1, tuple(f"{OWN_QUEUE}{n}" for n in range(51)), "targets"),
    ],
)
def test_a_bad_registration_names_its_field(
    world: World, schedules_max: int, queues: tuple[str, ...], field: str
) -> None:
    before = world.writes()
    with pytest.raises(Rejected) as caught:
        world.plane.register_tenant(
            TENANT, quotas=Quotas(schedules_max=schedules_max), targets=queues
        )
    assert caught.value.field == field
    assert world.writes() == before
