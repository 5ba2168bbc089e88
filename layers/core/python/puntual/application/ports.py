"""How the use cases reach the world: one I/O per call.

Every call may raise `Unavailable`, before or after it took effect; every write is idempotent by
its key or conditional, so it may be repeated. A lost race is a return value.
"""

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from puntual.domain import breaker, share
from puntual.domain.agenda import Cursor
from puntual.domain.budget import Budget, BudgetKey
from puntual.domain.fairness import Seat
from puntual.domain.forecast import RulePage
from puntual.domain.labels import LabelFilter
from puntual.domain.lane import Lane
from puntual.domain.message import Crowd, Message
from puntual.domain.occurrence import RunKey
from puntual.domain.page import Page
from puntual.domain.replay import DeadLetterFilter
from puntual.domain.run import Note, Run, RunSwap, Span, Unchanged
from puntual.domain.run_request import RunRequest
from puntual.domain.schedule import Schedule, ScheduleKey, ScheduleState, ScheduleVersion
from puntual.domain.shard import Shard
from puntual.domain.slot import Slot, SlotSwap
from puntual.domain.target import Delivery, DeliveryResult
from puntual.domain.tenant import ListedTenant, ScheduleId, Tenant, TenantId
from puntual.domain.zone_releases import ReleasesInUse
from puntual.domain.zone_rules import ZoneRules


class Clock(Protocol):
    def now(self) -> datetime:
        """The instant, UTC, in whole milliseconds."""


class IdSource(Protocol):
    def new_id(self) -> str:
        """A new random id, 32 hexadecimal digits."""


class Chance(Protocol):
    def fraction(self) -> float:
        """A random number in [0, 1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePage:
    """A page of a listing, and the last id read if there may be more."""

    schedules: tuple[Schedule, ...]
    after: ScheduleId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantPage:
    """A page of a listing, and the last id read if there are more."""

    tenants: tuple[ListedTenant, ...]
    after: TenantId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableHead:
    """A head is there, but its text says nothing."""

    key: ScheduleKey


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadPage:
    """Heads of a scan in its order, and where it goes on if there may be more."""

    heads: tuple[Schedule | UnreadableHead, ...]
    after: ScheduleKey | None


@dataclass(frozen=True, slots=True)
class Created:
    """The schedule was created."""


@dataclass(frozen=True, slots=True)
class AlreadyExists:
    """A schedule of this id exists; nothing was written."""


@dataclass(frozen=True, slots=True)
class TenantUnknown:
    """The tenant is not registered; nothing was written."""


@dataclass(frozen=True, slots=True)
class QuotaReached:
    """The tenant has all the schedules that it may have; nothing was written."""


CreateResult = Created | AlreadyExists | TenantUnknown | QuotaReached


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterPage:
    """Dead letters, the newest first; `before` is where older ones begin, if there may be any."""

    runs: tuple[Run, ...]
    before: str | None


class Schedules(Protocol):
    """Heads and versions. Reads are strongly consistent but for those of many schedules."""

    def create(
        self, head: Schedule, version: ScheduleVersion, cursor: Cursor | None, *, shard: int
    ) -> CreateResult:
        """Put head, version 1 and the first cursor and count the quota, all or nothing."""

    def advance(
        self, head: Schedule, version: ScheduleVersion, cursor: Cursor | None, *, shard: int
    ) -> bool:
        """Put head and version n+1, version n's `until` and the first cursor, all or nothing.

        False where the head is no longer at version n. A cancel gives the quota back.
        """

    def head(self, key: ScheduleKey) -> Schedule | None: ...

    def heads(self, keys: Sequence[ScheduleKey]) -> Mapping[ScheduleKey, Schedule]:
        """Up to 100 distinct keys; one that is left out is absent, never merely unprocessed.

        A head that cannot be read is left out too, so that it does not keep others from planning.
        """

    def version(self, key: ScheduleKey, version: int) -> ScheduleVersion | None: ...

    def versions(self, numbers: Mapping[ScheduleKey, int]) -> Mapping[ScheduleKey, ScheduleVersion]:
        """One version each of up to 100 schedules; one that is left out is absent or unreadable."""

    def complete(self, key: ScheduleKey, version: int) -> bool:
        """Turn an ACTIVE head of this version into COMPLETED; False where it is not one."""

    def listed(
        self,
        tenant: TenantId,
        *,
        prefix: str,
        state: ScheduleState | None,
        after: ScheduleId | None,
        limit: int,
        labels: Sequence[LabelFilter] = (),
    ) -> SchedulePage:
        """Up to `limit` heads by id, all of whose filters hold. Eventually consistent."""

    def active_in(
        self, zones: Collection[str], *, after: ScheduleKey | None, limit: int
    ) -> HeadPage:
        """ACTIVE heads of all tenants whose zone is spelt as one of these; reads `limit` rows.

        In an order of its own, in which `after` may be any schedule. Eventually consistent. An
        ACTIVE head that cannot be read is among them, unless none of these stands in its text.
        """

    def active_rules(self, tenant: TenantId) -> Generator[RulePage]:
        """Give the rules of active schedules, at least one page of them; close it to stop.

        Eventually consistent. The pages' shares come to 1 unless some of them could not be read.
        """


class Tenants(Protocol):
    def get(self, tenant: TenantId) -> Tenant | None: ...

    def register(self, tenant: Tenant) -> Tenant:
        """Put all of a tenant's registration, new or known; its count and keys stay."""

    def listed(self, *, after: TenantId | None, limit: int) -> TenantPage:
        """Tenants by id; what was registered within the last seconds may not be there yet."""

    def raise_key_generation(self, tenant: TenantId, *, seen: int) -> Tenant | None:
        """Raise a tenant's key generation from `seen` by one; gives the tenant as it is then.

        Where it is another one than `seen`, nothing is written.
        """

    def take_forecast_turn(self, tenant: TenantId, *, now: datetime, every: timedelta) -> bool:
        """Take the tenant's turn if its last one was taken at least `every` ago.

        False where it was not, as to a write of our own that the SDK repeats: the turn is lost.
        """


