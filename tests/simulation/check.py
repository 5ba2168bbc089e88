"""The check at the end: what should have happened, from versions and time alone, and what did.

It shares no code with planning and judgement. Fires are counted here anew; for cron alone
`Rule.next_fire` is asked, whose own tests say what it is worth.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from puntual.domain.expression import Rule
from puntual.domain.policies import CATCH_UP_LIMIT_MAX, Misfire
from puntual.domain.run import Note, Run, RunState, Span
from puntual.domain.schedule import Schedule, ScheduleKey, ScheduleState, ScheduleVersion
from tests.fakes.in_memory_agenda import InMemoryAgenda
from tests.fakes.in_memory_ledger import InMemoryLedger
from tests.fakes.in_memory_outbox import InMemoryOutbox
from tests.fakes.in_memory_schedules import InMemorySchedules
from tests.fakes.in_memory_shards import InMemoryShards
from tests.simulation.asked import check_asked
from tests.simulation.faults import Faults
from tests.simulation.queues import Queues
from tests.simulation.record import CLOCKS_APART_MAX, Fire, Record
from tests.simulation.scheduler import MINUTE, SECOND, milliseconds_of

CREATED_AHEAD = 10 * SECOND
VISIBLE_WITHIN = 5 * SECOND
RATE_SLACK = 15 * SECOND
"""Clocks apart, delays of whole seconds, and the time from a queue to a claim."""

RECENT = 900 * SECOND
"""How long after a fault the promise of strict runs does not hold yet."""

EXPLAINS_MISSED = 1200 * SECOND
MISSED_LOOKED_AFTER = 120 * SECOND

_RATE = re.compile(r"rate\((\d+) (minute|hour)s?\)")
_AT = re.compile(r"at\((\S+)\)")

Place = tuple[ScheduleKey, datetime]


@dataclass(slots=True)
class Rows:
    """The ledger's rows by what they speak for, whatever their keys are."""

    runs: dict[Place, Run] = field(default_factory=dict)
    asked: list[Run] = field(default_factory=list)
    notes: set[tuple[ScheduleKey, datetime, int]] = field(default_factory=set)
    spans: dict[tuple[ScheduleKey, int, RunState], list[Span]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def spanned(self, key: ScheduleKey, version: int, state: RunState, fire: datetime) -> bool:
        return any(
            span.first <= fire <= span.last for span in self.spans.get((key, version, state), ())
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Everything that is left when the simulation is over."""

    schedules: InMemorySchedules
    ledger: InMemoryLedger
    agenda: InMemoryAgenda
    outbox: InMemoryOutbox
    shards: InMemoryShards
    queues: Queues
    faults: Faults
    record: Record
    lasts: int
    at: int

    def fail(self, kind: str, detail: object) -> None:
        self.record.fail(kind, detail, self.at)


def check(end: End) -> None:
    """Add what is wrong at the end to the record's failures."""
    rows = _rows_of(end.ledger)
    for (key, number), version in end.schedules.version_rows.items():
        if end.record.versions[key, number].state is ScheduleState.ACTIVE:
            _check_version(end, rows, version, end.schedules.head_rows[key])
    for run in (*rows.runs.values(), *rows.asked):
        _check_run(end, run)
    _check_effects(end, rows)
    _check_slots(end)
    _check_rate(end)
    _check_replays(end)
    check_asked(end.record, end.ledger, end.schedules, end.at)
    _check_leftovers(end)


def fires_of(version: ScheduleVersion) -> Iterator[datetime]:
    """Give the fires that a version owns: from its start to its end, which the next one owns."""
    rule = version.rule
    for fire in _fires(rule, version.effective_from):
        if version.until is not None and fire >= version.until:
            return
        if rule.end_at is not None and fire > rule.end_at:
            return
        assert rule.start_at is None or fire >= rule.start_at
        yield fire


def _fires(rule: Rule, start: datetime) -> Iterator[datetime]:
    if (rate := _RATE.fullmatch(rule.expression)) is not None:
        interval = timedelta(minutes=int(rate[1]) * (60 if rate[2] == "hour" else 1))
        number = max(1, -((rule.anchor - start) // interval))
        while rule.anchor + number * interval < start:
            number += 1
        while True:
            yield rule.anchor + number * interval
            number += 1
    elif (at := _AT.fullmatch(rule.expression)) is not None:
        fire = datetime.fromisoformat(at[1]).replace(tzinfo=UTC)
        if fire >= start:
            yield fire
    else:
        cron = rule.next_fire(start - timedelta(milliseconds=1))
        while cron is not None:
            yield cron
            cron = rule.next_fire(cron)


def _rows_of(ledger: InMemoryLedger) -> Rows:
    rows = Rows()
    for key, by_run in ledger.rows.items():
        for row in by_run.values():
            match row:
                case Run() if not row.occurrence.is_regular:
                    rows.asked.append(row)
                case Note() if not row.occurrence.is_regular:
                    pass
                case Run():
                    rows.runs[key, row.occurrence.scheduled_for] = row
                case Note():
                    rows.notes.add((key, row.occurrence.scheduled_for, row.occurrence.version))
                case Span():
                    rows.spans[key, row.version, row.state].append(row)
    return rows


def _check_version(end: End, rows: Rows, version: ScheduleVersion, head: Schedule) -> None:
    voided = version.version < head.min_valid_version
    last: datetime | None = None
    last_missed = False
    windows_end: datetime | None = None
    for fire in fires_of(version):
        end.record.counts["expected"] += 1
        how = _accounted(end, rows, version, fire, voided=voided)
        end.record.counts[f"accounted: {how}"] += 1
        if how == "missed" and not _was_held(rows, version, fire):
            _check_missed(end, version, fire)
        elif how == "missed":
            end.record.counts["held beyond max_lateness"] += 1
        elif how != "canceled":
            _check_on_time(end, rows, version, fire)
        if windows_end is not None and windows_end >= fire:
            end.fail("AVAILABLE AFTER THE NEXT FIRE", f"{_named(version)} {last} {windows_end}")
        windows_end = _available_at(rows, version, fire)
        last, last_missed = fire, how == "missed"
    misfire = version.policies.misfire
    if (
        last_missed
        and last is not None
        and misfire.policy is Misfire.FIRE_ONCE
        and misfire.max_lateness is None
        and not _ended_while_due(end, version)
    ):
        end.fail("FIRE_ONCE NEVER FIRED", f"{_named(version)} {last}")


def _accounted(
    end: End, rows: Rows, version: ScheduleVersion, fire: datetime, *, voided: bool
) -> str:
    """Say how a fire is accounted for, and whether it may be so."""
    key, number = version.key, version.version
    what = f"{_named(version)} {fire}"
    run = rows.runs.get((key, fire))
    if run is not None:
        another = run.occurrence.version != number
        if run.state is RunState.MISSED and another:
            end.fail("LIVE RUN MISSED BY ANOTHER", f"{what} {run}")
        if run.state is RunState.CANCELED and not run.attempt and (another or not voided):
            end.fail("LIVE RUN CANCELED", f"{what} {run}")
        if run.state is RunState.DEAD and not run.attempt and another:
            end.fail("LIVE RUN DEAD BY ANOTHER", f"{what} {run}")
        return "missed" if run.state is RunState.MISSED else "run"
    if (key, fire, number) in rows.notes:
        if not voided:
            end.fail("NOTE OF A LIVE VERSION", what)
        return "canceled"
    if rows.spanned(key, number, RunState.CANCELED, fire):
        if not voided:
            end.fail("CANCELED SPAN OF A LIVE VERSION", what)
        return "canceled"
    if rows.spanned(key, number, RunState.MISSED, fire):
        return "missed"
    end.fail("UNACCOUNTED", f"{what} {version.policies.misfire}")
    return "nothing"


def _check_missed(end: End, version: ScheduleVersion, fire: datetime) -> None:
    due = milliseconds_of(fire)
    window = milliseconds_of(fire + version.policies.window) - due
    misfire = version.policies.misfire
    if (
        misfire.policy is Misfire.CATCH_UP
        and misfire.limit == CATCH_UP_LIMIT_MAX
        and misfire.max_lateness is None
    ):
        end.fail("MISSED UNDER CATCH_UP", f"{_named(version)} {fire}")
    if (
        _ahead(end, version, due)
        and due < end.lasts
        and end.faults.is_calm(due - EXPLAINS_MISSED, due + window + MISSED_LOOKED_AFTER)
    ):
        end.fail("MISSED WITHOUT A FAULT", f"{_named(version)} {fire}")


def _was_held(rows: Rows, version: ScheduleVersion, fire: datetime) -> bool:
    run = rows.runs.get((version.key, fire))
    return run is not None and run.held_until is not None


def _check_on_time(end: End, rows: Rows, version: ScheduleVersion, fire: datetime) -> None:
    """Runs are visible in their lane 5 s after they may run where there was no fault."""
    lane = "flexible" if version.policies.window else "strict"
    available_at = _available_at(rows, version, fire) or fire + version.policies.window
    due = milliseconds_of(available_at)
    if not _ahead(end, version, milliseconds_of(fire)):
        return
    if not end.faults.is_calm(milliseconds_of(fire) - RECENT, due + VISIBLE_WITHIN):
        return
    end.record.counts[f"{lane} checked"] += 1
    visible = end.record.visible_at.get(Fire(version.key, version.version, fire))
    if visible is None or visible > due + VISIBLE_WITHIN:
        end.fail(f"{lane.upper()} LATE", f"{_named(version)} {fire} {visible}")


def _available_at(rows: Rows, version: ScheduleVersion, fire: datetime) -> datetime | None:
    """Give what the row of a fire says, if it is of this version: another has another jitter."""
    run = rows.runs.get((version.key, fire))
    if run is None or run.occurrence.version != version.version:
        return None
    return run.available_at


def _ahead(end: End, version: ScheduleVersion, due: int) -> bool:
    return end.record.committed_at[version.key, version.version] < due - CREATED_AHEAD


def _ended_while_due(end: End, version: ScheduleVersion) -> bool:
    """Tell whether the version had a fire between its end and the writing of that end.

    It was counted on as the latest one when it was still the version's own.
    """
    if version.until is None:
        return False
    written_at = end.record.committed_at[version.key, version.version + 1]
    following = next(_fires(version.rule, version.until), None)
    return following is not None and milliseconds_of(following) <= written_at + CLOCKS_APART_MAX


def _check_run(end: End, run: Run) -> None:
    if not run.state.is_terminal:
        end.fail(f"STUCK {run.state}", run)
    due = milliseconds_of(run.available_at)
    ended_at = end.record.ended_at.get(run.occurrence.key, end.at)
    if (
        run.state is RunState.DEAD
        and run.reason == "undeliverable"
        and end.faults.is_calm(due - EXPLAINS_MISSED, ended_at)
    ):
        end.fail("DEAD WITHOUT A FAULT", run)


def _check_effects(end: End, rows: Rows) -> None:
    for key, ids in end.record.effects.items():
        if len(ids) > 1:
            end.fail("TWO EFFECTS", f"{key} {sorted(ids)}")
    for run in (*rows.runs.values(), *rows.asked):
        seen = end.record.effects.get(run.occurrence.key, {})
        if run.state is RunState.SUCCEEDED and run.occurrence.id not in seen:
            end.fail("SUCCEEDED UNSEEN", run)
        completed = end.record.completed.get(run.occurrence.key)
        if completed is None or _round_of(run, completed) < run.round:
            continue  # It was replayed since.
        if (run.state, run.attempt) != (RunState.SUCCEEDED, completed):
            end.fail("COMPLETE LOST", f"attempt {completed} {run}")


def _round_of(run: Run, attempt: int) -> int:
    """Give the round of an attempt; one that the row has lost counts as of its own."""
    rounds = (each.round for each in run.attempts if each.number == attempt)
    return next(rounds, run.round)


def _check_rate(end: End) -> None:
    """No minute holds more first claims than the rate allows, but for what queues and clocks do.

    Looked at only where nothing went wrong: what has its token waits for no outage to be over.
    """
    per_minute, started_at = end.record.fires_per_minute_max, sorted(end.record.started_at)
    if per_minute is None or end.faults.windows:
        return
    most = per_minute * (MINUTE + RATE_SLACK) // MINUTE + 1
    for first, last in zip(started_at, started_at[most:], strict=False):
        if last - first < MINUTE:
            end.fail("TOO MANY FIRES", f"{most + 1} in {last - first} ms from {first}")
            return


def _check_slots(end: End) -> None:
    """Nobody is left in a slot, and whoever has waited ran or ended with a reason."""
    for slot in end.ledger.slots.values():
        if slot.running is not None:
            end.fail("SLOT HELD FOR EVER", slot)
        if slot.waiting is not None:
            end.fail("WAITS FOR EVER", slot)
    for place in end.record.waited.values():
        occurrence = place.occurrence
        key = ScheduleKey(tenant=occurrence.tenant, schedule=occurrence.schedule)
        version = end.schedules.version_rows[key, occurrence.version]
        superseded = (
            occurrence.is_regular
            and version.until is not None
            and occurrence.scheduled_for >= version.until
        )
        voided = place.judged_version < end.schedules.head_rows[key].min_valid_version
        run = end.ledger.read(occurrence.key)
        if run is None or run.occurrence.id != occurrence.id:
            if not (voided or superseded):
                end.fail("WAITED FOR NOTHING", occurrence)
        elif run.attempt:
            end.record.counts["waited and ran"] += 1
        elif run.state is RunState.SKIPPED_OVERLAP and not run.round:
            end.fail("WAITING ONE SKIPPED", run)
        elif run.state is RunState.MISSED and version.policies.misfire.max_lateness is None:
            end.fail("WAITING ONE MISSED", run)


def _check_replays(end: End) -> None:
    """Each round that was opened has run, or its row says why it did not."""
    for key, number, authorised_version, at in end.record.replays:
        run = end.ledger.read(key)
        schedule = ScheduleKey(tenant=key.tenant, schedule=key.schedule)
        voided = authorised_version < end.schedules.head_rows[schedule].min_valid_version
        if run is None or run.round < number:
            end.fail("REPLAY NEVER RAN", f"{key} round {number} {run}")
        elif run.round > number:
            end.record.counts["replayed again"] += 1
        elif run.state is RunState.CANCELED and run.reason.startswith("voided"):
            if not voided:
                end.fail("REPLAY CANCELED WRONGLY", run)
        elif run.round_attempt:
            end.record.counts["replayed and ran"] += 1
        elif run.state is RunState.DEAD and run.reason == "undeliverable":
            if end.faults.is_calm(at - EXPLAINS_MISSED, end.record.ended_at[key]):
                end.fail("REPLAY DEAD WITHOUT A FAULT", run)
        elif run.state is not RunState.SKIPPED_OVERLAP:
            end.fail("REPLAY NEVER RAN", run)


def _check_leftovers(end: End) -> None:
    if end.queues.live or end.queues.dead:
        left = [envelope.message for envelope in (*end.queues.live.values(),)][:3]
        end.fail("MESSAGES LEFT", f"{len(end.queues.live)} {len(end.queues.dead)} {left}")
    if end.outbox.pages:
        end.fail("PAGES LEFT", list(end.outbox.pages))
    for shard, cursor in end.agenda.cursors():
        row = end.shards.rows.get(shard)
        if row is None or cursor.bucket >= row.drained_through:
            end.fail("CURSOR LEFT", f"{shard} {cursor}")
        else:
            end.record.counts["cursors in closed buckets"] += 1
    if end.agenda.quarantined:
        end.fail("QUARANTINED", list(end.agenda.quarantined.values()))
    for key, head in end.schedules.head_rows.items():
        end.record.counts[f"schedules {head.state}"] += 1
        if head.state is ScheduleState.ACTIVE:
            end.fail("NEVER COMPLETED", f"{key} v{head.version} {head.rule}")


def _named(version: ScheduleVersion) -> str:
    return f"{version.schedule} v{version.version}"
