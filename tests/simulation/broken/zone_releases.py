"""What holds while new zone data come, taken away."""

from dataclasses import replace

from puntual.domain.zone_releases import FORMER_PLANNERS_GONE_AFTER, ReleasesInUse
from tests.fakes.in_memory_zone_releases import InMemoryZoneReleases
from tests.simulation.scenarios.zone_releases import (
    a_deployment_at_the_end_of_a_run,
    a_former_planner_that_outlives_its_release,
    a_release_that_is_deployed_for_two_minutes,
)
from tests.simulation.variant import Variant
from tests.simulation.world import Parts


class WaitsForNoFormerPlanner(InMemoryZoneReleases):
    def in_use(self) -> ReleasesInUse | None:
        """Say that it was all long ago."""
        row = super().in_use()
        return row and replace(row, since=row.since - FORMER_PLANNERS_GONE_AFTER)

    def swap(self, in_use: ReleasesInUse, *, seen: ReleasesInUse | None) -> bool:
        if seen is not None:
            seen = replace(seen, since=seen.since + FORMER_PLANNERS_GONE_AFTER)
        return super().swap(in_use, seen=seen)


class RecordsASingleRelease(InMemoryZoneReleases):
    """The one that schedules were last planned anew with."""

    def swap(self, in_use: ReleasesInUse, *, seen: ReleasesInUse | None) -> bool:
        return bool(in_use.former) or super().swap(in_use, seen=seen)


class SwapsWhateverIsInUse(InMemoryZoneReleases):
    def swap(self, in_use: ReleasesInUse, *, seen: ReleasesInUse | None) -> bool:
        self.row = seen
        return super().swap(in_use, seen=seen)


ZONE_RELEASES: dict[str, Variant] = {
    "waits for no former planner": Variant(
        rule="ADR 0013",
        parts=Parts(zone_releases=WaitsForNoFormerPlanner),
        shows=frozenset({"UNACCOUNTED"}),
        scenario=a_former_planner_that_outlives_its_release,
    ),
    "a single recorded release": Variant(
        rule="ADR 0013",
        parts=Parts(zone_releases=RecordsASingleRelease),
        shows=frozenset({"UNACCOUNTED"}),
        scenario=a_release_that_is_deployed_for_two_minutes,
    ),
    "swaps whatever is in use": Variant(
        rule="ADR 0013",
        parts=Parts(zone_releases=SwapsWhateverIsInUse),
        shows=frozenset({"UNACCOUNTED"}),
        scenario=a_deployment_at_the_end_of_a_run,
    ),
}
