"""The tenants' receivers: they succeed, fail, hang, or do the work and lose the answer."""

from collections import defaultdict
from datetime import timedelta

from puntual.domain.occurrence import Occurrence
from puntual.domain.target import (
    Accepted,
    Delivered,
    Delivery,
    DeliveryResult,
    Failed,
    limited_name_of,
)
from tests.simulation.callers import Callers
from tests.simulation.faults import Fault, Faults
from tests.simulation.record import Record
from tests.simulation.scheduler import SECOND, Scheduler, milliseconds_of
from tests.simulation.trace import Trace


class Receivers:
    """The target port. Each arrival is recorded under its idempotency key, the occurrence's id."""

    def __init__(
        self,
        scheduler: Scheduler,
        faults: Faults,
        record: Record,
        trace: Trace,
        callers: Callers,
    ) -> None:
        self._scheduler, self._random, self._faults = scheduler, scheduler.random, faults
        self._record, self._trace, self._callers = record, trace, callers
        self.ill_at_best = 0.03
        self.accepts = 0.85
        """How often one that may call back does so instead of answering at once."""

        self.answers: list[DeliveryResult] = []
        """Set by a scenario: the results of the first calls."""

        self.takes = 50
        self.hangs: frozenset[str] = frozenset()
        """Set by a scenario: how long a receiver works, and origins that never answer."""

        self.hung_for: dict[str, int] = defaultdict(int)
        """For how long callers waited for what never came, by origin."""

    def deliver(self, delivery: Delivery) -> DeliveryResult:
        result: DeliveryResult
        self._record.called(delivery, self._scheduler.running, self._scheduler.now)
        try:
            if limited_name_of(delivery.target) in self.hangs:
                result = self._never_answered(delivery)
            else:
                result = self._scripted(delivery) if self.answers else self._tried(delivery)
        finally:
            self._record.hung_up(delivery)
        self._trace.add(
            self._scheduler.now,
            self._scheduler.running.name,
            "receiver",
            (delivery.occurrence, delivery.attempt),
            result,
        )
        return result

    def _scripted(self, delivery: Delivery) -> DeliveryResult:
        result = self.answers.pop(0)
        if isinstance(result, Accepted):
            self._arrived(delivery.occurrence)
        return result

    def _tried(self, delivery: Delivery) -> DeliveryResult:
        function = self._scheduler.running
        budget = max(0, milliseconds_of(delivery.deadline) - self._scheduler.now - function.skew)
        paused = min(budget, self._faults.pause(function))
        self._scheduler.wait(paused)
        budget -= paused  # No call outlasts its deadline.
        if Fault.RECEIVER_DEAD in self._faults.active:
            return Failed(detail="connection refused", retryable=True)
        ill = 0.5 if Fault.RECEIVER_ILL in self._faults.active else self.ill_at_best
        chance = self._random.random()
        if chance >= ill:
            return self._done(delivery, budget)
        if chance < 0.1 * ill:
            return Failed(detail="HTTP 400", retryable=False)
        if chance < 0.6 * ill:
            retry_after = timedelta(seconds=20) if self._random.random() < 0.2 else None
            return Failed(detail="HTTP 503", retryable=True, retry_after=retry_after)
        if chance < 0.8 * ill:
            self._arrived(delivery.occurrence)
        return self._hung(budget)

    def _never_answered(self, delivery: Delivery) -> Failed:
        budget = max(0, milliseconds_of(delivery.deadline) - self._scheduler.now)
        self.hung_for[limited_name_of(delivery.target)] += budget
        return self._hung(budget)

    def _done(self, delivery: Delivery, budget: int) -> DeliveryResult:
        self._arrived(delivery.occurrence)
        if delivery.awaits_callback and self._random.random() < self.accepts:
            return self._accepted(delivery, budget)
        slow = self._random.random() < 0.03
        took = self._random.randint(1 * SECOND, 8 * SECOND) if slow else self.takes
        if self._faults.happens(Fault.RECEIVER_SLOW, 0.8):
            took = self._random.randint(20 * SECOND, 240 * SECOND)
        if took >= budget:
            return self._hung(budget)
        self._scheduler.wait(took)
        return Delivered(detail="HTTP 200")

    def _accepted(self, delivery: Delivery, budget: int) -> DeliveryResult:
        """Begin to work, and answer a little later: callbacks may come before the answer does."""
        self._callers.take_on(delivery)
        took = self._random.choice((50, 50, 100, 500, 20 * SECOND))
        if took >= budget:
            return self._hung(budget)
        self._scheduler.wait(took)
        return Accepted(detail="HTTP 202")

    def _hung(self, budget: int) -> Failed:
        self._scheduler.wait(budget)
        return Failed(detail="timed out", retryable=True)

    def _arrived(self, occurrence: Occurrence) -> None:
        self._record.arrived(occurrence)
