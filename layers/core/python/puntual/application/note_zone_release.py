"""Note which release of the zone data is deployed, and keep its rules for later comparison."""

from dataclasses import dataclass

from puntual.application.ports import Clock, ZoneData, ZoneReleases
from puntual.domain.zone_releases import ReleasesInUse, with_deployed


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteZoneRelease:
    """Its rules are kept before a release is named: whatever is named can be compared with."""

    releases: ZoneReleases
    zone_data: ZoneData
    clock: Clock

    def __call__(self) -> ReleasesInUse:
        """Give what is in use; another writer who came first is believed."""
        seen = self.releases.in_use()
        noted = with_deployed(seen, self.zone_data.release, now=self.clock.now())
        if noted == seen:
            return noted
        self.releases.keep(self.zone_data.rules())
        if self.releases.swap(noted, seen=seen):
            return noted
        return self.releases.in_use() or noted
