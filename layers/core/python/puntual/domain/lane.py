"""One queue per class of urgency, so that a storm of old work never delays new strict work."""

from enum import StrEnum


class Lane(StrEnum):
    STRICT = "strict"
    FLEXIBLE = "flexible"
    RECOVERY = "recovery"
