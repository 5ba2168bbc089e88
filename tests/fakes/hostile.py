"""The world at its worst: throttles, lost answers, repeated writes and half-done batches.

Wrap an adapter, give a seed and rates. Whatever goes wrong here has gone wrong on AWS: the SDK
repeats a write whose answer was lost, a batch leaves items unprocessed, a timeout hides a success.
"""

import random
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from puntual.application.ports import (
    Agenda,
    Breakers,
    Budgets,
    CreateResult,
    DeadLetterPage,
    HeadPage,
    Lanes,
    Ledger,
    Outbox,
    Planners,
    Requests,
    SchedulePage,
    Schedules,
    Sending,
    Shards,
    Shares,
    ZoneReleases,
)
from puntual.domain import breaker, share
from puntual.domain.agenda import Cursor
from puntual.domain.budget import Budget, BudgetKey
from puntual.domain.errors import Unavailable
from puntual.domain.forecast import RulePage
from puntual.domain.labels import LabelFilter
from puntual.domain.lane import Lane
from puntual.domain.occurrence import RunKey
from puntual.domain.page import Page
from puntual.domain.replay import DeadLetterFilter
from puntual.domain.run import Note, Run, RunSwap, Span, Unchanged
from puntual.domain.run_request import RunRequest
from puntual.domain.schedule import Schedule, ScheduleKey, ScheduleState, ScheduleVersion
from puntual.domain.shard import Shard
from puntual.domain.slot import Slot, SlotSwap
from puntual.domain.tenant import ScheduleId, TenantId
from puntual.domain.zone_releases import ReleasesInUse
from puntual.domain.zone_rules import ZoneRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Chances per call, each in 0 … 1."""

    throttled: float = 0.0
    """`Unavailable` before any effect."""

    timed_out: float = 0.0
    """`Unavailable` although it took effect."""

    repeated: float = 0.0
    """The SDK lost the answer and wrote again; the caller hears what the second try heard."""

    partial: float = 0.0
    """Only some of a batch: the lanes give the rest back, the tables raise `Unavailable`."""


def _nothing(_: str) -> None:
    return


@dataclass(slots=True, kw_only=True)
class Hostility:
    """One source of trouble for all the ports that a process uses.

    `at_io` is called before each effect and between the effect and its answer, with the call's
    name: there a simulation lets the others run, or lets this one die.
    """

    source: random.Random
    rates: Rates = field(default_factory=Rates)
    at_io: Callable[[str], None] = _nothing

    def call[T](self, name: str, effect: Callable[[], T]) -> T:
        self._before(name)
        return self._after(name, effect())

    def write[T](self, name: str, effect: Callable[[], T]) -> T:
        self._before(name)
        answer = effect()
        if self._happens(self.rates.repeated):
            self.at_io(name)
            answer = effect()
        return self._after(name, answer)

    def batch[T](
        self, name: str, items: Sequence[T], effect: Callable[[Sequence[T]], None]
    ) -> None:
        self._before(name)
        if self._happens(self.rates.partial):
            effect(self._some(items)[0])
            raise Unavailable(f"{name}: some of {len(items)} were left unprocessed")
        effect(items)
        self._after(name, None)

    def given_back(
        self,
        name: str,
        items: Sequence[Sending],
        effect: Callable[[Sequence[Sending]], tuple[Sending, ...]],
    ) -> tuple[Sending, ...]:
        self._before(name)
        taken, refused = tuple(items), tuple[Sending, ...]()
        if self._happens(self.rates.partial):
            taken, refused = self._some(items)
        refused = (*effect(taken), *refused)
        if self._happens(self.rates.repeated):
            self.at_io(name)
            effect(taken)
        return self._after(name, refused)

    def _before(self, name: str) -> None:
        self.at_io(name)
        if self._happens(self.rates.throttled):
            raise Unavailable(f"{name}: throttled")

    def _after[T](self, name: str, answer: T) -> T:
        self.at_io(name)
        if self._happens(self.rates.timed_out):
            raise Unavailable(f"{name}: timed out after it took effect")
        return answer

    def _happens(self, rate: float) -> bool:
        # No draw for a rate of zero: turning one kind of trouble off must not shift the others.
        return rate > 0 and self.source.random() < rate

    def _some[T](self, items: Sequence[T]) -> tuple[tuple[T, ...], tuple[T, ...]]:
        """Give some of the items and the others, both in their order, never all of them."""
        if not items:
            return (), ()
        chosen = set(self.source.sample(range(len(items)), self.source.randrange(len(items))))
        taken = tuple(item for place, item in enumerate(items) if place in chosen)
        return taken, tuple(item for place, item in enumerate(items) if place not in chosen)


@dataclass(frozen=True, slots=True)
class HostileSchedules:
    inner: Schedules
    hostility: Hostility

    def create(
        self, head: Schedule, version: ScheduleVersion, cursor: Cursor | None, *, shard: int
    ) -> CreateResult:
        return self.hostility.write(
            "schedules.create", lambda: self.inner.create(head, version, cursor, shard=shard)
        )

    def advance(
        self, head: Schedule, version: ScheduleVersion, cursor: Cursor | None, *, shard: int
    ) -> bool:
        return self.hostility.write(
            "schedules.advance", lambda: self.inner.advance(head, version, cursor, shard=shard)
        )

    def head(self, key: ScheduleKey) -> Schedule | None:
        return self.hostility.call("schedules.head", lambda: self.inner.head(key))

    def heads(self, keys: Sequence[ScheduleKey]) -> Mapping[ScheduleKey, Schedule]:
        return self.hostility.call("schedules.heads", lambda: self.inner.heads(keys))

    def version(self, key: ScheduleKey, version: int) -> ScheduleVersion | None:
        return self.hostility.call("schedules.version", lambda: self.inner.version(key, version))

    def versions(self, numbers: Mapping[ScheduleKey, int]) -> Mapping[ScheduleKey, ScheduleVersion]:
        return self.hostility.call("schedules.versions", lambda: self.inner.versions(numbers))

    def complete(self, key: ScheduleKey, version: int) -> bool:
        return self.hostility.write("schedules.complete", lambda: self.inner.complete(key, version))

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
        return self.hostility.call(
            "schedules.listed",
            lambda: self.inner.listed(
                tenant, prefix=prefix, state=state, after=after, limit=limit, labels=labels
            ),
        )

    def active_in(
        self, zones: Collection[str], *, after: ScheduleKey | None, limit: int
    ) -> HeadPage:
        return self.hostility.call(
            "schedules.active_in",
            lambda: self.inner.active_in(zones, after=after, limit=limit),
        )

    def active_rules(self, tenant: TenantId) -> Generator[RulePage]:
        pages = self.inner.active_rules(tenant)
        while page := self.hostility.call("schedules.active_rules", lambda: next(pages, None)):
            yield page


@dataclass(frozen=True, slots=True)
class HostileBudgets:
    inner: Budgets
    hostility: Hostility

    def read(self, key: BudgetKey) -> Budget:
        return self.hostility.call("budgets.read", lambda: self.inner.read(key))

    def swap(self, budget: Budget, *, seen: Budget) -> bool:
        return self.hostility.write("budgets.swap", lambda: self.inner.swap(budget, seen=seen))


@dataclass(frozen=True, slots=True)
class HostileShares:
    inner: Shares
    hostility: Hostility

    def read(self, key: share.ShareKey) -> share.Shares:
        return self.hostility.call("shares.read", lambda: self.inner.read(key))

    def swap(self, shares: share.Shares, *, seen: share.Shares) -> bool:
        return self.hostility.write("shares.swap", lambda: self.inner.swap(shares, seen=seen))


@dataclass(frozen=True, slots=True)
class HostileBreakers:
    inner: Breakers
    hostility: Hostility

    def read(self, tenant: TenantId) -> breaker.Breakers:
        return self.hostility.call("breakers.read", lambda: self.inner.read(tenant))

    def swap(self, breakers: breaker.Breakers, *, seen: breaker.Breakers) -> bool:
        return self.hostility.write("breakers.swap", lambda: self.inner.swap(breakers, seen=seen))


@dataclass(frozen=True, slots=True)
class HostileAgenda:
    inner: Agenda
    hostility: Hostility

    def due(
        self, shard: int, bucket: datetime, *, limit: int, behind: Cursor | None = None
    ) -> tuple[Cursor, ...]:
        return self.hostility.call(
            "agenda.due", lambda: self.inner.due(shard, bucket, limit=limit, behind=behind)
        )

    def put(self, shard: int, cursors: Sequence[Cursor]) -> None:
        self.hostility.batch("agenda.put", cursors, lambda some: self.inner.put(shard, some))

    def recover(self, shard: int, cursor: Cursor) -> None:
        self.hostility.write("agenda.recover", lambda: self.inner.recover(shard, cursor))

    def delete(self, shard: int, cursors: Sequence[Cursor]) -> None:
        self.hostility.batch("agenda.delete", cursors, lambda some: self.inner.delete(shard, some))

    def quarantine(self, shard: int, cursor: Cursor, *, reason: str) -> None:
        self.hostility.write(
            "agenda.quarantine", lambda: self.inner.quarantine(shard, cursor, reason=reason)
        )


@dataclass(frozen=True, slots=True)
class HostileOutbox:
    inner: Outbox
    hostility: Hostility

    def put(self, page: Page) -> None:
        self.hostility.write("outbox.put", lambda: self.inner.put(page))

    def delete(self, page: Page) -> None:
        self.hostility.write("outbox.delete", lambda: self.inner.delete(page))

    def left(self, shard: int, *, written_before: datetime, limit: int) -> tuple[Page, ...]:
        return self.hostility.call(
            "outbox.left",
            lambda: self.inner.left(shard, written_before=written_before, limit=limit),
        )


@dataclass(frozen=True, slots=True)
class HostileLanes:
    inner: Lanes
    hostility: Hostility

    def send(self, lane: Lane, sendings: Sequence[Sending]) -> tuple[Sending, ...]:
        return self.hostility.given_back(
            "lanes.send", sendings, lambda some: self.inner.send(lane, some)
        )


@dataclass(frozen=True, slots=True)
class HostileLedger:
    inner: Ledger
    hostility: Hostility

    def read(self, key: RunKey) -> Run | None:
        return self.hostility.call("ledger.read", lambda: self.inner.read(key))

    def swap(self, run: Run, *, seen: Run | None) -> bool:
        return self.hostility.write("ledger.swap", lambda: self.inner.swap(run, seen=seen))

    def record(self, run: Run) -> bool:
        return self.hostility.write("ledger.record", lambda: self.inner.record(run))

    def record_and_free(self, run: Run) -> bool:
        return self.hostility.write(
            "ledger.record_and_free", lambda: self.inner.record_and_free(run)
        )

    def slot(self, key: ScheduleKey) -> Slot:
        return self.hostility.call("ledger.slot", lambda: self.inner.slot(key))

    def swap_with_slot(self, slot: SlotSwap, *runs: RunSwap | Unchanged) -> bool:
        return self.hostility.write(
            "ledger.swap_with_slot", lambda: self.inner.swap_with_slot(slot, *runs)
        )

    def reopen(self, run: Run, *, seen: Run, page: Page) -> bool:
        return self.hostility.write(
            "ledger.reopen", lambda: self.inner.reopen(run, seen=seen, page=page)
        )

    def dead(
        self, tenant: TenantId, which: DeadLetterFilter, *, before: str | None, limit: int
    ) -> DeadLetterPage:
        return self.hostility.call(
            "ledger.dead", lambda: self.inner.dead(tenant, which, before=before, limit=limit)
        )

    def note(self, note: Note) -> None:
        self.hostility.write("ledger.note", lambda: self.inner.note(note))

    def put_spans(self, spans: Sequence[Span]) -> None:
        self.hostility.batch("ledger.put_spans", spans, self.inner.put_spans)

    def between(
        self, key: ScheduleKey, *, first: str, last: str, limit: int, newest_first: bool = False
    ) -> tuple[Run | Span | Note, ...]:
        return self.hostility.call(
            "ledger.between",
            lambda: self.inner.between(
                key, first=first, last=last, limit=limit, newest_first=newest_first
            ),
        )


@dataclass(frozen=True, slots=True)
class HostileRequests:
    inner: Requests
    hostility: Hostility

    def read(self, key: ScheduleKey, request_id: str) -> RunRequest | None:
        return self.hostility.call("requests.read", lambda: self.inner.read(key, request_id))

    def put(self, request: RunRequest) -> RunRequest:
        return self.hostility.write("requests.put", lambda: self.inner.put(request))


@dataclass(frozen=True, slots=True)
class HostileShards:
    inner: Shards
    hostility: Hostility

    def ensure(self, shard: Shard) -> None:
        self.hostility.write("shards.ensure", lambda: self.inner.ensure(shard))

    def get(self, shard: int) -> Shard | None:
        return self.hostility.call("shards.get", lambda: self.inner.get(shard))

    def all(self) -> tuple[int, ...]:
        return self.hostility.call("shards.all", self.inner.all)

    def lease(self, shard: int, *, owner: str, now: datetime, until: datetime) -> bool:
        return self.hostility.write(
            "shards.lease", lambda: self.inner.lease(shard, owner=owner, now=now, until=until)
        )

    def release(self, shard: int, *, owner: str) -> None:
        self.hostility.write("shards.release", lambda: self.inner.release(shard, owner=owner))

    def announce(self, shard: int, planned_through: datetime) -> None:
        self.hostility.write("shards.announce", lambda: self.inner.announce(shard, planned_through))

    def close(self, shard: int, *, completed_through: datetime, drained_through: datetime) -> None:
        self.hostility.write(
            "shards.close",
            lambda: self.inner.close(
                shard, completed_through=completed_through, drained_through=drained_through
            ),
        )


@dataclass(frozen=True, slots=True)
class HostileZoneReleases:
    inner: ZoneReleases
    hostility: Hostility

    def in_use(self) -> ReleasesInUse | None:
        return self.hostility.call("zone_releases.in_use", self.inner.in_use)

    def swap(self, in_use: ReleasesInUse, *, seen: ReleasesInUse | None) -> bool:
        return self.hostility.write(
            "zone_releases.swap", lambda: self.inner.swap(in_use, seen=seen)
        )

    def keep(self, rules: ZoneRules) -> None:
        self.hostility.write("zone_releases.keep", lambda: self.inner.keep(rules))

    def rules(self, release: str) -> ZoneRules | None:
        return self.hostility.call("zone_releases.rules", lambda: self.inner.rules(release))


@dataclass(frozen=True, slots=True)
class HostilePlanners:
    inner: Planners
    hostility: Hostility

    def start(self, shard: int) -> None:
        self.hostility.write("planners.start", lambda: self.inner.start(shard))