class Budgets(Protocol):
    """What is taken of each tenant's rates. Reads are strongly consistent."""

    def read(self, key: BudgetKey) -> Budget:
        """Give a budget; one that nobody drew from yet has no write id."""

    def swap(self, budget: Budget, *, seen: Budget) -> bool:
        """Put a budget if it is still the one that was `seen`, by its write id.

        False where it is not, unless it is this very write, repeated (P9).
        """


class Shares(Protocol):
    """What runs of each limit on concurrency. Reads are strongly consistent."""

    def read(self, key: share.ShareKey) -> share.Shares:
        """Give the shares of a limit; where nobody took any yet, they have no write id."""

    def swap(self, shares: share.Shares, *, seen: share.Shares) -> bool:
        """Put shares as `Budgets.swap` does (P9)."""


class Breakers(Protocol):
    """The open breakers of each tenant. Reads are eventually consistent: a swap may lose for it."""

    def read(self, tenant: TenantId) -> breaker.Breakers: ...

    def swap(self, breakers: breaker.Breakers, *, seen: breaker.Breakers) -> bool:
        """Put a tenant's breakers as `Budgets.swap` does (P9)."""


class Seats(Protocol):
    """Leases by which crowds hold executors, and which crowds need none. Nothing rests on it."""

    def take(self, seat: Seat, *, owner: str, now: datetime, until: datetime) -> bool:
        """Take or renew a seat's lease; False while another owner holds it."""

    def leave(self, seat: Seat, *, owner: str) -> None:
        """Give a seat back; nothing where another owner holds it."""

    def quick_until(self, crowd: Crowd) -> datetime | None:
        """Until when a crowd counts as quick, as was noted last. Eventually consistent."""

    def note_quick(self, crowd: Crowd, *, until: datetime) -> None: ...


class Agenda(Protocol):
    """Cursors by bucket and shard. Batches are never done until their unprocessed rest is (P9)."""

    def due(
        self, shard: int, bucket: datetime, *, limit: int, behind: Cursor | None = None
    ) -> tuple[Cursor, ...]:
        """The first cursors of a bucket, strongly consistent; empty means that it is empty.

        Those `behind` a cursor come after all of its tenant at its instant, recovery cursors behind
        all others. A row that cannot be read is moved to quarantine.
        """

    def put(self, shard: int, cursors: Sequence[Cursor]) -> None:
        """Put regular cursors."""

    def recover(self, shard: int, cursor: Cursor) -> None:
        """Put a recovery cursor, unless one of the same range has come further in its bucket.

        Both answer for all that lies before their next slice, so the further one is enough.
        """

    def delete(self, shard: int, cursors: Sequence[Cursor]) -> None: ...

    def quarantine(self, shard: int, cursor: Cursor, *, reason: str) -> None:
        """Keep a cursor that cannot be planned where it stops nobody; put if absent."""


