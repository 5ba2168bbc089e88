"""What becomes of a run whose attempt has failed, whoever says so: the call, or a callback."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from puntual.application.known_tenants import KnownTenants
from puntual.application.ports import Chance, Clock
from puntual.application.token_blocks import TokenBlocks
from puntual.domain.budget import RETRIES, BudgetKey
from puntual.domain.errors import Unavailable
from puntual.domain.instant import rounded_to_millisecond
from puntual.domain.judgement import failed, put_off
from puntual.domain.policies import RetryPolicy
from puntual.domain.run import Run
from puntual.domain.target import Failed
from puntual.domain.tenant import TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class FailAttempt:
    """Each retry has a place in its tenant's rate, so that those of many runs are spread."""

    known: KnownTenants
    tokens: TokenBlocks
    clock: Clock
    chance: Chance

    def __call__(self, run: Run, failure: Failed, retry: RetryPolicy) -> Run:
        """Give the row that is to be recorded: RETRY_WAIT or DEAD."""
        now = self.clock.now()
        outcome = failed(run, failure, retry=retry, chance=self.chance.fraction(), now=now)
        if outcome.not_before is None:
            return outcome
        slack = None
        if retry.deadline is not None and run.round_began_at is not None:
            slack = run.round_began_at + retry.deadline - outcome.not_before
        return put_off(outcome, self._wait(run.occurrence.tenant, now, slack), now=now)

    def _wait(self, owner: TenantId, now: datetime, slack: timedelta | None) -> timedelta | None:
        """Give the wait for a place, None where it is longer than `slack`: then none is taken.

        Where the budget is out of reach, a retry waits for its backoff alone.
        """
        try:
            tenant = self.known.of(owner)
            if tenant is None:
                return timedelta(0)
            key = BudgetKey(tenant=owner, name=RETRIES)
            by = None if slack is None else now + slack
            free_at = self.tokens.take_by(key, tenant.quotas.retries_per_minute, by=by)
        except Unavailable:
            return timedelta(0)
        if free_at is None:
            return None
        # The clock after the draw, which took its time.
        return max(timedelta(0), rounded_to_millisecond(free_at) - self.clock.now())
