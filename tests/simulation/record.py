"""What the simulation saw happen, and what was wrong at the very moment that it happened.

Everything here is judged on true time, which no function knows, and by rules of its own: it shares
no code with the domain's judgement and planning.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from puntual.domain.lane import Lane
from puntual.domain.message import Message
from puntual.domain.occurrence import Occurrence, OccurrenceId, RunKey
from puntual.domain.run import Run, RunState
from puntual.domain.schedule import Schedule, ScheduleKey, ScheduleVersion
from puntual.domain.target import Delivery
from tests.simulation.scheduler import (
    LIFE_MAX,
    SECOND,
    SKEW_MAX,
    Function,
    FunctionKind,
    milliseconds_of,
)

CLOCKS_APART_MAX = 2 * SKEW_MAX


class Failure(NamedTuple):
    kind: str
    detail: str
    at: int


class Voiding(NamedTuple):
    """A pause or cancel: versions below `min_valid_version` must not start any more."""

    at: int
    min_valid_version: int


class Fire(NamedTuple):
    schedule: ScheduleKey
    version: int
    scheduled_for: datetime


@dataclass(slots=True)
class Record:
    failures: list[Failure] = field(default_factory=list)
    committed_at: dict[tuple[ScheduleKey, int], int] = field(default_factory=dict)
    versions: dict[tuple[ScheduleKey, int], ScheduleVersion] = field(default_factory=dict)
    voidings: dict[ScheduleKey, list[Voiding]] = field(default_factory=lambda: defaultdict(list))
    visible_at: dict[Fire, int] = field(default_factory=dict)
    available_at: dict[OccurrenceId, datetime] = field(default_factory=dict)
    lease_ends: dict[RunKey, int] = field(default_factory=dict)
    ended_at: dict[RunKey, int] = field(default_factory=dict)
    effects: dict[RunKey, dict[OccurrenceId, int]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def fail(self, kind: str, detail: object, at: int) -> None:
        self.failures.append(Failure(kind, str(detail), at))

    def committed(self, head: Schedule, version: ScheduleVersion, now: int) -> None:
        before = self.voidings[head.key][-1:]
        if head.min_valid_version > (before[0].min_valid_version if before else 0):
            self.voidings[head.key].append(Voiding(now, head.min_valid_version))
        self.committed_at[head.key, head.version] = now
        self.versions[head.key, head.version] = version
        self.counts[f"version {version.state}"] += 1

    def became_visible(self, message: Message, visible_at: int) -> None:
        occurrence = message.occurrence
        fire = Fire(_schedule_of(occurrence), occurrence.version, occurrence.scheduled_for)
        self.visible_at[fire] = min(visible_at, self.visible_at.get(fire, visible_at))
        self.counts["messages"] += 1
        flexible = bool(self.versions[fire.schedule, fire.version].policies.window)
        if message.lane is (Lane.STRICT if flexible else Lane.FLEXIBLE):
            self.fail("WRONG LANE", message, visible_at)

    def called(self, delivery: Delivery, function: Function, now: int) -> None:
        occurrence = delivery.occurrence
        due = self.available_at.get(occurrence.id, occurrence.scheduled_for)
        if now + function.skew < milliseconds_of(max(due, occurrence.scheduled_for)):
            self.fail("EARLY", occurrence, now)

    def arrived(self, occurrence: Occurrence) -> None:
        ids = self.effects[occurrence.key]
        ids[occurrence.id] = ids.get(occurrence.id, 0) + 1

    def wrote(self, before: Run | None, after: Run, function: Function, now: int) -> None:
        """Judge a change of a row of the ledger as it happens."""
        self.counts[f"-> {after.state}"] += 1
        if before is not None:
            self._overwrote(before, after, function, now)
        if after.state.is_terminal:
            self.ended_at[after.occurrence.key] = now
        match after.state:
            case RunState.RUNNING:
                self._claimed(before, after, function, now)
            case RunState.CANCELED:
                self._canceled(after, now)
            case RunState.MISSED:
                self._missed(after, now)
            case RunState.DEAD if after.reason == "undeliverable":
                self._buried(after, now)
            case _:
                pass

    def _overwrote(self, before: Run, after: Run, function: Function, now: int) -> None:
        key, claims = after.occurrence.key, after.state is RunState.RUNNING
        if before.occurrence.id != after.occurrence.id:
            self.fail("TWO IDS", f"{key} {before} {after}", now)
        asked = function.message
        if asked is not None and asked.occurrence.id != before.occurrence.id:
            self.fail("WRITTEN FOR ANOTHER", f"{key} {before} {after}", now)
        if before.state.is_terminal:
            self.fail("TERMINAL ROW REOPENED", f"{key} {before.state} {after.state}", now)
        if claims and before.attempt >= after.attempt:
            self.fail("ATTEMPT NOT RAISED", key, now)
        live = before.state is RunState.RUNNING and now < self.lease_ends.get(key, 0)
        if live and (claims or before.attempt != after.attempt):
            self.fail("TWO LIVE LEASES", f"{key} {before} {after}", now)

    def ended_another(self, before: Run, after: Run, now: int) -> None:
        """Judge a row that was ended by another than its attempt's own executor."""
        if before.state is RunState.RUNNING and now < self.lease_ends.get(before.occurrence.key, 0):
            self.fail(f"LIVE RUN {after.state} BY ANOTHER", before.occurrence.key, now)

    def _claimed(self, before: Run | None, run: Run, function: Function, now: int) -> None:
        occurrence = run.occurrence
        schedule = _schedule_of(occurrence)
        assert run.lease_until is not None
        self.lease_ends[occurrence.key] = milliseconds_of(run.lease_until) - function.skew
        known = self.available_at.setdefault(occurrence.id, run.available_at)
        if known != run.available_at:
            self.fail("TWO JITTERS", occurrence, now)
        window = self.versions[schedule, occurrence.version].policies.window
        jitter = run.available_at - occurrence.scheduled_for
        if not (timedelta(0) <= jitter < window or jitter == timedelta(0)):
            self.fail("JITTER OUTSIDE ITS WINDOW", occurrence, now)
        waiting = before is not None and before.state is RunState.RETRY_WAIT
        not_before = before.not_before if before is not None and waiting else None
        if not_before is not None and now + CLOCKS_APART_MAX < milliseconds_of(not_before):
            self.fail("BACKOFF NOT HONOURED", occurrence, now)
        checked_at = function.seen.get(schedule, -1)
        judged = max(occurrence.version, run.authorised_version or 0)
        for voiding in self.voidings[schedule]:
            if voiding.at < checked_at and judged < voiding.min_valid_version:
                self.fail("STARTED AFTER PAUSE", occurrence, now)
        if run.attempt == 1:
            self._first_claim(run, schedule, checked_at)

    def _first_claim(self, run: Run, schedule: ScheduleKey, checked_at: int) -> None:
        occurrence = run.occurrence
        ended_at = self.committed_at.get((schedule, occurrence.version + 1))
        if ended_at is not None and ended_at < checked_at:
            until = self.versions[schedule, occurrence.version + 1].effective_from
            if occurrence.scheduled_for >= until:
                self.fail("RAN AFTER UNTIL", occurrence, checked_at)
        misfire = self.versions[schedule, occurrence.version].policies.misfire
        late = checked_at - milliseconds_of(run.available_at) - CLOCKS_APART_MAX
        bounds = [misfire.max_lateness]
        if misfire.policy == "skip":
            bounds.append(misfire.after)
        if any(bound is not None and late > bound.total_seconds() * SECOND for bound in bounds):
            self.fail("RAN TOO LATE", occurrence, checked_at)

    def _canceled(self, run: Run, now: int) -> None:
        judged = max(run.occurrence.version, run.authorised_version or 0)
        voidings = self.voidings[_schedule_of(run.occurrence)]
        if not voidings or judged >= voidings[-1].min_valid_version:
            self.fail("LIVE RUN CANCELED", run.occurrence, now)

    def _buried(self, run: Run, now: int) -> None:
        """A voided run is CANCELED; only who asked before the voiding may still call it DEAD."""
        judged = max(run.occurrence.version, run.authorised_version or 0)
        asked_at = now - LIFE_MAX[FunctionKind.UNDELIVERABLE]
        for voiding in self.voidings[_schedule_of(run.occurrence)]:
            if voiding.at < asked_at and judged < voiding.min_valid_version:
                self.fail("VOIDED RUN DEAD", run.occurrence, now)

    def _missed(self, run: Run, now: int) -> None:
        occurrence = run.occurrence
        misfire = self.versions[_schedule_of(occurrence), occurrence.version].policies.misfire
        late = now - milliseconds_of(run.available_at) + CLOCKS_APART_MAX
        if late <= misfire.after.total_seconds() * SECOND:
            self.fail("MISSED BEFORE IT WAS LATE", occurrence, now)


def _schedule_of(occurrence: Occurrence) -> ScheduleKey:
    return ScheduleKey(tenant=occurrence.tenant, schedule=occurrence.schedule)
