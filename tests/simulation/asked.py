"""What callers ask for beside the rules: triggers and backfills, and what must become of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import pairwise

from puntual.application.backfill_schedule import BackfillSchedule, Range
from puntual.application.control_plane import ControlPlane
from puntual.application.send_request import SendRequest
from puntual.application.trigger_schedule import TriggerSchedule
from puntual.domain.instant import MILLISECOND
from puntual.domain.occurrence import Kind
from puntual.domain.request import Request
from puntual.domain.run import Run, RunState
from puntual.domain.run_request import RunRequest
from puntual.domain.schedule import Schedule, ScheduleKey
from puntual.domain.tenant import ScheduleId
from tests.fakes.in_memory_ledger import InMemoryLedger
from tests.fakes.in_memory_schedules import InMemorySchedules
from tests.simulation.record import CATCH_UPS_PER_MINUTE, CLOCKS_APART_MAX, Asked, Record
from tests.simulation.scheduler import MINUTE, SECOND, Scheduler, instant_at
from tests.simulation.workload import AUTHOR, TENANT

CATCH_UPS_APART = timedelta(minutes=1) / CATCH_UPS_PER_MINUTE - MILLISECOND
"""Of the backfills of one request, at the tenant's rate, rounded."""

CLOCKS_APART = timedelta(milliseconds=CLOCKS_APART_MAX)
BACK_MAX = 3600 * SECOND


