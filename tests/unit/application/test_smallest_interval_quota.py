"""The smallest interval of a tenant is judged where a rule is written, and nowhere else."""

from datetime import timedelta

import pytest

from puntual.domain.definition import IntervalTooSmall
from puntual.domain.expression import Fold
from puntual.domain.policies import Overlap, Policies
from puntual.domain.schedule import ScheduleVersion
from puntual.domain.tenant import Quotas, ScheduleId
from tests.builders import SCHEDULE, TENANT, a_tenant
from tests.control_plane_world import AUTHOR, KEY, World, a_definition

HOURLY = Quotas(smallest_interval=timedelta(hours=1))


@pytest.fixture
def world() -> World:
    world = World()
    world.tenants.register(a_tenant(quotas=HOURLY))
    return world


def change(world: World, expression: str, *, seen: int = 1, **fields: object) -> ScheduleVersion:
    definition = a_definition(expression, **fields)
    changed = world.plane.change_schedule(
        KEY, seen=seen, revise=lambda _: definition, author=AUTHOR
    )
    return changed.shown.version


ENOUGH = [
    "rate(1 hour)",
    "0 * * * *",
    "30 8 * * *",
    "0 9,10 * * *",
    "cron(0 12 L * ? *)",
    "at(2026-12-01T00:00:00)",
    "@daily",
]
TOO_FAST = [
    ("rate(59 minutes)", 3540),
    ("* * * * *", 60),
    # Fast for once: at the end of a day, in one night of the year, over midnight.
    ("0,59 22 * * *", 3540),
    ("0,30 0 1 1 *", 1800),
    ("0,59 0,23 * * *", 60),
]


@pytest.mark.parametrize("expression", ENOUGH)
def test_a_rule_of_that_pace_or_a_slower_one_is_taken(world: World, expression: str) -> None:
    assert world.created(expression).version.rule.expression == expression


@pytest.mark.parametrize(("expression", "seconds"), TOO_FAST)
def test_a_rule_that_is_faster_anywhere_is_refused_by_name(
    world: World, expression: str, seconds: int
) -> None:
    before = world.writes()
    with pytest.raises(IntervalTooSmall) as caught:
        world.created(expression)
    assert (caught.value.field, caught.value.value) == ("expression", expression)
    assert caught.value.allowed == (
        "fires at least 3600 s apart (the quota smallest_interval_seconds of the tenant);"
        f" two of these lie {seconds} s apart"
    )
    assert world.writes() == before


def test_an_edit_and_its_dry_run_are_judged_too(world: World) -> None:
    world.created("rate(1 hour)")
    before = world.writes()
    for dry_run in (True, False):
        with pytest.raises(IntervalTooSmall):
            world.plane.change_schedule(
                KEY,
                seen=1,
                revise=lambda _: a_definition("rate(5 minutes)"),
                author=AUTHOR,
                dry_run=dry_run,
            )
    assert world.writes() == before


def test_a_preview_of_an_unsaved_rule_is_judged_as_a_create(world: World) -> None:
    with pytest.raises(IntervalTooSmall):
        world.plane.preview_rule(
            TENANT,
            a_definition("rate(5 minutes)"),
            schedule=ScheduleId(SCHEDULE),
            window=timedelta(0),
            after=None,
            count=3,
        )


def test_a_schedule_of_before_the_quota_goes_on_and_can_be_edited_but_for_its_rule(
    world: World,
) -> None:
    world.tenants.register(a_tenant())
    world.created("rate(5 minutes)")
    world.tenants.register(a_tenant(quotas=HOURLY))
    assert change(world, "rate(5 minutes)", payload={"n": 2}).version == 2
    world.plane.pause_schedule(KEY, author=AUTHOR)
    world.plane.resume_schedule(KEY, author=AUTHOR)
    for fields in ({"fold": Fold.BOTH}, {"time_zone": "Europe/Madrid"}):
        with pytest.raises(IntervalTooSmall):
            change(world, "rate(5 minutes)", seen=4, **fields)
    policies = Policies(overlap=Overlap.QUEUE_ONE)
    assert change(world, "rate(5 minutes)", seen=4, policies=policies).policies == policies
