"""Backfill a past range of a schedule: its instants anew, in the recovery lane, at a rate."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from puntual.application.derive_fires import AFTER_ALL_SUFFIXES, DeriveFires
from puntual.application.draw_tokens import DrawTokens
from puntual.application.ports import Ledger, Tenants
from puntual.application.send_request import SendRequest
from puntual.domain.backfill import Found, check_drains, check_range, found_at
from puntual.domain.budget import CATCH_UPS, BudgetKey, reserve, time_of
from puntual.domain.instant import (
    DAY,
    MILLISECOND,
    TEXT_LENGTH,
    instant_of,
    rounded_to_millisecond,
    text_of,
)
from puntual.domain.occurrence import Kind
from puntual.domain.request import Request
from puntual.domain.run import Run, Span
from puntual.domain.run_request import OwnedFire, RunRequest, Survey
from puntual.domain.schedule import Schedule, ScheduleKey
from puntual.domain.tenant import UnknownTenant
from puntual.domain.timeline import Fire, run_of

LOOKED_AT_MAX = 10_000
"""Instants that one backfill looks at."""

LOOKS_MAX = 100
"""Parts that a range is looked at in: a day each, or a few versions of one."""

ROWS_PER_LOOK_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Instants from `start` to `end`, both included, and which of them to run.

    At most `limit`, the earliest; all of them, or those only of which nothing ran nor will.
    """

    start: datetime
    end: datetime
    limit: int
    only_missing: bool


@dataclass(slots=True)
class _Survey:
    """What was found so far. `place` is the instant through which everything was looked at."""

    wanted: Range
    place: datetime
    fires: list[OwnedFire] = field(default_factory=list)
    looked_at: int = 0
    ran: int = 0
    pending: int = 0

    def takes(self, fire: Fire, found: Found) -> bool:
        """Count an instant; False, with nothing counted, where a bound is met."""
        wanted = not self.wanted.only_missing or found is Found.MISSING
        if self.looked_at >= LOOKED_AT_MAX or (wanted and len(self.fires) >= self.wanted.limit):
            return False
        self.looked_at += 1
        self.ran += found is Found.RAN
        self.pending += found is Found.PENDING
        self.place = fire.occurrence.scheduled_for
        if wanted:
            self.fires.append(OwnedFire(fire.occurrence.version, self.place))
        return True

    def closed(self, rest_from: datetime | None) -> Survey:
        return Survey(
            looked_at=self.looked_at, ran=self.ran, pending=self.pending, rest_from=rest_from
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillSchedule:
    tenants: Tenants
    ledger: Ledger
    derive: DeriveFires
    draw: DrawTokens
    send: SendRequest

    def __call__(
        self,
        key: ScheduleKey,
        wanted: Range,
        *,
        seen: int | None = None,
        request: Request | None = None,
        dry_run: bool = False,
    ) -> RunRequest:
        """Run instants of a past range once more, each by the version that owned it.

        A dry run says what would run, and writes nothing. Raises `UnknownTenant`,
        `UnknownSchedule`, `StaleVersion`, `NothingRuns`, `IdempotencyKeyReused`, `Rejected`.
        """
        asked = None if dry_run else self.send.before(key, request)
        if asked is None:
            asked = self._asked(key, wanted, seen=seen, request=request, dry_run=dry_run)
        return asked if dry_run else self.send(asked, request)

    def _asked(
        self,
        key: ScheduleKey,
        wanted: Range,
        *,
        seen: int | None,
        request: Request | None,
        dry_run: bool,
    ) -> RunRequest:
        tenant = self.tenants.get(key.tenant)
        if tenant is None:
            raise UnknownTenant(key.tenant)
        head, now = self.send.head(key, seen=seen), self.send.clock.now()
        check_range(wanted.start, wanted.end, now=now)
        fires, survey = self._survey(head, wanted, now)
        per_minute = tenant.quotas.catch_ups_per_minute
        return RunRequest(
            tenant=key.tenant,
            schedule=key.schedule,
            id=self.send.id_of(request),
            fingerprint=request.fingerprint if request else "",
            kind=Kind.BACKFILL,
            authorised_version=head.version,
            asked_at=now,
            fires=fires,
            available_from=self._reserved(key, per_minute, len(fires), now, dry_run=dry_run),
            per_minute=per_minute,
            survey=survey,
        )

    def _reserved(
        self, key: ScheduleKey, per_minute: int, count: int, now: datetime, *, dry_run: bool
    ) -> datetime:
        """Reserve the rate; gives when the first may run, in whole milliseconds.

        A dry run, or nothing to reserve, only looks.
        """
        budget = BudgetKey(tenant=key.tenant, name=CATCH_UPS)
        if not count:
            return now
        _, first = reserve(self.draw.budgets.read(budget), per_minute, count, now)
        last = first + time_of(count - 1, per_minute)
        check_drains(last, count=count, per_minute=per_minute, now=now)
        if not dry_run:
            first = self.draw.reserve(budget, per_minute, count)
        return rounded_to_millisecond(first)

    def _survey(
        self, head: Schedule, wanted: Range, now: datetime
    ) -> tuple[tuple[OwnedFire, ...], Survey]:
        """Look at the range from its beginning until it ends or a bound is met."""
        survey = _Survey(wanted=wanted, place=wanted.start - MILLISECOND)
        for _ in range(LOOKS_MAX):
            through, fires = self._look(head, survey, now)
            for fire, found in fires:
                if not survey.takes(fire, found):
                    rest_from = fire.occurrence.scheduled_for
                    return tuple(survey.fires), survey.closed(rest_from)
            survey.place = through
            if through >= wanted.end:
                return tuple(survey.fires), survey.closed(None)
        return tuple(survey.fires), survey.closed(survey.place + MILLISECOND)

    def _look(
        self, head: Schedule, survey: _Survey, now: datetime
    ) -> tuple[datetime, list[tuple[Fire, Found]]]:
        """Judge the instants of a part of the range; gives through which instant, and them.

        A part ends with its UTC day: so do spans, which are all read that way.
        """
        after = survey.place
        through = min(_day_end(after + MILLISECOND), survey.wanted.end)
        derived = self.derive(
            head,
            after=after,
            through=through,
            limit=LOOKED_AT_MAX - survey.looked_at + 1,
            now=now,
        )
        through = min(through, instant_of(derived.complete_through[:TEXT_LENGTH]))
        rows = self.ledger.between(
            head.key,
            first=text_of(after + MILLISECOND),
            last=text_of(_day_end(after + MILLISECOND)) + AFTER_ALL_SUFFIXES,
            limit=ROWS_PER_LOOK_MAX,
        )
        if len(rows) == ROWS_PER_LOOK_MAX:
            through = min(through, instant_of(run_of(rows[-1])[:TEXT_LENGTH]) - MILLISECOND)
        runs: dict[datetime, list[Run]] = defaultdict(list)
        for row in rows:
            if isinstance(row, Run):
                runs[row.occurrence.scheduled_for].append(row)
        spans = [row for row in rows if isinstance(row, Span)]
        return through, [
            (fire, found_at(fire, runs.get(fire.occurrence.scheduled_for, ()), spans, now))
            for fire in derived.fires
            if fire.occurrence.scheduled_for <= through
        ]


def _day_end(instant: datetime) -> datetime:
    """Give the last millisecond of an instant's UTC day."""
    return instant.replace(hour=0, minute=0, second=0, microsecond=0) + DAY - MILLISECOND