def asking_by(
    api: ControlPlane, send_request: type[SendRequest], backfill: type[BackfillSchedule]
) -> ControlPlane:
    """Put these parts in the place of those that requests go by."""
    before = api.trigger_schedule.send
    send = send_request(
        schedules=before.schedules,
        requests=before.requests,
        outbox=before.outbox,
        ledger=before.ledger,
        announced=before.announced,
        clock=before.clock,
        ids=before.ids,
    )
    old = api.backfill_schedule
    return replace(
        api,
        trigger_schedule=TriggerSchedule(send=send),
        backfill_schedule=backfill(
            tenants=old.tenants, ledger=old.ledger, derive=old.derive, draw=old.draw, send=send
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Plans a seed's triggers and backfills ahead, some of them around a pause or cancel."""

    scheduler: Scheduler
    api: ControlPlane
    record: Record
    heads: Callable[[ScheduleKey], Schedule | None]
    call: Callable[[Callable[[], object]], None]
    lasts: int

    def plan(self) -> None:
        random = self.scheduler.random
        for number in range(random.randint(6, 16)):
            when = random.randint(5 * MINUTE, self.lasts)
            ask = random.choice((self._trigger, self._trigger, self._backfill))
            self.scheduler.at(when, partial(self._ask, ask, f"k{number}"))

    def _ask(self, ask: Callable[[ScheduleKey, str], Callable[[], None]], name: str) -> None:
        random = self.scheduler.random
        key = ScheduleKey(tenant=TENANT, schedule=ScheduleId(f"s{random.randint(0, 3)}"))
        if self.heads(key) is None:
            return
        if random.random() < 0.3:
            self._change_nearby(key)
        if random.random() < 0.4:
            # A client that hears nothing, or is in doubt, asks again under its key.
            once = ask(key, name)
            for wait in (0, *random.choice(((), (0,), (1, 40)))):
                self.scheduler.after(wait * SECOND, partial(self.call, once))
            return
        for _ in range(random.choice((1, 1, 3))):
            self.call(ask(key, ""))

    def _change_nearby(self, key: ScheduleKey) -> None:
        random, api = self.scheduler.random, self.api
        change = random.choice(
            (api.pause_schedule, api.pause_schedule, api.resume_schedule, api.cancel_schedule)
        )
        wait = random.randint(0, 6 * SECOND)
        self.scheduler.after(wait, lambda: self.call(lambda: change(key, author=AUTHOR)))

    def _trigger(self, key: ScheduleKey, name: str) -> Callable[[], None]:
        request = Request(key=name, body="trigger") if name else None

        def trigger() -> None:
            began_at = self.scheduler.now
            self._answered(self.api.trigger_schedule(key, request=request), began_at)

        return trigger

    def _backfill(self, key: ScheduleKey, name: str) -> Callable[[], None]:
        random, now = self.scheduler.random, self.scheduler.now
        start = random.randint(max(0, now - BACK_MAX), now)
        end = instant_at(random.choice((now, random.randint(start, now)))) - CLOCKS_APART
        wanted = Range(
            start=min(instant_at(start), end),
            end=end,
            limit=random.randint(1, 4),
            only_missing=random.random() < 0.7,
        )
        request = Request(key=name, body=repr(wanted)) if name else None

        def backfill() -> None:
            began_at = self.scheduler.now
            asked = self.api.backfill_schedule(key, wanted, request=request)
            self._answered(asked, began_at, only_missing=wanted.only_missing)

        return backfill

    def _answered(self, request: RunRequest, began_at: int, *, only_missing: bool = False) -> None:
        self.record.asked.append(Asked(request, began_at, only_missing))
        self.record.counts[f"{request.kind} requests"] += 1
        self.record.counts[f"{request.kind} asked for"] += len(request.fires)


def check_asked(
    record: Record, ledger: InMemoryLedger, schedules: InMemorySchedules, at: int
) -> None:
    """Each that was asked for ran under its one id, or a row says why it did not."""
    by_request = {(asked.request.key, asked.request.id): asked for asked in record.asked}
    answers = [asked for asked in record.asked if not asked.request.fingerprint]
    if len({(asked.request.key, asked.request.id) for asked in answers}) < len(answers):
        record.fail("TWO REQUESTS ARE ONE", [asked.request for asked in answers], at)
    for asked in record.asked:
        stands = by_request[asked.request.key, asked.request.id].request
        if asked.request != stands:
            record.fail("TWO ANSWERS TO ONE KEY", f"{asked.request} {stands}", at)
    for asked in by_request.values():
        head = schedules.head_rows[asked.request.key]
        for planned in asked.request.planned:
            row = ledger.read(planned.occurrence.key)
            _check_row(record, asked, planned.occurrence.id, row, head, at)
        _check_missing(record, asked, ledger, at)
    _check_rate(record, list(by_request.values()), at)


def _check_row(
    record: Record, asked: Asked, own_id: str, row: Run | None, head: Schedule, at: int
) -> None:
    request = asked.request
    if row is None:
        record.fail("ASKED RUN LOST", f"{request}", at)
        return
    record.counts[f"{request.kind} {row.state}"] += 1
    if row.occurrence.id != own_id:
        record.fail("ASKED RUN UNDER ANOTHER ID", row, at)
    if row.state is RunState.MISSED:
        record.fail("ASKED RUN MISSED", row, at)
    voided = request.authorised_version < head.min_valid_version
    by_overlap = row.reason.startswith("overlap")
    if row.state is RunState.CANCELED and not (voided or by_overlap):
        record.fail("ASKED RUN CANCELED", row, at)


def _check_missing(record: Record, asked: Asked, ledger: InMemoryLedger, at: int) -> None:
    """What had an attempt before a backfill of what is missing began is not missing."""
    if not asked.only_missing:
        return
    own = {planned.occurrence.key for planned in asked.request.planned}
    instants = {planned.occurrence.scheduled_for for planned in asked.request.planned}
    for row in ledger.rows.get(asked.request.key, {}).values():
        if not isinstance(row, Run) or row.occurrence.kind is Kind.MANUAL:
            continue
        key = row.occurrence.key
        before = record.claimed_at.get(key, at) < asked.began_at
        if key not in own and row.occurrence.scheduled_for in instants and before:
            record.fail("BACKFILL REPEATED A RUN", row, at)


def _check_rate(record: Record, asked: list[Asked], at: int) -> None:
    available = sorted(
        planned.available_at
        for each in asked
        if each.request.kind is Kind.BACKFILL
        for planned in each.request.planned
    )
    if any(later - earlier < CATCH_UPS_APART for earlier, later in pairwise(available)):
        record.fail("OVER THE RATE", available, at)
