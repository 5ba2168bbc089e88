"""The zone data of the tzdata package, some 600 small files in the layer."""

from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files

from puntual.domain.zone_names import zone_names
from puntual.domain.zone_rules import ZoneRules

PACKAGE = "tzdata"


@dataclass(frozen=True, slots=True)
class TzdataZoneData:
    @property
    def release(self) -> str:
        return version(PACKAGE)

    def rules(self) -> ZoneRules:
        folder = files(PACKAGE) / "zoneinfo"
        return ZoneRules(
            release=self.release,
            data={name: (folder / name).read_bytes() for name in zone_names()},
        )
