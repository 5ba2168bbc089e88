"""The zone rules under test are the pinned ones, whatever the machine has."""

import zoneinfo

zoneinfo.reset_tzpath(to=())
zoneinfo.ZoneInfo.clear_cache()
