"""Rules of replays taken away."""

from dataclasses import replace

from puntual.application.bury_message import BuryMessage
from puntual.application.settle_message import Settled
from puntual.domain.message import Message
from puntual.domain.occurrence import RunKey
from puntual.domain.page import Page
from puntual.domain.replay import why_not_replayable
from puntual.domain.run import Run
from puntual.domain.schedule import Schedule, ScheduleState
from tests.fakes.in_memory_ledger import Row
from tests.fakes.in_memory_outbox import InMemoryOutbox
from tests.simulation.scenarios.replays import (
    a_cancel_that_is_older_than_its_replay,
    a_dead_letter_of_an_earlier_round,
    a_page_that_is_deleted_late,
    a_replay_after_a_cancel,
    a_replay_beyond_the_last_attempt,
    a_replay_in_its_backoff,
    a_replay_of_one_that_died,
    a_replay_that_is_asked_for_twice,
)
from tests.simulation.variant import Variant
from tests.simulation.watched import WatchedLedger
from tests.simulation.world import Parts


class ReopensWithoutThePage(WatchedLedger):
    """Two writes instead of one transaction, and it dies between them."""

    def reopen(self, run: Run, *, seen: Run, page: Page) -> bool:
        outbox, self.outbox = self.outbox, InMemoryOutbox()
        try:
            return super().reopen(run, seen=seen, page=page)
        finally:
            self.outbox = outbox


class PutsThePageAlone(WatchedLedger):
    """The row stays as it was, and the message alone is to open the round."""

    def reopen(self, run: Run, *, seen: Run, page: Page) -> bool:
        assert self.read(seen.occurrence.key) is not None
        self.outbox.put_over(page)
        self.record_of_writes.replayed(run, "", self.scheduler.now)
        return True


class ForgetsWhoAuthorised(WatchedLedger):
    """Only the message knows it."""

    def _put(self, key: RunKey, row: Row) -> None:
        if isinstance(row, Run) and row.round:
            row = replace(row, authorised_version=None)
        super()._put(key, row)


class ForgetsTheRequest(WatchedLedger):
    def _put(self, key: RunKey, row: Row) -> None:
        super()._put(key, replace(row, requests=()) if isinstance(row, Run) else row)


class PagesWithoutTheRound(InMemoryOutbox):
    def put_over(self, page: Page) -> None:
        super().put_over(_of_no_round(page))

    def delete(self, page: Page) -> None:
        super().delete(_of_no_round(page))


def _of_no_round(page: Page) -> Page:
    """Give a page that is sent as it was meant, since its round is on its messages' rows."""
    return replace(page, planned=tuple(replace(each, round=0) for each in page.planned))


class BuriesEarlierRounds(BuryMessage):
    def __call__(self, message: Message) -> Settled:
        return super().__call__(replace(message, round=20))


class SwapsWhatHasTheSameAttempt(WatchedLedger):
    """The round is no part of the condition."""

    def swap(self, run: Run, *, seen: Run | None) -> bool:
        row = self.read(run.occurrence.key)
        same = (
            seen is not None
            and row is not None
            and (row.state, row.attempt) == (seen.state, seen.attempt)
        )
        return super().swap(run, seen=row if same else seen)


def replayable_though_canceled(run: Run, head: Schedule, *, force: bool) -> str | None:
    active = replace(head, state=ScheduleState.ACTIVE)
    return why_not_replayable(run, active, force=force)


def replayable_without_end(run: Run, head: Schedule, *, force: bool) -> str | None:
    return why_not_replayable(replace(run, attempt=0), head, force=force)


REPLAYS: dict[str, Variant] = {
    "reopens without the page": Variant(
        rule="E2",
        parts=Parts(ledger=ReopensWithoutThePage),
        shows=frozenset({"STUCK RETRY_WAIT"}),
        scenario=a_replay_of_one_that_died,
    ),
    "puts the page alone": Variant(
        rule="E2",
        parts=Parts(ledger=PutsThePageAlone),
        shows=frozenset({"REPLAY NEVER RAN"}),
        scenario=a_replay_of_one_that_died,
    ),
    "forgets who authorised": Variant(
        rule="E2",
        parts=Parts(ledger=ForgetsWhoAuthorised),
        shows=frozenset({"REPLAY CANCELED WRONGLY"}),
        scenario=a_replay_in_its_backoff,
    ),
    "forgets the request": Variant(
        rule="E2",
        parts=Parts(ledger=ForgetsTheRequest),
        shows=frozenset({"REPLAYED TWICE"}),
        scenario=a_replay_that_is_asked_for_twice,
    ),
    "pages without the round": Variant(
        rule="E2",
        parts=Parts(outbox=PagesWithoutTheRound),
        shows=frozenset({"STUCK RETRY_WAIT"}),
        scenario=a_page_that_is_deleted_late,
    ),
    "buries earlier rounds": Variant(
        rule="E2",
        parts=Parts(bury=BuriesEarlierRounds),
        shows=frozenset({"REPLAY DEAD WITHOUT A FAULT"}),
        scenario=a_dead_letter_of_an_earlier_round,
    ),
    "swaps what has the same attempt": Variant(
        rule="E2",
        parts=Parts(ledger=SwapsWhatHasTheSameAttempt),
        shows=frozenset({"ROUND CHANGED"}),
        scenario=a_cancel_that_is_older_than_its_replay,
    ),
    "replays though canceled": Variant(
        rule="E2",
        parts=Parts(why_not_replayable=replayable_though_canceled),
        shows=frozenset({"REPLAYED THOUGH CANCELED"}),
        scenario=a_replay_after_a_cancel,
    ),
    "replays without end": Variant(
        rule="E2",
        parts=Parts(why_not_replayable=replayable_without_end),
        shows=frozenset({"REPLAYED BEYOND THE LAST ATTEMPT"}),
        scenario=a_replay_beyond_the_last_attempt,
    ),
}
