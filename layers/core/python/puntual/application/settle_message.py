"""What executor and undeliverable share: gather the facts, judge, write what the verdict says."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from puntual.application.catch_up_tokens import CatchUpTokens
from puntual.application.derive_fires import AFTER_ALL_SUFFIXES
from puntual.application.ports import Clock, IdSource, Lanes, Ledger, Schedules, Sending
from puntual.domain.backlog import Before, backlog_reaches_back_to
from puntual.domain.errors import Unavailable
from puntual.domain.expression import Rule
from puntual.domain.gate import BY_CATCH_UPS
from puntual.domain.instant import MILLISECOND, text_of
from puntual.domain.judgement import (
    LOST_RACES_MAX,
    STALLED_AFTER_PARKS,
    AskAgain,
    Claim,
    Drop,
    End,
    EndHolder,
    Forget,
    Park,
    Recover,
    Standing,
    Verdict,
    Wait,
    before_head,
    before_row,
    judge,
    needs_backlog,
    overlapped,
)
from puntual.domain.lane import Lane
from puntual.domain.message import PARK_MAX, PARK_MIN, Message, delay_until
from puntual.domain.occurrence import Occurrence
from puntual.domain.planning import is_last_fire
from puntual.domain.run import Note, Run, RunSwap, Span, Unchanged
from puntual.domain.schedule import Schedule, ScheduleKey, ScheduleVersion
from puntual.domain.slot import Occupancy, SlotSwap

VERSIONS_CACHED_MAX = 256

UNAVAILABLE_WAIT = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What became of one received message. `keep` leaves it to come again after its visibility."""

    why: str
    keep: bool = False
    run: Run | None = None
    stalled: bool = False


class VersionCache:
    """Recent versions. They are immutable but for `until`, which must not be taken from here."""

    def __init__(self) -> None:
        self._versions: OrderedDict[tuple[ScheduleKey, int], ScheduleVersion] = OrderedDict()

    def get(self, key: ScheduleKey, version: int) -> ScheduleVersion | None:
        return self._versions.get((key, version))

    def put(self, version: ScheduleVersion) -> None:
        self._versions[version.key, version.version] = version
        while len(self._versions) > VERSIONS_CACHED_MAX:
            self._versions.popitem(last=False)


