"""Turn cursors into pages: the planner's own code, also run inline by who inserts a cursor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import batched

from puntual.application.ports import Agenda, Clock, Ledger, Outbox, Schedules
from puntual.domain.agenda import Cursor
from puntual.domain.errors import Unavailable
from puntual.domain.expression import Rule
from puntual.domain.page import OCCURRENCES_PER_PAGE_MAX, Page, Planned
from puntual.domain.planning import CursorPlan, plan_cursor
from puntual.domain.run import Span
from puntual.domain.schedule import Schedule, ScheduleKey, ScheduleVersion

MEMO_SIZE_MAX = 100_000

HEADLESS = "the cursor's schedule does not exist or cannot be read"


class NextFires:
    """A memo of next fires for one pass: once per rule and instant, however many share it."""

    def __init__(self) -> None:
        self._known: dict[tuple[Rule, datetime], datetime | None] = {}

    def __call__(self, rule: Rule, after: datetime) -> datetime | None:
        key = (rule, after)
        if key not in self._known:
            if len(self._known) >= MEMO_SIZE_MAX:
                self._known.clear()
            self._known[key] = rule.next_fire(after)
        return self._known[key]


@dataclass(slots=True)
class Work:
    """What one group of cursors asks for, gathered before any of it is written."""

    planned: list[Planned] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    next_cursors: list[Cursor] = field(default_factory=list)
    recoveries: list[Cursor] = field(default_factory=list)
    accounted: list[Cursor] = field(default_factory=list)
    quarantined: list[tuple[Cursor, str]] = field(default_factory=list)
    carried: bool = False
    pages: list[Page] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCursors:
    """Plans up to a page of cursors of one shard and bucket; safe to repeat from any point.

    The order of the writes is the rule: spans, page, recovery cursors, next cursors, and only then
    the old cursors are deleted (P2, P8, E8): whatever cursor there is, all before it is answered
    for. Whoever crashes between them leaves the cursors for the next to plan.
    """

    schedules: Schedules
    agenda: Agenda
    outbox: Outbox
    ledger: Ledger
    clock: Clock

    def plan(
        self,
        shard: int,
        cursors: Sequence[Cursor],
        *,
        through: datetime | None = None,
        next_fires: NextFires | None = None,
        carried: bool = False,
    ) -> Work:
        """Plan each cursor's fire; with `through`, those that follow it up to that instant too.

        Whoever asks for a page that is `carried` takes it to its lanes.
        Raises `Unavailable` where a write did not take; running again repairs it.
        """
        assert 0 < len(cursors) <= OCCURRENCES_PER_PAGE_MAX
        memo = next_fires or NextFires()
        now = self.clock.now()
        heads = self.heads(cursors)
        work = Work(carried=carried)
        for cursor in cursors:
            head = heads.get(cursor.key)
            try:
                ended = self.ended(cursor, head)
                plans = _plans(cursor, head, ended, now=now, through=through, memo=memo)
            except Unavailable:
                raise
            except Exception as error:  # noqa: BLE001 one cursor must never stop its shard
                work.quarantined.append((cursor, f"{type(error).__name__}: {error}"))
                continue
            _gather(cursor, plans, work)
        self.write(shard, cursors, work, now)
        return work

    def heads(self, cursors: Sequence[Cursor]) -> Mapping[ScheduleKey, Schedule]:
        return self.schedules.heads(list({cursor.key: None for cursor in cursors}))

    def ended(self, cursor: Cursor, head: Schedule | None) -> ScheduleVersion | None:
        """Read the version of a cursor that the head has moved past; its end is never cached."""
        if head is None or head.version == cursor.version:
            return None
        return self.schedules.version(cursor.key, cursor.version)

    def write(self, shard: int, cursors: Sequence[Cursor], work: Work, now: datetime) -> None:
        """Write what was gathered for these cursors of one bucket, and then delete them."""
        if work.spans:
            self.ledger.put_spans(work.spans)
        for planned in batched(work.planned, OCCURRENCES_PER_PAGE_MAX, strict=False):
            page = Page(
                shard=shard,
                bucket=cursors[0].bucket,
                planned=planned,
                written_at=now,
                carried=work.carried,
            )
            self.outbox.put(page)
            work.pages.append(page)
        for cursor in work.recoveries:
            self.agenda.recover(shard, cursor)
        if work.next_cursors:
            self.agenda.put(shard, work.next_cursors)
        for cursor in work.accounted:
            self.schedules.complete(cursor.key, cursor.version)
        for cursor, reason in work.quarantined:
            self.agenda.quarantine(shard, cursor, reason=reason)
        self.agenda.delete(shard, cursors)


def _plans(
    cursor: Cursor,
    head: Schedule | None,
    ended: ScheduleVersion | None,
    *,
    now: datetime,
    through: datetime | None,
    memo: NextFires,
) -> list[CursorPlan]:
    """Give the plans of a cursor and, up to `through`, of those that follow it."""
    if head is None:
        raise LookupError(HEADLESS)
    plans = [plan_cursor(cursor, head=head, ended=ended, now=now, next_fire=memo)]
    while through is not None and len(plans) < OCCURRENCES_PER_PAGE_MAX:
        following = plans[-1].next_cursor
        if following is None or following.available_at > through:
            break
        plans.append(plan_cursor(following, head=head, ended=ended, now=now, next_fire=memo))
    return plans


def _gather(cursor: Cursor, plans: Sequence[CursorPlan], work: Work) -> None:
    for plan in plans:
        work.planned.extend(plan.planned)
        work.spans.extend(plan.spans)
        if plan.recovery is not None:
            work.recoveries.append(plan.recovery)
    last = plans[-1]
    if last.next_cursor is not None:
        work.next_cursors.append(last.next_cursor)
    if last.accounted is not None:
        work.accounted.append(cursor)
