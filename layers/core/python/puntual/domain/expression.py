"""Expressions and the rules that they make (the engine lands next)."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Gap(StrEnum):
    SKIP = "skip"
    FIRE_AFTER = "fire_after"


class Fold(StrEnum):
    AUTO = "auto"
    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    expression: str
    time_zone: str
    gap: Gap = Gap.SKIP
    fold: Fold = Fold.AUTO
    anchor: datetime
    start_at: datetime | None = None
    end_at: datetime | None = None

    def next_fire(self, after: datetime) -> datetime | None:
        raise NotImplementedError

    def last_fire(self, before: datetime) -> datetime | None:
        raise NotImplementedError

    def fires_between(self, start: datetime, end: datetime, *, limit: int) -> tuple[datetime, ...]:
        raise NotImplementedError
