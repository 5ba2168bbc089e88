"""Rules of sending and of repeated writes taken away."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from puntual.application.relay_page import RelayPage, RelayReport
from puntual.application.settle_message import Settled, SettleMessage
from puntual.domain.agenda import Cursor
from puntual.domain.judgement import Forget, Park, Verdict, before_head
from puntual.domain.message import Message
from puntual.domain.page import Page
from puntual.domain.run import Run
from puntual.domain.schedule import ScheduleVersion
from tests.fakes.in_memory_agenda import InMemoryAgenda
from tests.simulation.scenarios.planning import a_relay_that_dies_at_each_send
from tests.simulation.variant import Variant
from tests.simulation.watched import WatchedLedger, WatchedSchedules
from tests.simulation.world import Parts

# P7: a claim is always backed by one live message.


def judged_deleting_duplicates(message: Message, row: Run | None, now: datetime) -> Verdict | None:
    verdict = before_head(message, row, now)
    live = isinstance(verdict, Park) and verdict.why == "live lease"
    return Forget() if live else verdict


class ForgetsWhatTheQueueRefused(SettleMessage):
    def park(self, message: Message, until: datetime, *, why: str) -> Settled:
        return replace(super().park(message, until, why=why), keep=False)


class DeletesThePageBeforeItSends(RelayPage):
    def __call__(self, page: Page) -> RelayReport:
        self.outbox.delete(page)
        return super().__call__(page)


class DeletesThePageThoughRefused(RelayPage):
    def __call__(self, page: Page) -> RelayReport:
        report = super().__call__(page)
        self.outbox.delete(page)
        return replace(report, refused=0)


# P9: know your own write; a batch is done when its rest is.


class LedgerForgetsItsWrites(WatchedLedger):
    def _is_own(self, row: Run | None, run: Run) -> bool:  # noqa: ARG002 it forgets them
        return False


class SchedulesForgetTheirWrites(WatchedSchedules):
    def _is_own(self, version: ScheduleVersion) -> bool:  # noqa: ARG002 it forgets it
        return False


class LeavesTheRestUnprocessed(InMemoryAgenda):
    def put(self, shard: int, cursors: Sequence[Cursor]) -> None:
        super().put(shard, cursors[: max(1, len(cursors) - 1)])


SENDING: dict[str, Variant] = {
    "deletes duplicates": Variant(
        rule="P7",
        parts=Parts(judge_by_row=judged_deleting_duplicates),
        shows=frozenset({"STUCK RUNNING", "STUCK RETRY_WAIT"}),
        seeds=(2, 5, 12),
    ),
    "forgets what was refused": Variant(
        rule="P7",
        parts=Parts(settle_message=ForgetsWhatTheQueueRefused),
        shows=frozenset({"STUCK RETRY_WAIT", "UNACCOUNTED"}),
        seeds=(6, 14, 18),
    ),
    "deletes the page first": Variant(
        rule="P7",
        parts=Parts(relay_page=DeletesThePageBeforeItSends),
        shows=frozenset({"UNACCOUNTED"}),
        scenario=a_relay_that_dies_at_each_send,
    ),
    "deletes the page though refused": Variant(
        rule="P7",
        parts=Parts(relay_page=DeletesThePageThoughRefused),
        shows=frozenset({"UNACCOUNTED"}),
        seeds=(8, 14, 26),
    ),
    "ledger forgets its writes": Variant(
        rule="P9",
        parts=Parts(ledger=LedgerForgetsItsWrites),
        shows=frozenset({"OWN WRITE TAKEN FOR LOST"}),
        seeds=(0, 1, 4),
    ),
    "schedules forget their writes": Variant(
        rule="P9",
        parts=Parts(schedules=SchedulesForgetTheirWrites),
        shows=frozenset({"OWN WRITE TAKEN FOR LOST"}),
        seeds=(0, 4, 5),
    ),
    "leaves the rest unprocessed": Variant(
        rule="P9",
        parts=Parts(agenda=LeavesTheRestUnprocessed),
        shows=frozenset({"UNACCOUNTED"}),
        seeds=(1, 4, 6),
    ),
}
