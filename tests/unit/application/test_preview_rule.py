"""A preview of a rule that nobody saved: what a create would say of it, and nothing written."""

from datetime import UTC, datetime, timedelta

import pytest

from puntual.application.preview_rule import PreviewedRule
from puntual.domain.definition import RuleDefinition
from puntual.domain.errors import Rejected
from puntual.domain.expression import Fold, InvalidExpression, NeverFires
from puntual.domain.policies import Policies
from puntual.domain.rule_warnings import COUNTS_FROM_SAVE
from puntual.domain.tenant import ScheduleId, TenantId, UnknownTenant
from tests.builders import NINE, TENANT
from tests.control_plane_world import LIMITS, World


def previewed(
    world: World,
    expression: str,
    *,
    schedule: str | None = None,
    after: datetime | None = None,
    count: int = 5,
    window: timedelta = timedelta(0),
    **parts: object,
) -> PreviewedRule:
    return world.plane.preview_rule(
        TENANT,
        RuleDefinition(expression=expression, **parts),  # type: ignore[arg-type]
        schedule=None if schedule is None else ScheduleId(schedule),
        window=window,
        after=after,
        count=count,
    )


def instants(shown: PreviewedRule) -> list[datetime]:
    return [fire.instant for fire in shown.preview.fires]


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize(
    ("expression", "zone"),
    [("*/7 8-11 * * *", "UTC"), ("rate(5 minutes)", "UTC"), ("H H * * *", "Asia/Kolkata")],
)
def test_it_shows_the_rule_and_the_fires_that_a_create_would(
    world: World, expression: str, zone: str
) -> None:
    before = world.writes()
    shown = previewed(world, expression, schedule="invoices", time_zone=zone)
    assert world.writes() == before
    made = world.created(expression, schedule="invoices", time_zone=zone)
    assert shown.rule == made.version.rule
    assert tuple(instants(shown)) == made.next_fires
    assert [warning for warning in shown.warnings if warning != COUNTS_FROM_SAVE] == [
        *made.warnings
    ]
    assert shown.tzdata == LIMITS.tzdata


def test_a_fire_of_an_unsaved_rule_may_run_at_its_time(world: World) -> None:
    for fire in previewed(world, "0 9 * * *").preview.fires:
        assert fire.available_at == fire.instant


def test_a_pace_that_counts_from_the_save_is_warned_of(world: World) -> None:
    assert previewed(world, "rate(5 minutes)").warnings == (COUNTS_FROM_SAVE,)
    assert previewed(world, "rate(5 minutes)", start_at=NINE).warnings == ()


def test_a_window_spreads_the_fires_as_those_of_the_saved_schedule(world: World) -> None:
    window = timedelta(hours=1)
    shown = previewed(world, "0 9 * * *", schedule="invoices", window=window)
    saved = world.created("0 9 * * *", schedule="invoices", policies=Policies(window=window))
    version = saved.version
    assert [fire.available_at for fire in shown.preview.fires] == [
        version.fires.available_at(fire) for fire in saved.next_fires
    ]
    assert len({fire.available_at - fire.instant for fire in shown.preview.fires}) > 1


def test_a_window_needs_an_id_and_fits_the_rule(world: World) -> None:
    with pytest.raises(Rejected) as caught:
        previewed(world, "0 9 * * *", window=timedelta(hours=1))
    assert caught.value.field == "id"
    with pytest.raises(Rejected) as caught:
        previewed(world, "0 * * * *", schedule="a", window=timedelta(hours=2))
    assert caught.value.field == "flexible_window_seconds"


def test_it_can_be_looked_at_from_any_instant(world: World) -> None:
    after = datetime(2031, 6, 1, tzinfo=UTC)
    shown = previewed(world, "0 9 * * *", after=after, count=2)
    assert instants(shown) == [after + timedelta(hours=9), after + timedelta(days=1, hours=9)]


def test_nothing_is_left_to_show_after_the_end(world: World) -> None:
    shown = previewed(
        world, "0 9 * * *", end_at=NINE + timedelta(days=9), after=NINE + timedelta(days=99)
    )
    assert instants(shown) == []


def test_h_needs_an_id(world: World) -> None:
    with pytest.raises(InvalidExpression, match="H needs the id of a schedule"):
        previewed(world, "H 9 * * *")
    assert previewed(world, "H 9 * * *", schedule="a").rule.expression != "H 9 * * *"


def test_what_a_create_refuses_is_refused(world: World) -> None:
    with pytest.raises(NeverFires):
        previewed(world, "0 0 31 2 *")
    with pytest.raises(NeverFires):
        previewed(world, "at(2026-11-30T08:00:00)", after=NINE - timedelta(days=1))
    with pytest.raises(Rejected) as caught:
        previewed(world, "0 9 * * *", end_at=NINE, start_at=NINE)
    assert caught.value.field == "end_at"
    with pytest.raises(Rejected) as caught:
        previewed(world, "0 9 * * *", after=datetime(2401, 1, 1, tzinfo=UTC))
    assert caught.value.field == "after"


def test_an_unknown_tenant_is_refused_as_by_a_create(world: World) -> None:
    with pytest.raises(UnknownTenant):
        world.plane.preview_rule(
            TenantId("nobody"),
            RuleDefinition(expression="0 9 * * *"),
            schedule=None,
            window=timedelta(0),
            after=None,
            count=1,
        )


def test_warnings_are_those_of_the_instant_looked_from(world: World) -> None:
    zone = "America/New_York"
    late = previewed(
        world, "30 2 * * *", time_zone=zone, fold=Fold.BOTH, after=datetime(2030, 1, 1, tzinfo=UTC)
    )
    assert "2030-03-10" in late.warnings[0]
