"""Targets that have taken a run: they beat, complete, fail, say it twice, come late or never."""

from collections.abc import Callable

from puntual.application.take_callback import TakeCallback
from puntual.domain.callback import AttemptOver
from puntual.domain.callback_token import Ticket, token_of
from puntual.domain.errors import Unavailable
from puntual.domain.lane import Lane
from puntual.domain.message import Message
from puntual.domain.run import Run
from puntual.domain.target import Delivery
from tests.fakes.fixed_root_secret import FixedRootSecret
from tests.fakes.in_memory_ledger import InMemoryLedger
from tests.simulation.faults import Fault, Faults
from tests.simulation.record import Record
from tests.simulation.scheduler import SECOND, FunctionKind, Scheduler

SILENT = 0.1
AT_ONCE = 0.35
FAILS = 0.25
SAYS_IT_AGAIN = 0.3
OBEYS = 0.8
BEATS = (1, 2, 5)
APART = (30 * SECOND, 50 * SECOND, 60 * SECOND, 90 * SECOND)
TOO_FAR_APART = 250 * SECOND
AGAIN_AFTER = (1 * SECOND, 30 * SECOND, 400 * SECOND, 1500 * SECOND)


class Callers:
    """Each call is a function of its own; what is answered is held against the ledger."""

    def __init__(
        self,
        scheduler: Scheduler,
        faults: Faults,
        record: Record,
        *,
        ledger: InMemoryLedger,
        process: Callable[[], TakeCallback],
    ) -> None:
        self._scheduler, self._random, self._faults = scheduler, scheduler.random, faults
        self._record, self._ledger, self._process = record, ledger, process
        self._idle: list[TakeCallback] = []
        self._obeyed: set[Ticket] = set()

    def take_on(self, delivery: Delivery) -> None:
        """Begin to work on a delivery; what will be said of it is drawn now."""
        ticket = Ticket(occurrence=delivery.occurrence, attempt=delivery.attempt)
        chance = self._random.random()
        if chance < SILENT:
            self._record.counts["silent targets"] += 1
        elif chance < AT_ONCE:
            self._scheduler.after(self._random.randint(0, 200), lambda: self._end(ticket))
        else:
            self._beat(ticket, self._random.choice(BEATS))

    def say(self, what: str, ticket: Ticket, *, retry: bool = True) -> None:
        """Call back once; the caller hears nothing if the function dies."""
        token = token_of(ticket, root=FixedRootSecret().read())

        def taken_by(take: TakeCallback) -> Run:
            given = take.ticket(token)
            match what:
                case "heartbeat":
                    return take.heartbeat(given)
                case "complete":
                    return take.complete(given, result="done")
                case _:
                    return take.fail(given, reason="failed", retry=retry)

        def call() -> Run:
            """Call an idle process, or a new one; one that dies is not seen again."""
            take = self._idle.pop() if self._idle else self._process()
            try:
                run = taken_by(take)
            except (AttemptOver, Unavailable):
                self._idle.append(take)
                raise
            self._idle.append(take)
            return run

        self._scheduler.spawn(FunctionKind.CALLBACK, lambda: self._called(what, ticket, call))

    def _called(self, what: str, ticket: Ticket, call: Callable[[], Run]) -> None:
        occurrence = ticket.occurrence
        self._scheduler.running.message = Message(
            occurrence=occurrence, available_at=occurrence.scheduled_for, lane=Lane.STRICT
        )
        before = self._ledger.read(occurrence.key)
        try:
            run = call()
        except AttemptOver:
            self._record.counts[f"{what} refused"] += 1
            return
        self._record.called_back(what, ticket, before, run, self._scheduler.now)
        obeys = run.cancel_requested and self._random.random() < OBEYS
        if what == "heartbeat" and obeys and ticket not in self._obeyed:
            self._obeyed.add(ticket)
            self._record.counts["ended when asked"] += 1
            self.say("fail", ticket)

    def _beat(self, ticket: Ticket, left: int) -> None:
        slow = self._faults.happens(Fault.RECEIVER_SLOW, 0.5) or self._random.random() < 0.05
        wait = TOO_FAR_APART if slow else self._random.choice(APART)
        if left:
            self._scheduler.after(wait, lambda: self._beats(ticket, left))
        else:
            self._scheduler.after(wait, lambda: self._end(ticket))

    def _beats(self, ticket: Ticket, left: int) -> None:
        if ticket not in self._obeyed:
            self.say("heartbeat", ticket)
            self._beat(ticket, left - 1)

    def _end(self, ticket: Ticket) -> None:
        if ticket in self._obeyed:
            return
        self._say_the_end(ticket)
        if self._random.random() < SAYS_IT_AGAIN:
            wait = self._random.choice(AGAIN_AFTER)
            self._scheduler.after(wait, lambda: self._say_the_end(ticket))

    def _say_the_end(self, ticket: Ticket) -> None:
        fails = self._random.random() < FAILS
        retry = self._random.random() < 0.9
        self.say("fail" if fails else "complete", ticket, retry=retry)