OnClaim = Callable[[Message, Run | None, Claim, Standing], Settled | None]
Rewrite = Callable[[Run, datetime], Run]
JudgeByRow = Callable[[Message, Run | None, datetime], Verdict | None]
JudgeByHead = Callable[[Message, Run | None, Standing, datetime], Verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleMessage:
    """Settles one message by the rules of docs/design.md: P3, P5-P7, E1, E3-E7, E11.

    Parking is the one way to wait: record, send the message anew, and only then let the received
    one be deleted (P7). All waits are sends, so a claim is always backed by one live message.
    """

    schedules: Schedules
    ledger: Ledger
    lanes: Lanes
    clock: Clock
    ids: IdSource
    catch_up: CatchUpTokens
    versions: VersionCache = field(default_factory=VersionCache)
    judge_by_row: JudgeByRow = before_head
    judge_by_head: JudgeByHead = judge

    def settle(self, message: Message, on_claim: OnClaim, *, is_last: bool = False) -> Settled:
        """Judge a message until a verdict holds; `on_claim` gives None for a lost race.

        `is_last` tells that its lane will not give it out again: however late, it is not made to
        wait for another place in its backlog.

        Where a table or queue did not answer, it parks for a moment: a message that is merely kept
        comes back after the longest life of an executor. Raises `Unavailable` where not even
        parking is possible: the message must be kept then.
        """
        try:
            for _ in range(LOST_RACES_MAX):
                settled = self._once(message, on_claim, is_last=is_last)
                if settled is not None:
                    return settled
        except Unavailable:
            return self.park(message, self.clock.now() + UNAVAILABLE_WAIT, why="unavailable")
        lost_races = message.lost_races + 1
        again = replace(message, lost_races=lost_races)
        parked = self.park(again, self.clock.now() + PARK_MIN, why="lost races")
        return replace(parked, stalled=lost_races >= STALLED_AFTER_PARKS)

    def _once(
        self, message: Message, on_claim: OnClaim, *, is_last: bool = False
    ) -> Settled | None:
        verdict, row, standing = self._judged(message, is_last=is_last)
        match verdict:
            case Park():
                return self.park(message, verdict.until, why=verdict.why)
            case Forget() | Drop():
                return self._let_go(message, verdict, row, standing)
            case End():
                ended = self.swap(verdict.run, seen=row, slot=verdict.slot)
                return self.forget(message, ended, standing) if ended else None
            case EndHolder():
                holder = verdict.holder
                self.swap(holder.run, seen=holder.seen, slot=verdict.slot)
            case Wait() | Recover():
                return self._held_back(message, row, verdict, on_claim)
            case AskAgain():
                pass
            case Claim():
                assert standing is not None
                return on_claim(message, row, verdict, standing)
        return None

    def _judged(
        self, message: Message, *, is_last: bool
    ) -> tuple[Verdict, Run | None, Standing | None]:
        """Give the verdict, and the row and the head as far as they had to be read for it."""
        early = before_row(message, self.clock.now())
        if early is not None:
            return early, None, None
        row = self.ledger.read(message.occurrence.key)
        by_row = self.judge_by_row(message, row, self.clock.now())
        if by_row is not None:
            return by_row, row, None
        standing = self._standing(message.occurrence)
        if needs_backlog(message, row, standing, standing.asked_at):
            if is_last:
                message = _granted(message, self.clock.now())
            else:
                standing = replace(standing, before=self._before(message, standing))
        return self.judge_by_head(message, row, standing, self.clock.now()), row, standing

    def swap(self, run: Run, *, seen: Run | None, slot: SlotSwap | None) -> Run | None:
        """Write a row over the one that was judged, its slot with it; None for a lost race."""
        signed = self.signed(run)
        if slot is None:
            won = self.ledger.swap(signed, seen=seen)
        else:
            slot = _signed_slot(slot, signed.write_id)
            won = self.ledger.swap_with_slot(slot, RunSwap(run=signed, seen=seen))
        return signed if won else None

    def _held_back(
        self, message: Message, row: Run | None, verdict: Wait | Recover, on_claim: OnClaim
    ) -> Settled | None:
        if isinstance(verdict, Wait):
            return self._wait(message, row, verdict)
        return self._recover(message, verdict, on_claim)

    def _recover(self, message: Message, verdict: Recover, on_claim: OnClaim) -> Settled | None:
        """Go on in the recovery lane, at once where it is there already and its turn has come."""
        now = self.clock.now()
        backlog_since = message.backlog_since or now
        if verdict.until is not None:
            waits = replace(message, lane=Lane.RECOVERY, backlog_since=backlog_since)
            return self.park(waits, verdict.until, why=verdict.why)
        turn = self.catch_up.reserve(message.occurrence.tenant)
        granted = _granted(message, turn)
        if message.lane is Lane.RECOVERY and turn <= self.clock.now():
            return self._once(granted, on_claim)
        return self.park(granted, turn, why=verdict.why)

    def _before(self, message: Message, standing: Standing) -> Before:
        """Read the rows before a late one's: as many as its backlog may have, and one."""
        occurrence, version = message.occurrence, standing.version
        first = backlog_reaches_back_to(message, version, standing.asked_at)
        last = occurrence.scheduled_for - MILLISECOND
        limit = version.policies.misfire.limit + 1
        rows: Sequence[Run | Span | Note] = ()
        if first <= last:
            rows = self.ledger.between(
                version.key,
                first=text_of(first),
                last=text_of(last) + AFTER_ALL_SUFFIXES,
                limit=limit,
                newest_first=True,
            )
        per_minute = self.catch_up.per_minute(occurrence.tenant)
        return Before(rows=rows, cut=len(rows) == limit, per_minute=per_minute)

    def _wait(self, message: Message, row: Run | None, wait: Wait) -> Settled | None:
        """Take the waiting place and park; None for a lost race."""
        write_id = self.ids.new_id()
        runs: list[RunSwap | Unchanged] = [Unchanged(key=message.occurrence.key, seen=row)]
        if wait.asked is not None:
            asked = replace(wait.asked, run=replace(wait.asked.run, write_id=write_id))
            runs.append(asked)
        if not self.ledger.swap_with_slot(_signed_slot(wait.slot, write_id), *runs):
            return None
        return self.park(message, wait.until, why=wait.why)

    def _let_go(
        self,
        message: Message,
        verdict: Forget | Drop,
        row: Run | None,
        standing: Standing | None,
    ) -> Settled | None:
        """Give a waiting place back first, if there is one; None for a lost race."""
        slot = verdict.slot
        if slot is not None and not self.ledger.swap_with_slot(
            _signed_slot(slot, self.ids.new_id())
        ):
            return None
        if isinstance(verdict, Forget):
            return self.forget(message, row, standing)
        return self._drop(message, verdict, standing)

    def record(self, outcome: Run, *, has_slot: bool) -> Run | None:
        """Record an outcome, and give what stands now; None for a lost race (E1)."""
        ledger, outcome = self.ledger, self.signed(outcome)
        if not has_slot:
            return outcome if ledger.record(outcome) else None
        if outcome.state.is_terminal:
            return outcome if ledger.record_and_free(outcome) else None
        if ledger.record(outcome):
            return outcome
        row = ledger.read(outcome.occurrence.key)
        if row is None or not row.cancel_requested:
            return None
        # Another attempt's row does not take it either: only who asked this one came between.
        canceled = self.signed(overlapped(outcome))
        return canceled if ledger.record_and_free(canceled) else None

    def rewrite(self, seen: Run, change: Rewrite) -> Run | None:
        """Change the row of an attempt, whatever else changes it meanwhile; None where it ended.

        Heartbeats, requests to end and the record of an answer may meet: each keeps the others.
        Also None after three lost races.
        """
        row: Run | None = seen
        for _ in range(LOST_RACES_MAX):
            if row is None or not row.runs_attempt(seen.occurrence, seen.attempt):
                return None
            changed = change(row, self.clock.now())
            if changed == row:
                return row
            written = self.swap(changed, seen=row, slot=None)
            if written is not None:
                return written
            row = self.ledger.read(seen.occurrence.key)
        return None

    def signed(self, run: Run) -> Run:
        """Give a row the id of the write that is about to make it (P9)."""
        return replace(run, write_id=self.ids.new_id())

    def park(self, message: Message, until: datetime, *, why: str) -> Settled:
        """Send the message anew for later; if the queue refuses it, the received one is kept."""
        delay = max(PARK_MIN, delay_until(until, now=self.clock.now()))
        refused = self.lanes.send(message.lane, [Sending(message=message, delay=delay)])
        return Settled(why=why, keep=bool(refused))

    def forget(self, message: Message, run: Run | None, standing: Standing | None) -> Settled:
        """Let a message of a terminal row go, once the schedule it may have ended is completed."""
        self._complete_if_last(message.occurrence, standing.head if standing else None)
        return Settled(why=run.state if run else "gone", run=run)

    def _drop(self, message: Message, drop: Drop, standing: Standing | None) -> Settled:
        """Let a message go that leaves no row, after a second look (E6).

        A claim that was checked before the head changed may still be on its way.
        """
        if drop.note is not None:
            self.ledger.note(drop.note)
        if message.looks == 0:
            again = replace(message, looks=1)
            return self.park(again, self.clock.now() + PARK_MAX, why=f"{drop.why}, second look")
        self._complete_if_last(message.occurrence, standing.head if standing else None)
        return Settled(why=drop.why)

    def _complete_if_last(self, occurrence: Occurrence, head: Schedule | None) -> None:
        if not occurrence.is_regular:
            return
        key = ScheduleKey(tenant=occurrence.tenant, schedule=occurrence.schedule)
        head = head or self.schedules.head(key)
        if head is None:
            return
        if is_last_fire(head, occurrence.version, occurrence.scheduled_for, Rule.next_fire):
            self.schedules.complete(key, occurrence.version)

    def _standing(self, occurrence: Occurrence) -> Standing:
        """Read the head strongly, and the message's own version where the head has moved on."""
        key = ScheduleKey(tenant=occurrence.tenant, schedule=occurrence.schedule)
        asked_at = self.clock.now()
        head = self.schedules.head(key)
        if head is None:
            raise LookupError(f"schedule {key} of occurrence {occurrence.id} does not exist")
        current = head.version == occurrence.version
        version = self.version(occurrence, fresh=not current)
        occupancy = self._occupancy(occurrence, key) if version.policies.has_slot else None
        return Standing(
            asked_at=asked_at,
            head=head,
            version=version,
            until=None if current else version.until,
            occupancy=occupancy,
        )

    def version(self, occurrence: Occurrence, *, fresh: bool = False) -> ScheduleVersion:
        """Give an occurrence's version; its `until` is right only where it is read `fresh`."""
        key = ScheduleKey(tenant=occurrence.tenant, schedule=occurrence.schedule)
        version = None if fresh else self.versions.get(key, occurrence.version)
        if version is None:
            version = self.schedules.version(key, occurrence.version)
            if version is None:
                raise LookupError(f"version {occurrence.version} of {key} does not exist")
            self.versions.put(version)
        return version

    def _occupancy(self, occurrence: Occurrence, key: ScheduleKey) -> Occupancy:
        """Read the slot and, behind it, the row of the other occurrence that is in it."""
        slot = self.ledger.slot(key)
        if slot.running is None or slot.is_run_by(occurrence.id):
            return Occupancy(slot=slot, holder=None)
        return Occupancy(slot=slot, holder=self.ledger.read(slot.running.occurrence.key))


def _granted(message: Message, turn: datetime) -> Message:
    return replace(
        message, lane=Lane.RECOVERY, held_until=turn, held_by=BY_CATCH_UPS, caught_up=True
    )


def _signed_slot(slot: SlotSwap, write_id: str) -> SlotSwap:
    return replace(slot, slot=replace(slot.slot, write_id=write_id))
