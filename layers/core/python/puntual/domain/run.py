"""The ledger's rows: runs with their attempts, ranges and notes that stand instead of runs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from puntual.domain.instant import DAY, MILLISECOND, text_of
from puntual.domain.occurrence import Occurrence, RunKey
from puntual.domain.tenant import ScheduleId, TenantId

LEASE_MARGIN = timedelta(seconds=5)
"""How far two functions' clocks may differ before a lease that one holds looks free to another."""

RETENTION_MIN = timedelta(days=30)
"""How long the ledger remembers a run, at least."""

RUN_AGE_MAX = RETENTION_MIN - timedelta(days=2)
"""Age from which nothing starts: the ledger may soon forget that it ran."""

DETAIL_LENGTH_MAX = 200
RESULT_BYTES_MAX = 1024
"""What a receiver may say of the run that it completes: once in a row, since it ends it."""

LEASE_RAN_OUT = "lease ran out"
MAX_DURATION_REACHED = "max_duration"


class RunState(StrEnum):
    RUNNING = "RUNNING"
    RETRY_WAIT = "RETRY_WAIT"
    SUCCEEDED = "SUCCEEDED"
    DEAD = "DEAD"
    MISSED = "MISSED"
    CANCELED = "CANCELED"
    SKIPPED_OVERLAP = "SKIPPED_OVERLAP"

    @property
    def is_terminal(self) -> bool:
        return self not in {RunState.RUNNING, RunState.RETRY_WAIT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try at delivering; `finished_at` stays empty where its executor died."""

    number: int
    started_at: datetime
    finished_at: datetime | None = None
    result: str = ""
    round: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A row of the ledger: what became of one scheduled time.

    `attempt` fences and never resets; `round_attempt` counts within the round that a replay opens.
    What a caller asked for is RETRY_WAIT without an attempt until it is claimed.
    `cancel_requested` by an occurrence under `cancel_running` that waits for this one's end (E7).
    `held_until` and `held_by` tell which gate held its first attempt last, and until when.
    `caught_up` tells that it was late and took one of the places that `catch_up` has.
    `write_id` names the write that made it so (P9). `died_at` is when it became DEAD. `requests`
    are the marks of those that opened its rounds and may be repeated, the newest last.
    """

    occurrence: Occurrence
    state: RunState
    available_at: datetime
    enqueued_at: datetime | None = None
    attempt: int = 0
    round: int = 0
    round_attempt: int = 0
    lease_until: datetime | None = None
    not_before: datetime | None = None
    authorised_version: int | None = None
    cancel_requested: bool = False
    held_until: datetime | None = None
    held_by: str = ""
    caught_up: bool = False
    reason: str = ""
    attempts: tuple[Attempt, ...] = ()
    died_at: datetime | None = None
    requests: tuple[str, ...] = ()
    write_id: str = ""

    @property
    def round_began_at(self) -> datetime | None:
        """When the first attempt of its round began, from which the retries' deadline counts."""
        begun = (each.started_at for each in self.attempts if each.round == self.round)
        return next(begun, None)

    @property
    def last_error(self) -> str:
        """What the last attempt that failed in this round said; else why it is DEAD."""
        ended = [each for each in self.attempts if each.round == self.round and each.finished_at]
        failures = ended[:-1] if self.state is RunState.SUCCEEDED else ended
        if failures:
            return failures[-1].result
        return self.reason if self.state is RunState.DEAD else ""

    @property
    def judged_version(self) -> int:
        """The version whose validity decides: its own, or a later one that authorised it (E2)."""
        return max(self.occurrence.version, self.authorised_version or 0)

    @property
    def is_asked(self) -> bool:
        """Whether a caller asked for it and nobody has claimed it yet."""
        return self.state is RunState.RETRY_WAIT and not (self.attempt or self.round)

    def has_live_lease(self, now: datetime) -> bool:
        return (
            self.state is RunState.RUNNING
            and self.lease_until is not None
            and self.lease_until + LEASE_MARGIN >= now
        )

    def is_attempt(self, occurrence: Occurrence, attempt: int) -> bool:
        """Tell whether the row is of this occurrence, and this attempt its newest."""
        return self.occurrence.id == occurrence.id and self.attempt == attempt

    def runs_attempt(self, occurrence: Occurrence, attempt: int) -> bool:
        """Tell whether it is the row of this attempt, which has not ended."""
        return self.state is RunState.RUNNING and self.is_attempt(occurrence, attempt)

    def finished_attempt(
        self, *, now: datetime, result: str, length_max: int = DETAIL_LENGTH_MAX
    ) -> tuple[Attempt, ...]:
        """Give the attempts with the current one closed."""
        if not self.attempts:
            return ()
        last = replace(self.attempts[-1], finished_at=now, result=result[:length_max])
        return (*self.attempts[:-1], last)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSwap:
    """A row to be written over the one that was `seen`, or where none was."""

    run: Run
    seen: Run | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchanged:
    """A row, or the absence of one, that must still be as it was `seen`."""

    key: RunKey
    seen: Run | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Scheduled times of one version, `first` to `last`, that stand together as one state.

    It speaks for those instants in it that have no row of their own. State is MISSED or CANCELED.
    """

    tenant: TenantId
    schedule: ScheduleId
    version: int
    state: RunState
    first: datetime
    last: datetime
    reason: str

    @property
    def key(self) -> RunKey:
        """Its end; a CANCELED span also has its version, since another may own the same end."""
        end = text_of(self.last)
        missed = self.state is RunState.MISSED
        run = f"{end}#missed" if missed else f"{end}#canceled#v{self.version}"
        return RunKey(tenant=self.tenant, schedule=self.schedule, run=run)

    def cut_at_midnights(self) -> Iterator["Span"]:
        """Give the parts, none of which crosses UTC midnight."""
        first = self.first
        while first <= self.last:
            midnight = first.replace(hour=0, minute=0, second=0, microsecond=0) + DAY
            yield replace(self, first=first, last=min(self.last, midnight - MILLISECOND))
            first = midnight


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A message of a voided version that leaves no row at its key, since another may own it."""

    occurrence: Occurrence
    reason: str
    noted_at: datetime

    @property
    def key(self) -> RunKey:
        """Beside the run's own key, one per version."""
        key = self.occurrence.key
        return replace(key, run=f"{key.run}#v{self.occurrence.version}")
