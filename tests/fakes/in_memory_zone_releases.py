"""The releases of zone data in memory."""

from puntual.domain.zone_releases import ReleasesInUse
from puntual.domain.zone_rules import ZoneRules


class InMemoryZoneReleases:
    def __init__(self) -> None:
        self.row: ReleasesInUse | None = None
        self.kept: dict[str, ZoneRules] = {}

    def in_use(self) -> ReleasesInUse | None:
        return self.row

    def swap(self, in_use: ReleasesInUse, *, seen: ReleasesInUse | None) -> bool:
        if self.row != seen:
            return self.row == in_use
        self.row = in_use
        return True

    def keep(self, rules: ZoneRules) -> None:
        self.kept.setdefault(rules.release, rules)

    def rules(self, release: str) -> ZoneRules | None:
        return self.kept.get(release)
