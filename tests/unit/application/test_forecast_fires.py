"""Forecasting a tenant: which schedules count, and when reading stops."""

from collections.abc import Generator
from datetime import timedelta

import pytest

from puntual.application.forecast_fires import (
    FORECAST_EVERY,
    READING_MAX,
    SCHEDULES_READ_MAX,
    ForecastFires,
    ForecastTooSoon,
)
from puntual.domain.forecast import RuleCount, RulePage
from puntual.domain.schedule import ScheduleKey
from puntual.domain.tenant import ScheduleId, TenantId, UnknownTenant
from tests.builders import NINE, TENANT, a_rule, a_tenant
from tests.control_plane_world import AUTHOR, World
from tests.fakes.in_memory_schedules import InMemorySchedules
from tests.fakes.manual_clock import ManualClock

PAGE = 30_000


class EndlessSchedules(InMemorySchedules):
    """A tenant that is too large to be read; each page of it takes its time."""

    clock: ManualClock
    seconds: float = 0.0
    closed: bool = False
    pages: int = 0

    def active_rules(self, tenant: TenantId) -> Generator[RulePage]:
        assert tenant == TENANT
        try:
            while True:
                self.clock.advance(timedelta(seconds=self.seconds))
                self.pages += 1
                counts = (RuleCount(a_rule("0 9 * * *"), PAGE),)
                yield RulePage(counts=counts, share=1 / 128)
        finally:
            self.closed = True


def endless(world: World, *, seconds: float) -> tuple[EndlessSchedules, ForecastFires]:
    schedules = EndlessSchedules(agenda=world.agenda, tenants=world.tenants)
    schedules.clock, schedules.seconds = world.clock, seconds
    forecast_fires = ForecastFires(schedules=schedules, tenants=world.tenants, clock=world.clock)
    return schedules, forecast_fires


def test_the_active_schedules_of_the_tenant_are_forecast(world: World) -> None:
    world.tenants.register(a_tenant("globex"))
    for name in ("a", "b", "paused", "canceled"):
        world.created("0 * * * *", schedule=name)
    world.created("15 10 * * *", schedule="c")
    key = ScheduleKey(tenant=TENANT, schedule=ScheduleId("paused"))
    world.plane.pause_schedule(key, author=AUTHOR)
    key = ScheduleKey(tenant=TENANT, schedule=ScheduleId("canceled"))
    world.plane.cancel_schedule(key, author=AUTHOR)
    forecast = world.plane.forecast_fires(TENANT)
    assert (forecast.start, forecast.is_sampled) == (NINE, False)
    assert (forecast.schedules, forecast.fires) == (3, 49)
    assert forecast.minutes[:76] == (2, *(0,) * 59, 2, *(0,) * 14, 1)
    assert world.plane.forecast_fires(TenantId("globex")).fires == 0


def test_an_unknown_tenant_has_no_forecast(world: World) -> None:
    with pytest.raises(UnknownTenant):
        world.plane.forecast_fires(TenantId("nobody"))


def test_a_tenant_has_one_forecast_at_work(world: World) -> None:
    schedules, forecast_fires = endless(world, seconds=0)
    world.tenants.register(a_tenant("globex"))
    forecast_fires(TENANT)
    world.clock.advance(FORECAST_EVERY - timedelta(milliseconds=1))
    read = schedules.pages
    with pytest.raises(ForecastTooSoon):
        forecast_fires(TENANT)
    assert schedules.pages == read, "a refusal reads no rules"
    world.plane.forecast_fires(TenantId("globex"))
    world.clock.advance(timedelta(milliseconds=1))
    assert forecast_fires(TENANT).start == NINE + timedelta(minutes=1)


def test_an_unknown_tenant_takes_no_turn(world: World) -> None:
    with pytest.raises(UnknownTenant):
        world.plane.forecast_fires(TenantId("nobody"))
    assert not world.tenants.forecast_turns


def test_reading_stops_at_its_limit_and_says_what_it_read(world: World) -> None:
    schedules, forecast_fires = endless(world, seconds=0)
    forecast = forecast_fires(TENANT)
    assert schedules.pages == 4
    assert schedules.closed
    assert forecast.schedules_read == 4 * PAGE > SCHEDULES_READ_MAX > 3 * PAGE
    assert forecast.is_sampled
    assert (forecast.share, forecast.schedules) == (4 / 128, 128 * PAGE)
    assert forecast.fires == 128 * PAGE


def test_reading_stops_at_its_deadline(world: World) -> None:
    schedules, forecast_fires = endless(world, seconds=READING_MAX.total_seconds() / 2)
    forecast = forecast_fires(TENANT)
    assert schedules.pages == 2
    assert schedules.closed
    assert forecast.is_sampled
    assert forecast.start == NINE, "as of the call, not of its end"


def test_a_first_page_is_read_however_late_it_comes(world: World) -> None:
    schedules, forecast_fires = endless(world, seconds=60)
    assert forecast_fires(TENANT).schedules_read == PAGE
    assert schedules.pages == 1
