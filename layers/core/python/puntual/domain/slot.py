"""The slot of a schedule that may not overlap itself: who runs, who waits, who may come in (E7).

An occurrence is in the slot from its first claim to its end, backoffs included. Beside it one may
wait. Both are judged by the rows that were read; whoever writes a slot says as which it was seen.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from puntual.domain.occurrence import Occurrence, OccurrenceId, ref_of
from puntual.domain.policies import Overlap
from puntual.domain.run import RUN_AGE_MAX, Run
from puntual.domain.schedule import ScheduleKey
from puntual.domain.tenant import ScheduleId, TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An occurrence in a slot, and the version whose validity decides about it (P3)."""

    occurrence: Occurrence
    judged_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """`write_id` names the write that made it so, and is empty where there is no row yet."""

    tenant: TenantId
    schedule: ScheduleId
    running: Place | None = None
    waiting: Place | None = None
    write_id: str = ""

    @property
    def key(self) -> ScheduleKey:
        return ScheduleKey(tenant=self.tenant, schedule=self.schedule)

    def is_run_by(self, occurrence: OccurrenceId) -> bool:
        return self.running is not None and self.running.occurrence.id == occurrence

    def is_waited_for_by(self, occurrence: OccurrenceId) -> bool:
        return self.waiting is not None and self.waiting.occurrence.id == occurrence

    def without(self, occurrence: OccurrenceId) -> "Slot":
        """Give the slot when an occurrence has left it, wherever it was in it."""
        return replace(
            self,
            running=None if self.is_run_by(occurrence) else self.running,
            waiting=None if self.is_waited_for_by(occurrence) else self.waiting,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotSwap:
    """A slot to be written over the one that was `seen`; if equal, it must still be so."""

    slot: Slot
    seen: Slot

    @property
    def changes(self) -> bool:
        return (self.slot.running, self.slot.waiting) != (self.seen.running, self.seen.waiting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """A slot, and after it the row of the occurrence in it, where that is another's."""

    slot: Slot
    holder: Run | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Enters:
    """It may run, with the slot so."""

    slot: Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """It waits, with the slot so; `asked` is the row that must be asked to end, if any."""

    slot: Slot
    asked: Run | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndsHolder:
    """The row in the slot holds it without a live lease, and has no right to it any more."""

    holder: Run
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What was read does not fit together: read again."""


Contest = Enters | Waits | Skipped | EndsHolder | Moved


def contest(
    place: Place,
    occupancy: Occupancy,
    *,
    overlap: Overlap,
    min_valid_version: int,
    now: datetime,
) -> Contest:
    """Decide what an occurrence that is ready to be claimed may do."""
    slot = occupancy.slot
    own = place.occurrence.id
    if slot.is_run_by(own):
        # Whoever waits: were the holder sent behind its waiter, both would wait for ever.
        return Enters(slot=slot)
    waiting = slot.waiting
    if waiting is not None and _counts_as_none(waiting, place, min_valid_version, now):
        waiting = None
    if waiting is not None and waiting.occurrence.id == own:
        waiting = None
    holder = _holder_of(occupancy)
    if holder is not None:
        idle = not holder.has_live_lease(now)
        if idle and holder.judged_version < min_valid_version:
            return EndsHolder(holder=holder, reason=f"voided after attempt {holder.attempt}")
        return _behind(
            holder, place, slot, others_wait=waiting is not None, overlap=overlap, idle=idle
        )
    if waiting is not None:
        return Skipped(reason=f"{ref_of(waiting.occurrence.key.run)} was waiting")
    return Enters(slot=replace(slot, running=place, waiting=None))


def _behind(
    holder: Run, place: Place, slot: Slot, *, others_wait: bool, overlap: Overlap, idle: bool
) -> Contest:
    """Decide what an occurrence may do while another one is in the slot."""
    if holder.occurrence.key == place.occurrence.key:
        return Moved()
    if others_wait or overlap is Overlap.SKIP_IF_RUNNING:
        return Skipped(reason=f"{ref_of(holder.occurrence.key.run)} was running")
    waits = Waits(slot=replace(slot, waiting=place), asked=None)
    if overlap is not Overlap.CANCEL_RUNNING:
        return waits
    if idle:
        return EndsHolder(holder=holder, reason=overlap_reason(holder))
    return waits if holder.cancel_requested else replace(waits, asked=holder)


def overlap_reason(run: Run) -> str:
    """Say why a run that was asked to end is CANCELED."""
    return f"overlap after attempt {run.attempt}"


def _counts_as_none(waiting: Place, place: Place, min_valid_version: int, now: datetime) -> bool:
    """Tell whether who waits will never run: voided, too old, or at an instant that is another's.

    Only the version that owns an instant comes so far, so at the same key the other one was
    superseded.
    """
    occurrence = waiting.occurrence
    same_key = occurrence.key == place.occurrence.key and occurrence.id != place.occurrence.id
    too_old = now - occurrence.scheduled_for > RUN_AGE_MAX
    return same_key or too_old or waiting.judged_version < min_valid_version


def _holder_of(occupancy: Occupancy) -> Run | None:
    """Give the row that holds the slot; one that has ended or is gone holds nothing.

    It may have ended since the slot was read, and then the slot was written too: whoever believes
    to be alone loses the race.
    """
    running, holder = occupancy.slot.running, occupancy.holder
    if running is None or holder is None or holder.state.is_terminal:
        return None
    return holder if holder.occurrence.id == running.occurrence.id else None
