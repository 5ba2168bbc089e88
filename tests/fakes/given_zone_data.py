"""Zone data that a test gives."""

from dataclasses import dataclass

from puntual.domain.zone_rules import ZoneRules


@dataclass(frozen=True, slots=True)
class GivenZoneData:
    given: ZoneRules

    @property
    def release(self) -> str:
        return self.given.release

    def rules(self) -> ZoneRules:
        return self.given
