"""A stage on which zone data are deployed: two releases, their planners, and the replanner."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, partial

from puntual.application.advance_schedule import AdvanceSchedule
from puntual.application.note_zone_release import NoteZoneRelease
from puntual.application.plan_cursors import NextFires, PlanCursors, Work
from puntual.application.ports import ZoneReleases
from puntual.application.replan_zones import ReplanZones
from puntual.domain.agenda import Cursor
from puntual.domain.definition import Definition
from puntual.domain.expression import Rule
from puntual.domain.zone_releases import ReleasesInUse
from puntual.domain.zone_rules import ZoneRules
from tests.builders import HORIZON
from tests.fakes.given_zone_data import GivenZoneData
from tests.fakes.hostile import (
    HostileAgenda,
    HostileLedger,
    HostileOutbox,
    HostileSchedules,
    HostileShards,
    HostileZoneReleases,
)
from tests.simulation.scheduler import START, FunctionKind
from tests.simulation.stage import Stage, cron
from tests.simulation.workload import ZONE
from tests.simulation.world import PLANNER_STOPS_BEFORE_END
from tests.zone_data import DEPLOYED, pinned_rules, rules_with

DAYS_AGO = timedelta(days=9)
SLICE = timedelta(seconds=60)

ENDS_AFTER = 8000
"""In seconds: behind the second fire by either release, after 4,200 and after 7,800."""


@cache
def former_rules() -> ZoneRules:
    """Give a release by which the clocks do not go forward."""
    return rules_with(dict.fromkeys((ZONE, "Israel", "Asia/Tel_Aviv"), "IST-2"))


def twice_around_the_change() -> Definition:
    """Define a schedule that fires in ten minutes, and once more after the clocks have changed."""
    return replace(cron("30 1,3 * * *", end=ENDS_AFTER), time_zone=ZONE)


class FormerNextFires(NextFires):
    def __call__(self, rule: Rule, after: datetime) -> datetime | None:
        return rule.next_fire_by(former_rules().zone(rule.time_zone))(after)


@dataclass(frozen=True, kw_only=True)
class FormerPlanCursors(PlanCursors):
    """A planner's code with the zone data of the former release."""

    def plan(
        self,
        shard: int,
        cursors: Sequence[Cursor],
        *,
        through: datetime | None = None,
        next_fires: NextFires | None = None,
        carried: bool = False,
    ) -> Work:
        del next_fires
        return super().plan(
            shard, cursors, through=through, next_fires=FormerNextFires(), carried=carried
        )


class ReleaseStage(Stage):
    """The API runs the deployed release all the time; planners run the one that is said."""

    def starts_with(self, current: str, *former: str) -> None:
        """Say what was noted nine days ago."""
        for rules in (pinned_rules(), former_rules()):
            self.fake_releases.keep(rules)
        self.fake_releases.row = ReleasesInUse(
            current=current, since=START - DAYS_AGO, former=frozenset(former)
        )

    def _make_use_cases(self) -> None:
        super()._make_use_cases()
        parts, io, clock = self.parts, self.io, self.clock
        self.fake_releases = parts.zone_releases()
        releases: ZoneReleases = HostileZoneReleases(self.fake_releases, io)
        schedules = HostileSchedules(self.fake_schedules, io)
        agenda, shards = HostileAgenda(self.fake_agenda, io), HostileShards(self.fake_shards, io)
        outbox = HostileOutbox(self.fake_outbox, io)
        ledger = HostileLedger(self.fake_ledger, io)
        plan_cursors, former_plan_cursors = (
            kind(schedules=schedules, agenda=agenda, outbox=outbox, ledger=ledger, clock=clock)
            for kind in (parts.plan_cursors, FormerPlanCursors)
        )
        announced = parts.announced(
            shards=shards,
            plan_cursors=plan_cursors,
            clock=clock,
            shard_count=self.shard_count,
            horizon=HORIZON,
        )
        self.former_plan_shard = replace(self.plan_shard, plan_cursors=former_plan_cursors)
        self.note_release = {
            rules.release: NoteZoneRelease(
                releases=releases, zone_data=GivenZoneData(rules), clock=clock
            )
            for rules in (pinned_rules(), former_rules())
        }
        self.replan_zones = ReplanZones(
            schedules=schedules,
            releases=releases,
            note=self.note_release[DEPLOYED],
            advance=AdvanceSchedule(schedules=schedules, announced=announced, clock=clock),
            zone_data=GivenZoneData(pinned_rules()),
            clock=clock,
        )

    def notes(self, at: float, release: str) -> None:
        """Let the ticker of a release note it."""
        note = self.note_release[release]
        self.at(at, lambda: self.scheduler.spawn(FunctionKind.TICKER, note))

    def former_planners(self, at: float) -> None:
        def spawn() -> None:
            for shard in self.fake_shards.all():
                self.scheduler.spawn(FunctionKind.PLANNER, partial(self._plans, shard))

        self.at(at, spawn)

    def replans(self, *seconds: float) -> None:
        def replan() -> None:
            deadline = self.clock.now() + SLICE
            self.replan_zones(token=None, dry_run=False, deadline=deadline)

        for at in seconds:
            self.at(at, lambda: self.scheduler.spawn(FunctionKind.REPLANNER, replan))

    def _plans(self, shard: int) -> None:
        self.former_plan_shard(shard, deadline=self.clock.now() + PLANNER_STOPS_BEFORE_END)
