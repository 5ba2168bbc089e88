"""Replay many dead letters, at the tenant's catch-up rate, with a result for each of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from puntual.application.codec import dead_letter_text
from puntual.application.draw_tokens import DrawTokens
from puntual.application.list_dead_letters import check_filter, place_of, token_at
from puntual.application.ports import Clock, Ledger, Schedules, Tenants
from puntual.application.reopen_occurrence import ReopenOccurrence
from puntual.application.show_occurrence import run_key_of
from puntual.domain.budget import CATCH_UPS, BudgetKey, time_of
from puntual.domain.errors import Rejected, Unavailable
from puntual.domain.instant import rounded_to_millisecond
from puntual.domain.occurrence import RunKey
from puntual.domain.page_token import ForeignPageToken
from puntual.domain.replay import REPLAYS_MAX, DeadLetterFilter
from puntual.domain.run import Run
from puntual.domain.schedule import Schedule, ScheduleKey
from puntual.domain.tenant import ScheduleId, Tenant, TenantId, UnknownTenant

TIME_MAX = timedelta(seconds=20)
"""After so much time no other one is begun: the API's caller waits no longer than 29 seconds."""

LOST = "it was changed meanwhile"
NO_TIME = "no time was left for it; ask again"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """What became of one: the row of its new round, or why there is none.

    After a dry run, `why` alone tells: it is None where a replay would do.
    """

    key: RunKey
    run: Run | None
    why: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedDeadLetters:
    """`token` is where a call with the same filter goes on, if there may be more."""

    results: tuple[ReplayResult, ...]
    dry_run: bool
    token: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A row as it is, with its head, or why it cannot be replayed."""

    key: RunKey
    run: Run | None = None
    head: Schedule | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayDeadLetters:
    tenants: Tenants
    schedules: Schedules
    ledger: Ledger
    reopen: ReopenOccurrence
    draw: DrawTokens
    clock: Clock

    def matching(
        self,
        tenant: TenantId,
        which: DeadLetterFilter,
        *,
        limit: int,
        token: str | None,
        dry_run: bool,
    ) -> ReplayedDeadLetters:
        """Replay those that a list with this filter would show, in its order, up to `limit`.

        Raises `UnknownTenant`, `Rejected`, `Unavailable`.
        """
        started_at = self.clock.now()
        check_filter(which)
        before = _resumed_at(token, tenant, which)
        registered = self._registered(tenant)
        page = self.ledger.dead(tenant, which, before=before, limit=limit)
        keys = [run.occurrence.key for run in page.runs]
        results = self._replayed(registered, keys, started_at, dry_run=dry_run)
        reached = next(
            (number for number, each in enumerate(results) if each.why == NO_TIME), len(results)
        )
        if results and not reached:
            raise Unavailable("no time was left to replay any")
        behind = page.before
        if reached < len(results):
            behind = dead_letter_text(page.runs[reached - 1])
        return ReplayedDeadLetters(
            results=results[:reached], dry_run=dry_run, token=token_at(behind, tenant, which)
        )

    def named(
        self, tenant: TenantId, refs: Sequence[tuple[ScheduleId, str]], *, dry_run: bool
    ) -> ReplayedDeadLetters:
        """Replay those of a list; whatever has ended will do, but for what has SUCCEEDED.

        Raises `UnknownTenant`, `Rejected`.
        """
        started_at = self.clock.now()
        if not 0 < len(refs) <= REPLAYS_MAX:
            raise Rejected("refs", f"{len(refs)} refs", f"1 to {REPLAYS_MAX}")
        keys = [
            RunKey(tenant=tenant, schedule=schedule, run=run_key_of(ref, field="refs.ref")[1])
            for schedule, ref in refs
        ]
        registered = self._registered(tenant)
        distinct = list(dict.fromkeys(keys))
        results = self._replayed(registered, distinct, started_at, dry_run=dry_run)
        return ReplayedDeadLetters(results=results, dry_run=dry_run)

    def _registered(self, tenant: TenantId) -> Tenant:
        registered = self.tenants.get(tenant)
        if registered is None:
            raise UnknownTenant(tenant)
        return registered

    def _replayed(
        self, tenant: Tenant, keys: Sequence[RunKey], started_at: datetime, *, dry_run: bool
    ) -> tuple[ReplayResult, ...]:
        ends_at = started_at + TIME_MAX
        candidates = self._candidates(keys, ends_at)
        count = sum(each.why is None for each in candidates)
        if dry_run or not count:
            return tuple(ReplayResult(key=each.key, run=None, why=each.why) for each in candidates)
        times = self._times(tenant, count)
        return tuple(self._result(each, times, ends_at) for each in candidates)

    def _candidates(self, keys: Sequence[RunKey], ends_at: datetime) -> list[_Candidate]:
        """Read each row strongly: the index may show what is not so any more."""
        heads = self.schedules.heads(list(dict.fromkeys(_schedule_of(key) for key in keys)))
        found: list[_Candidate] = []
        for key in keys:
            if self.clock.now() >= ends_at:
                found.append(_Candidate(key=key, why=NO_TIME))
            else:
                found.append(self._candidate(key, heads.get(_schedule_of(key))))
        return found

    def _candidate(self, key: RunKey, head: Schedule | None) -> _Candidate:
        if head is None:
            return _Candidate(key=key, why="the tenant has no such schedule")
        rows = self.ledger.between(head.key, first=key.run, last=key.run, limit=1)
        run = rows[0] if rows else None
        if not isinstance(run, Run):
            return _Candidate(key=key, why="it has no row of its own; a backfill can run it")
        why = self.reopen.why_not(run, head, force=False)
        return _Candidate(key=key, run=run, head=head, why=why)

    def _times(self, tenant: Tenant, count: int) -> Iterator[datetime]:
        """Take a token of the tenant's catch-up rate for each, and give when each may be used."""
        budget = BudgetKey(tenant=tenant.tenant, name=CATCH_UPS)
        rate = tenant.quotas.catch_ups_per_minute
        first = self.draw.reserve(budget, rate, count)
        return (rounded_to_millisecond(first + time_of(number, rate)) for number in range(count))

    def _result(
        self, candidate: _Candidate, times: Iterator[datetime], ends_at: datetime
    ) -> ReplayResult:
        if candidate.why is not None:
            return ReplayResult(key=candidate.key, run=None, why=candidate.why)
        assert candidate.run is not None
        assert candidate.head is not None
        not_before = next(times)
        if self.clock.now() >= ends_at:
            return ReplayResult(key=candidate.key, run=None, why=NO_TIME)
        run = self.reopen(candidate.run, candidate.head, not_before=not_before)
        return ReplayResult(key=candidate.key, run=run, why=None if run else LOST)


def _resumed_at(token: str | None, tenant: TenantId, which: DeadLetterFilter) -> str | None:
    """Read a place back; raises `Rejected` by the name that the token has in a replay."""
    try:
        return place_of(token, tenant, which)
    except ForeignPageToken as error:
        allowed = "the resume_token of the last answer to the same filter"
        raise Rejected("resume_token", token, allowed) from error


def _schedule_of(key: RunKey) -> ScheduleKey:
    return ScheduleKey(tenant=key.tenant, schedule=key.schedule)
