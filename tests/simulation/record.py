"""What the simulation saw happen, and what was wrong at the very moment that it happened.

Everything here is judged on true time, which no function knows, and by rules of its own: it shares
no code with the domain's judgement and planning.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from puntual.domain.callback_token import Ticket
from puntual.domain.lane import Lane
from puntual.domain.message import Message
from puntual.domain.occurrence import Kind, Occurrence, OccurrenceId, RunKey
from puntual.domain.policies import ATTEMPTS_MAX
from puntual.domain.run import Run, RunState
from puntual.domain.run_request import RunRequest
from puntual.domain.schedule import Schedule, ScheduleKey, ScheduleState, ScheduleVersion
from puntual.domain.slot import Place, Slot
from puntual.domain.target import Delivery
from tests.simulation.scheduler import (
    LIFE_MAX,
    MINUTE,
    SECOND,
    SKEW_MAX,
    Function,
    FunctionKind,
    milliseconds_of,
)

CLOCKS_APART_MAX = 2 * SKEW_MAX

CATCH_UPS_PER_MINUTE = 20
"""What the tenant may make up for."""

CATCH_UPS_BUNCHED = 3
"""How many minutes' worth may come within one: a slice takes a minute's tokens at once, and what is
granted may lie in its lane for as long again before it counts as late."""

LEASE_SLACK = 15 * SECOND
"""How long after its end a lease may still be respected: margin, clocks, and a slow decision."""


CALM_FOR = 60 * SECOND
"""How long nothing must have gone wrong for a room to have been kept for sure."""


class Failure(NamedTuple):
    kind: str
    detail: str
    at: int


class Voiding(NamedTuple):
    """A pause or cancel: versions below `min_valid_version` must not start any more."""

    at: int
    min_valid_version: int


class Replay(NamedTuple):
    """A round that was opened for good: its row and its page were put."""

    key: RunKey
    round: int
    authorised_version: int
    at: int


class Asked(NamedTuple):
    """A request that was answered, and when its call began."""

    request: RunRequest
    began_at: int
    only_missing: bool


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
    asked: list[Asked] = field(default_factory=list)
    claimed_at: dict[RunKey, int] = field(default_factory=dict)
    """When a row had its first attempt."""

    under_way: dict[ScheduleKey, dict[RunKey, Run]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """Claimed rows that have not ended, of versions that may not overlap."""

    in_slots: dict[ScheduleKey, Slot] = field(default_factory=dict)
    caught_up: list[int] = field(default_factory=list)
    """When the latest of the late runs under `catch_up` were claimed."""

    waited: dict[OccurrenceId, Place] = field(default_factory=dict)
    """Whoever has had a waiting place."""

    replays: list[Replay] = field(default_factory=list)
    requests: dict[tuple[RunKey, str], int] = field(default_factory=dict)
    """The round that each request to replay has opened."""

    calls: dict[ScheduleKey, dict[OccurrenceId, int]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """Calls of targets that are going on, of versions that may not overlap."""

    completed: dict[RunKey, int] = field(default_factory=dict)
    """The attempts whose targets heard that their complete was taken."""

    taken: set[RunKey] = field(default_factory=set)
    """Runs that their targets have taken in time and in calm, and whose leases did not run out."""

    is_calm: Callable[[int, int], bool] = lambda _start, _end: True
    """Whether nothing went wrong between: else a room may not have been kept."""

    running_max: int | None = None
    fires_per_minute_max: int | None = None
    started_at: list[int] = field(default_factory=list)
    """First claims, of all schedules."""

    going_on: int = 0
    """Calls of targets that are going on, of all schedules."""

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
        if not occurrence.is_regular:
            self.counts[f"{occurrence.kind} messages"] += 1
            if (message.lane is Lane.FLEXIBLE) or (
                occurrence.kind is Kind.BACKFILL and message.lane is not Lane.RECOVERY
            ):
                self.fail("WRONG LANE", message, visible_at)
            return
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
        self.going_on += 1
        taken = [
            key
            for key in self.taken - {occurrence.key}
            if now < self.lease_ends[key] and self.is_calm(now - CALM_FOR, now)
        ]
        if self.running_max is not None and self.going_on + len(taken) > self.running_max:
            self.fail("OVER RUNNING_MAX", f"{self.going_on} {taken} {occurrence}", now)
        schedule = _schedule_of(occurrence)
        if not self._may_overlap(occurrence):
            calls = self.calls[schedule]
            for other in calls.keys() - {occurrence.id}:
                self.fail("TWO CALLS AT ONCE", f"{occurrence} {other}", now)
            calls[occurrence.id] = calls.get(occurrence.id, 0) + 1

    def hung_up(self, delivery: Delivery) -> None:
        """Note that a call is over, whether it was answered or its caller died."""
        self.going_on -= 1
        occurrence = delivery.occurrence
        calls = self.calls[_schedule_of(occurrence)]
        if occurrence.id in calls:
            calls[occurrence.id] -= 1
            if not calls[occurrence.id]:
                del calls[occurrence.id]

    def _may_overlap(self, occurrence: Occurrence) -> bool:
        schedule = _schedule_of(occurrence)
        return self.versions[schedule, occurrence.version].policies.overlap == "allow"

    def arrived(self, occurrence: Occurrence) -> None:
        ids = self.effects[occurrence.key]
        ids[occurrence.id] = ids.get(occurrence.id, 0) + 1

    def wrote(self, before: Run | None, after: Run, function: Function, now: int) -> None:
        """Judge a change of a row of the ledger as it happens."""
        self.counts[f"-> {after.state}"] += 1
        if before is not None:
            self._overwrote(before, after, function, now)
        if after.state.is_terminal:
            self._ended(after.occurrence, function, now)
        self._overlap(before, after, function, now)
        self._moved_on(after)
        match after.state:
            case RunState.RUNNING if before is None or before.attempt != after.attempt:
                self._claimed(before, after, function, now)
            case RunState.RUNNING:
                self._renewed(before, after, function, now)
            case RunState.CANCELED if after.reason.startswith("overlap"):
                self._canceled_by_overlap(before, after, now)
            case RunState.CANCELED:
                self._canceled(after, now)
            case RunState.MISSED:
                self._missed(after, function, now)
            case RunState.SKIPPED_OVERLAP:
                self._skipped(before, after, function, now)
            case RunState.DEAD if after.reason == "undeliverable":
                self._buried(after, now)
            case _:
                pass

    def _ended(self, occurrence: Occurrence, function: Function, now: int) -> None:
        self.ended_at[occurrence.key] = now
        if function.kind is FunctionKind.CALLBACK:
            # Its target is done, even where it has not hung up yet.
            self.calls[_schedule_of(occurrence)].pop(occurrence.id, None)

    def slot_written(self, slot: Slot, now: int) -> None:
        self.in_slots[slot.key] = slot
        if slot.waiting is not None and slot.waiting.occurrence.id not in self.waited:
            self.counts["waited for a slot"] += 1
            self.waited[slot.waiting.occurrence.id] = slot.waiting
        if slot.running is not None and slot.running == slot.waiting:
            self.fail("WAITS FOR ITSELF", slot, now)

    def replayed(self, run: Run, request: str, now: int) -> None:
        assert run.authorised_version is not None
        key = run.occurrence.key
        self.counts["replays"] += 1
        self.replays.append(Replay(key, run.round, run.authorised_version, now))
        if request and self.requests.setdefault((key, request), run.round) != run.round:
            self.fail("REPLAYED TWICE", f"{key} {run}", now)

    def _reopened(self, before: Run, after: Run, function: Function, now: int) -> bool:
        """Judge the opening of a round; False where it is none."""
        if function.kind is not FunctionKind.API or after.round != before.round + 1:
            return False
        key = after.occurrence.key
        if before.attempt >= ATTEMPTS_MAX:
            self.fail("REPLAYED BEYOND THE LAST ATTEMPT", key, now)
        schedule = _schedule_of(after.occurrence)
        seen = function.seen.get(schedule, -1)
        for (of, number), version in self.versions.items():
            canceled = of == schedule and version.state is ScheduleState.CANCELED
            if canceled and self.committed_at[of, number] < seen:
                self.fail("REPLAYED THOUGH CANCELED", key, now)
        return True

    def _overlap(self, before: Run | None, after: Run, function: Function, now: int) -> None:
        """Two that may not overlap must not have begun and not ended; backoffs count."""
        occurrence = after.occurrence
        if self._may_overlap(occurrence) or after.is_asked:
            return
        under_way = self.under_way[_schedule_of(occurrence)]
        if after.state is RunState.RETRY_WAIT and not after.round_attempt:
            return  # A replayed one is in no slot before its first claim.
        if after.state.is_terminal:
            under_way.pop(occurrence.key, None)
            return
        asked = function.message
        mine = asked is not None and asked.occurrence.id == occurrence.id
        if before is not None and not mine:
            self.counts["asked to end"] += 1
        others = under_way.keys() - {occurrence.key}
        if others and mine and after.state is RunState.RUNNING:
            self.fail("OVERLAP", f"{after} {[under_way[key] for key in others]}", now)
        under_way[occurrence.key] = after

    def _overwrote(self, before: Run, after: Run, function: Function, now: int) -> None:
        key, claims = after.occurrence.key, after.state is RunState.RUNNING
        if _is_same_attempt(before, after):
            claims = False  # it was only asked to end, or its lease was raised
        if before.occurrence.id != after.occurrence.id:
            self.fail("TWO IDS", f"{key} {before} {after}", now)
        asked = function.message
        another = asked is not None and asked.occurrence.id != before.occurrence.id
        if another and not self._may_be_written_by_another(before, after):
            self.fail("WRITTEN FOR ANOTHER", f"{key} {before} {after}", now)
        if self._reopened(before, after, function, now):
            return
        if before.round != after.round:
            self.fail("ROUND CHANGED", f"{key} {before} {after}", now)
        if before.state.is_terminal:
            self.fail("TERMINAL ROW REOPENED", f"{key} {before.state} {after.state}", now)
        if claims and before.attempt >= after.attempt:
            self.fail("ATTEMPT NOT RAISED", key, now)
        if before.cancel_requested and not after.cancel_requested and not after.state.is_terminal:
            self.fail("REQUEST TO END FORGOTTEN", key, now)
        live = before.state is RunState.RUNNING and now < self.lease_ends.get(key, 0)
        if live and (claims or before.attempt != after.attempt):
            self.fail("TWO LIVE LEASES", f"{key} {before} {after}", now)

    def ended_another(self, before: Run, after: Run, now: int) -> None:
        """Judge a row that was ended by another than its attempt's own executor."""
        if _is_same_attempt(before, after):
            return
        if after.state is before.state and after.cancel_requested:
            return
        if before.state is RunState.RUNNING and now < self.lease_ends.get(before.occurrence.key, 0):
            self.fail(f"LIVE RUN {after.state} BY ANOTHER", before.occurrence.key, now)

    def _renewed(self, before: Run | None, after: Run, function: Function, now: int) -> None:
        """An attempt goes on: its lease may only rise, and not beyond its longest time."""
        assert before is not None
        assert before.lease_until is not None
        assert after.lease_until is not None
        occurrence = after.occurrence
        if after.lease_until < before.lease_until:
            self.fail("LEASE FELL", f"{before} {after}", now)
        self._taken(before, after, function, now)
        if after.lease_until <= before.lease_until:
            return
        self.counts["leases raised"] += 1
        key = (_schedule_of(occurrence), occurrence.version)
        longest = self.versions[key].policies.completion.max_duration
        if after.lease_until > after.attempts[-1].started_at + longest:
            self.fail("LEASE BEYOND MAX_DURATION", f"{before} {after}", now)
        self.lease_ends[occurrence.key] = milliseconds_of(after.lease_until) - function.skew

    def _moved_on(self, after: Run) -> None:
        if after.state is not RunState.RUNNING:
            self.taken.discard(after.occurrence.key)

    def _taken(self, before: Run, after: Run, function: Function, now: int) -> None:
        """From its target's 202 on a run is under way, whoever had stood behind it."""
        key = after.occurrence.key
        if now >= self.lease_ends[key] or not self.is_calm(now - CALM_FOR, now):
            self.taken.discard(key)
        elif function.kind is FunctionKind.EXECUTOR and after.attempts != before.attempts:
            self.counts["taken"] += 1
            self.taken.add(key)

    def called_back(
        self, what: str, ticket: Ticket, before: Run | None, answered: Run, now: int
    ) -> None:
        """Judge what a target heard; `before` is the row as it was when it called."""
        self.counts[f"{what} taken"] += 1
        key = ticket.occurrence.key
        if answered.occurrence.id != ticket.occurrence.id or answered.attempt != ticket.attempt:
            self.fail("STALE CALLBACK TAKEN", f"{ticket} {answered}", now)
        if what == "complete":
            self.completed[key] = ticket.attempt
        if what == "heartbeat" and answered.state is not RunState.RUNNING:
            self.fail("HEARTBEAT OF WHAT HAS ENDED", f"{ticket} {answered}", now)
        if what == "heartbeat" and before is not None and before.cancel_requested:
            self.counts["told to end"] += 1
            if not answered.cancel_requested:
                self.fail("REQUEST TO END NOT TOLD", f"{ticket} {answered}", now)

    def _claimed(self, before: Run | None, run: Run, function: Function, now: int) -> None:
        occurrence = run.occurrence
        schedule = _schedule_of(occurrence)
        assert run.lease_until is not None
        self.taken.discard(occurrence.key)
        self.claimed_at.setdefault(occurrence.key, now)
        self.lease_ends[occurrence.key] = milliseconds_of(run.lease_until) - function.skew
        known = self.available_at.setdefault(occurrence.id, run.available_at)
        if known != run.available_at:
            self.fail("TWO JITTERS", occurrence, now)
        window = self.versions[schedule, occurrence.version].policies.window
        jitter = run.available_at - occurrence.scheduled_for
        in_window = timedelta(0) <= jitter < window or jitter == timedelta(0)
        if occurrence.is_regular and not in_window:
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
        self._judge_deadline(run, schedule, checked_at)
        if run.attempt == 1 and not run.round and occurrence.is_regular:
            self._first_claim(run, schedule, checked_at, function, now)

    def _judge_deadline(self, run: Run, schedule: ScheduleKey, checked_at: int) -> None:
        """No attempt of a round starts later than its first one and the deadline of retries."""
        deadline = self.versions[schedule, run.occurrence.version].policies.retry.deadline
        if deadline is None or run.round_attempt == 1:
            return
        assert run.round_began_at is not None
        latest = milliseconds_of(run.round_began_at + deadline) + CLOCKS_APART_MAX
        if checked_at > latest:
            self.fail("STARTED BEHIND ITS DEADLINE", run.occurrence, checked_at)

    def _first_claim(
        self, run: Run, schedule: ScheduleKey, checked_at: int, function: Function, now: int
    ) -> None:
        occurrence = run.occurrence
        ended_at = self.committed_at.get((schedule, occurrence.version + 1))
        if ended_at is not None and ended_at < checked_at:
            until = self.versions[schedule, occurrence.version + 1].effective_from
            if occurrence.scheduled_for >= until:
                self.fail("RAN AFTER UNTIL", occurrence, checked_at)
        misfire = self.versions[schedule, occurrence.version].policies.misfire
        late = checked_at - milliseconds_of(run.available_at) - CLOCKS_APART_MAX
        held = milliseconds_of(run.held_until or run.available_at)
        held_late = min(late, checked_at - held - CLOCKS_APART_MAX)
        bounds = [(late, misfire.max_lateness)]
        if misfire.policy == "skip" and occurrence.id not in self.waited:
            bounds.append((held_late, misfire.after))
        for lateness, bound in bounds:
            if bound is not None and lateness > bound.total_seconds() * SECOND:
                self.fail("RAN TOO LATE", occurrence, checked_at)
        after = misfire.after.total_seconds() * SECOND
        if misfire.policy == "catch_up" and late > after and _is_backlog(run, held_late > after):
            self._caught_up(occurrence, function, now)
        self.started_at.append(checked_at)
        if run.held_until is not None:
            self.counts[run.held_by] += 1

    def _caught_up(self, occurrence: Occurrence, function: Function, now: int) -> None:
        """Late runs keep to their lane and to their tenant's rate; those that waited are free."""
        if occurrence.id in self.waited:
            return
        self.counts["caught up"] += 1
        if function.message is None or function.message.lane is not Lane.RECOVERY:
            self.fail("LATE RUN IN A FAST LANE", occurrence, now)
        self.caught_up = [at for at in self.caught_up if at > now - MINUTE] + [now]
        if len(self.caught_up) > CATCH_UPS_BUNCHED * CATCH_UPS_PER_MINUTE:
            self.fail("CAUGHT UP TOO FAST", f"{occurrence} {len(self.caught_up)}", now)

    def _may_be_written_by_another(self, before: Run, after: Run) -> bool:
        """Only what is in its schedule's slot may be, to ask it to end or to end it."""
        slot = self.in_slots.get(_schedule_of(before.occurrence))
        in_slot = slot is not None and slot.is_run_by(before.occurrence.id)
        return in_slot and (after.state is RunState.CANCELED or after.cancel_requested)

    def _canceled_by_overlap(self, before: Run | None, run: Run, now: int) -> None:
        schedule = _schedule_of(run.occurrence)
        policies = (
            version.policies for (key, _), version in self.versions.items() if key == schedule
        )
        if before is None or not any(each.overlap == "cancel_running" for each in policies):
            self.fail("LIVE RUN CANCELED", run.occurrence, now)

    def _skipped(self, before: Run | None, run: Run, function: Function, now: int) -> None:
        schedule = _schedule_of(run.occurrence)
        slot = self.in_slots[schedule]
        if slot.is_run_by(run.occurrence.id) or (before is not None and before.round_attempt):
            self.fail("HOLDER SKIPPED", run.occurrence, now)
        holder = slot.running
        if holder is None and slot.waiting is None:
            self.fail("SKIPPED BEHIND NOBODY", run.occurrence, now)
        checked_at = function.seen.get(schedule, -1)
        place = holder or slot.waiting
        if place is None or now < self.lease_ends.get(place.occurrence.key, 0) + LEASE_SLACK:
            return
        row = self.under_way[schedule].get(place.occurrence.key)
        judged = max(place.judged_version, (row and row.authorised_version) or 0)
        for voiding in self.voidings[schedule]:
            if voiding.at < checked_at and judged < voiding.min_valid_version:
                self.fail("SKIPPED BEHIND A VOIDED RUN", run.occurrence, now)

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

    def _missed(self, run: Run, function: Function, now: int) -> None:
        occurrence = run.occurrence
        misfire = self.versions[_schedule_of(occurrence), occurrence.version].policies.misfire
        late = now - milliseconds_of(run.available_at) + CLOCKS_APART_MAX
        if late <= misfire.after.total_seconds() * SECOND:
            self.fail("MISSED BEFORE IT WAS LATE", occurrence, now)
        held_until = function.message.held_until if function.message is not None else None
        if held_until is None or run.reason not in {"skip", "fire_once"}:
            return
        held_late = now - milliseconds_of(held_until) + CLOCKS_APART_MAX
        if held_late <= misfire.after.total_seconds() * SECOND:
            self.fail("HELD ONE MISSED", occurrence, now)


def _schedule_of(occurrence: Occurrence) -> ScheduleKey:
    return ScheduleKey(tenant=occurrence.tenant, schedule=occurrence.schedule)


def _is_same_attempt(before: Run, after: Run) -> bool:
    """Tell whether a row goes on under the attempt that it was under, and not by another claim."""
    return (
        before.state is after.state is RunState.RUNNING
        and before.attempt == after.attempt
        and before.attempts[-1].started_at == after.attempts[-1].started_at
    )


def _is_backlog(run: Run, is_late: bool) -> bool:  # noqa: FBT001 a fact beside the row
    """Tell whether a late first claim was late but for what gates held it."""
    return run.caught_up or is_late or not run.held_by
