"""Rules of the gates taken away."""

from dataclasses import replace
from datetime import datetime, timedelta

from puntual.application.admit_attempt import AdmitAttempt, Admitted, Held
from puntual.application.circuit_breakers import CircuitBreakers
from puntual.application.kept_rooms import KeptRooms
from puntual.application.running_shares import RunningShares
from puntual.application.token_blocks import TokenBlocks
from puntual.domain.budget import BudgetKey
from puntual.domain.judgement import Standing, Verdict, judge
from puntual.domain.message import Message
from puntual.domain.run import Run
from puntual.domain.share import ShareKey
from puntual.domain.target import Target
from puntual.domain.tenant import TenantId
from tests.gates import GateParts
from tests.simulation.scenarios.limits import (
    a_dead_target_beside_one_that_lives,
    a_run_by_callback_beside_one_that_waits,
    an_executor_that_dies_with_its_share,
    more_at_once_than_may_run,
    more_fires_than_the_rate_allows,
)
from tests.simulation.variant import Variant
from tests.simulation.world import Parts


class KeepsNoRoomOfWhatIsTaken(AdmitAttempt):
    def taken(self, admitted: Admitted, run: Run, *, until: datetime) -> Admitted:  # noqa: ARG002
        return admitted


class KeepsNoRoomForHeartbeats(KeptRooms):
    def keep(self, run: Run, target: Target, *, until: datetime) -> None:
        """Leave it as it is."""


class NeverOpens(CircuitBreakers):
    def failed(self, tenant: TenantId, target: str, *, probe: bool) -> None:
        """Leave it closed."""


class SharesThatNeverRunOut(RunningShares):
    def enter(self, key: ShareKey, limit: int, *, lease_until: datetime) -> bool:
        return super().enter(key, limit, lease_until=lease_until + timedelta(days=1))


class CountsOnlyItself(RunningShares):
    def enter(self, key: ShareKey, limit: int, *, lease_until: datetime) -> bool:
        own = replace(key, name=f"{key.name} of {self.holder}")
        return super().enter(own, limit, lease_until=lease_until)


class TokensOfTheFutureUsedNow(TokenBlocks):
    def take(self, key: BudgetKey, per_minute: int) -> datetime:
        return min(super().take(key, per_minute), self.draw.clock.now())


class ForgetsWhatIsReserved(AdmitAttempt):
    def __call__(self, message: Message, claim: Run, target: Target) -> Held | Admitted:
        return super().__call__(replace(message, tokens=()), claim, target)


def judged_with_held_ones_late(
    message: Message, row: Run | None, standing: Standing, now: datetime
) -> Verdict:
    return judge(replace(message, held_until=None), row, standing, now)


GATES: dict[str, Variant] = {
    "no breaker": Variant(
        rule="ADR 0021",
        parts=Parts(gates=GateParts(breakers=NeverOpens)),
        shows=frozenset({"DEAD TARGET EATS CAPACITY"}),
        scenario=a_dead_target_beside_one_that_lives,
    ),
    "shares that never run out": Variant(
        rule="ADR 0021",
        parts=Parts(gates=GateParts(running=SharesThatNeverRunOut)),
        shows=frozenset({"UNACCOUNTED", "STUCK RUNNING", "MESSAGES LEFT"}),
        scenario=an_executor_that_dies_with_its_share,
    ),
    "each executor counts only itself": Variant(
        rule="ADR 0021",
        parts=Parts(gates=GateParts(running=CountsOnlyItself)),
        shows=frozenset({"OVER RUNNING_MAX"}),
        scenario=more_at_once_than_may_run,
    ),
    "no room of what is taken": Variant(
        rule="ADR 0021",
        parts=Parts(gates=GateParts(admit=KeepsNoRoomOfWhatIsTaken)),
        shows=frozenset({"OVER RUNNING_MAX"}),
        scenario=a_run_by_callback_beside_one_that_waits,
    ),
    "no room for heartbeats": Variant(
        rule="ADR 0021",
        parts=Parts(gates=GateParts(rooms=KeepsNoRoomForHeartbeats)),
        shows=frozenset({"OVER RUNNING_MAX"}),
        scenario=a_run_by_callback_beside_one_that_waits,
    ),
    "tokens of the future used now": Variant(
        rule="ADR 0021",
        parts=Parts(gates=GateParts(tokens=TokensOfTheFutureUsedNow)),
        shows=frozenset({"TOO MANY FIRES"}),
        scenario=more_fires_than_the_rate_allows,
    ),
    "forgets what is reserved": Variant(
        rule="ADR 0021",
        parts=Parts(gates=GateParts(admit=ForgetsWhatIsReserved)),
        shows=frozenset({"UNACCOUNTED", "MESSAGES LEFT"}),
        scenario=more_fires_than_the_rate_allows,
    ),
    "held ones late": Variant(
        rule="ADR 0021",
        parts=Parts(judge_by_head=judged_with_held_ones_late),
        shows=frozenset({"HELD ONE MISSED"}),
        scenario=more_fires_than_the_rate_allows,
    ),
}
