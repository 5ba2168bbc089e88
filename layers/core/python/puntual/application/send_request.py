"""Take what was asked for on its way: what manual runs and backfills have in common."""

from dataclasses import dataclass, replace
from datetime import datetime

from puntual.application.announced import Announced
from puntual.application.ports import Clock, IdSource, Ledger, Outbox, Requests, Schedules
from puntual.domain.request import IdempotencyKeyReused, Request
from puntual.domain.run_request import RunRequest, asked_run
from puntual.domain.schedule import (
    NothingRuns,
    Schedule,
    ScheduleKey,
    ScheduleState,
    StaleVersion,
    UnknownSchedule,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRequest:
    """Remembers a request under its caller's key, then sends what it asks for.

    The order is the rule: the request, then for each page the page and its rows, then the answer.
    Whoever repeats a request finds the first one's and sends it again: nothing of it is new to the
    ledger. A row comes after its page, so that none is left that nobody will ever run.
    """

    schedules: Schedules
    requests: Requests
    outbox: Outbox
    ledger: Ledger
    announced: Announced
    clock: Clock
    ids: IdSource

    def head(self, key: ScheduleKey, *, seen: int | None) -> Schedule:
        """Read the head that a request is judged by.

        Raises `UnknownSchedule`, `StaleVersion`, and `NothingRuns` for a canceled schedule.
        """
        head = self.schedules.head(key)
        if head is None:
            raise UnknownSchedule(key)
        if seen is not None and seen != head.version:
            raise StaleVersion(key, seen=seen, current=head.version)
        if head.state is ScheduleState.CANCELED:
            raise NothingRuns(key)
        return head

    def id_of(self, request: Request | None) -> str:
        return self.ids.new_id() if request is None else request.key_digest

    def before(self, key: ScheduleKey, request: Request | None) -> RunRequest | None:
        """Give what was asked for under this key before, if anything.

        Raises `IdempotencyKeyReused` where that was something else.
        """
        if request is None:
            return None
        asked = self.requests.read(key, request.key_digest)
        if asked is not None:
            _check_same(asked, request)
        return asked

    def __call__(self, asked: RunRequest, request: Request | None) -> RunRequest:
        """Remember and send it, or what stands under its key; gives which of them it was.

        Raises `IdempotencyKeyReused`, and `Unavailable` where only a part may be on its way.
        """
        if request is not None:
            asked = self.requests.put(asked)
            _check_same(asked, request)
        now = self.clock.now()
        if asked.may_be_on_its_way(now):
            self._send(asked, now)
        return asked

    def _send(self, asked: RunRequest, now: datetime) -> None:
        shard = self.announced.shard(asked.key)
        for page in asked.pages(shard, written_at=now):
            self.outbox.put(page)
            for planned in page.planned:
                row = replace(asked_run(planned), write_id=self.ids.new_id())
                # A lost race: it was claimed, or this is the request's repetition.
                self.ledger.swap(row, seen=None)


def _check_same(asked: RunRequest, request: Request) -> None:
    if asked.fingerprint != request.fingerprint:
        raise IdempotencyKeyReused(request.key)
