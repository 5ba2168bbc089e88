"""One scheduled time of one schedule version, and the id that it keeps for ever."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NewType

from puntual.domain.errors import Rejected
from puntual.domain.expression import NextFire, Rule
from puntual.domain.instant import MILLISECOND, SECOND, text_of
from puntual.domain.tenant import ScheduleId, TenantId

OccurrenceId = NewType("OccurrenceId", str)


class Kind(StrEnum):
    REGULAR = "regular"
    MANUAL = "manual"
    BACKFILL = "backfill"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKey:
    """Where the ledger keeps a run: at most one per schedule and scheduled time (P6).

    The version is not part of it, so an edit that races with a fire meets the older claim.
    """

    tenant: TenantId
    schedule: ScheduleId
    run: str


def ref_of(run: str) -> str:
    """Give a run key as a path can hold it: `2026-11-30T09:00:00.000Z`, `…Z~v2`."""
    return run.replace("#", "~")


class UnknownOccurrence(Rejected):
    """The schedule has no such occurrence, or it is older than what is kept."""

    def __init__(self, ref: str) -> None:
        super().__init__("occurrence", ref, "a `ref` that the list of occurrences gives")
        self.ref = ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """`scheduled_for` is a whole second, UTC; `request_id` is empty for regular occurrences."""

    tenant: TenantId
    schedule: ScheduleId
    version: int
    scheduled_for: datetime
    kind: Kind = Kind.REGULAR
    request_id: str = ""

    @property
    def id(self) -> OccurrenceId:
        """Derived, so that retries, duplicates and replays of one occurrence share it."""
        parts = (
            self.tenant,
            self.schedule,
            str(self.version),
            text_of(self.scheduled_for),
            self.kind,
            self.request_id,
        )
        digest = hashlib.blake2b("\x1f".join(parts).encode(), digest_size=16)
        return OccurrenceId(digest.hexdigest())

    @property
    def key(self) -> RunKey:
        run = text_of(self.scheduled_for)
        if self.kind is not Kind.REGULAR:
            run = f"{run}#{self.kind}#{self.request_id}"
        return RunKey(tenant=self.tenant, schedule=self.schedule, run=run)

    @property
    def is_regular(self) -> bool:
        return self.kind is Kind.REGULAR


def available_at_of(
    occurrence: Occurrence,
    *,
    rule: Rule,
    window: timedelta,
    next_fire: NextFire = Rule.next_fire,
) -> datetime:
    """Give the instant from which an occurrence may run: its time plus the window's jitter.

    The jitter is whole seconds below the window and follows from the occurrence's id. A window
    ends before the rule's next fire, also where the clocks bring that nearer, so the occurrences
    of a version become available one after the other (P10).
    """
    fire = occurrence.scheduled_for
    if window < SECOND or not occurrence.is_regular:
        return fire
    following = next_fire(rule, fire)
    if following is not None:
        window = min(window, following - fire)
    return fire + int(occurrence.id[:15], 16) % (window // SECOND) * SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFires:
    """The fires of one schedule version before `until`, each an occurrence with its window."""

    tenant: TenantId
    schedule: ScheduleId
    version: int
    rule: Rule
    window: timedelta
    until: datetime | None = None
    next_fire: NextFire = Rule.next_fire

    def occurrence(self, fire: datetime) -> Occurrence:
        return Occurrence(
            tenant=self.tenant, schedule=self.schedule, version=self.version, scheduled_for=fire
        )

    def available_at(self, fire: datetime) -> datetime:
        return available_at_of(
            self.occurrence(fire), rule=self.rule, window=self.window, next_fire=self.next_fire
        )

    def fire_after(self, fire: datetime) -> datetime | None:
        """Find the next fire of the rule, were it also after the version's end."""
        return self.next_fire(self.rule, fire)

    def last_fire(self, at_most: datetime) -> datetime | None:
        """Find the last fire at or before an instant."""
        if self.until is not None:
            at_most = min(at_most, self.until - MILLISECOND)
        return self.rule.last_fire(at_most)

    def last_available(self, at_most: datetime) -> datetime | None:
        """Find the last fire that is available at or before an instant."""
        fire = self.last_fire(at_most)
        if fire is None or self.available_at(fire) <= at_most:
            return fire
        # The window of the one before ended before this fire (P10).
        return self.last_fire(fire - MILLISECOND)