class Outbox(Protocol):
    def put(self, page: Page) -> None:
        """Put if absent."""

    def delete(self, page: Page) -> None: ...

    def left(self, shard: int, *, written_before: datetime, limit: int) -> tuple[Page, ...]:
        """Pages that nobody has relayed yet, strongly consistent, but for those unreadable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    message: Message
    delay: timedelta


class Lanes(Protocol):
    def send(self, lane: Lane, sendings: Sequence[Sending]) -> tuple[Sending, ...]:
        """Send up to a page of messages; gives back those that the queue did not take."""


class Ledger(Protocol):
    """Runs, spans, notes and slots. Reads are strongly consistent."""

    def read(self, key: RunKey) -> Run | None: ...

    def swap(self, run: Run, *, seen: Run | None) -> bool:
        """Put `run` if its row is still as it was `seen`: absent, or of the same write id.

        False where it is not, unless the row is this very write, repeated (P9).
        """

    def record(self, run: Run) -> bool:
        """Put an outcome if the row is still RUNNING under the same id and attempt (E1).

        False also where a run that was asked to end would wait for a retry (E7).
        """

    def record_and_free(self, run: Run) -> bool:
        """Put a terminal outcome likewise; the slot, if the run is in it, is free with it (E7)."""

    def slot(self, key: ScheduleKey) -> Slot:
        """A schedule's slot, empty and without a write id where there is none."""

    def swap_with_slot(self, slot: SlotSwap, *runs: RunSwap | Unchanged) -> bool:
        """Put slot and runs if each is still as it was seen, all or nothing (E7).

        What is put carries one write id in common, by which the write is known again (P9).
        """

    def reopen(self, run: Run, *, seen: Run, page: Page) -> bool:
        """Put `run` if its row is still as it was `seen`, and its page into the outbox with it.

        All or nothing (E2). False where the row is another, unless it is this very write (P9).
        """

    def dead(
        self, tenant: TenantId, which: DeadLetterFilter, *, before: str | None, limit: int
    ) -> DeadLetterPage:
        """Up to `limit` DEAD rows of all of a tenant's schedules, the last to have died first.

        `before` is a place that a page gave. A page may be short, or empty, while there are more.
        Eventually consistent: a row may be missing that has just died, or be here that does not
        exist so any more.
        """

    def note(self, note: Note) -> None:
        """Put if absent."""

    def put_spans(self, spans: Sequence[Span]) -> None:
        """Put each, cut at UTC midnights, if none of the same end reaches as far back."""

    def between(
        self, key: ScheduleKey, *, first: str, last: str, limit: int, newest_first: bool = False
    ) -> tuple[Run | Span | Note, ...]:
        """Runs, spans and notes whose sort keys lie in [first, last], in their order."""


class Requests(Protocol):
    """What callers asked to run under keys of theirs. Reads are strongly consistent."""

    def read(self, key: ScheduleKey, request_id: str) -> RunRequest | None: ...

    def put(self, request: RunRequest) -> RunRequest:
        """Put if absent; gives what stands then. It is kept as long as the ledger's rows."""


class Shards(Protocol):
    """How far each shard has come. Reads are strongly consistent; times only rise."""

    def ensure(self, shard: Shard) -> None:
        """Put if absent (E10)."""

    def get(self, shard: int) -> Shard | None: ...

    def all(self) -> tuple[int, ...]:
        """The shards that exist."""

    def lease(self, shard: int, *, owner: str, now: datetime, until: datetime) -> bool:
        """Take or renew the advisory lease; False while another owner holds it."""

    def release(self, shard: int, *, owner: str) -> None: ...

    def announce(self, shard: int, planned_through: datetime) -> None: ...

    def close(
        self, shard: int, *, completed_through: datetime, drained_through: datetime
    ) -> None: ...


class ZoneReleases(Protocol):
    """What is in use, and the rules of every release that was. Reads are strongly consistent."""

    def in_use(self) -> ReleasesInUse | None:
        """None where nobody has noted any yet."""

    def swap(self, in_use: ReleasesInUse, *, seen: ReleasesInUse | None) -> bool:
        """Put what is in use, if it is still as it was `seen`; False where it is not.

        What was to be put and stands there already counts as put (P9).
        """

    def keep(self, rules: ZoneRules) -> None:
        """Put if absent."""

    def rules(self, release: str) -> ZoneRules | None: ...


class ZoneData(Protocol):
    """The zone data that are deployed with the code: what every fire is computed with."""

    @property
    def release(self) -> str:
        """What they are called: the version of the package."""

    def rules(self) -> ZoneRules:
        """Read them all."""


class Planners(Protocol):
    def start(self, shard: int) -> None:
        """Ask for a planner's pass over a shard, without waiting for it."""


class RootSecret(Protocol):
    def read(self) -> bytes:
        """The secret that all keys for webhooks are derived from; not empty."""


class Targets(Protocol):
    def deliver(self, delivery: Delivery) -> DeliveryResult:
        """Try once. Whatever the target does is a result; never later than the deadline."""
