"""Each rule of the gates taken away."""

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


class KeepsNoRoomOfWhatIsTaken(AdmitAttempt):
    def taken(self, admitted: Admitted, run: Run, *, until: datetime) -> Admitted:  # noqa: ARG002
        return admitted


class KeepsNoRoomForHeartbeats(KeptRooms):
    def keep(self, run: Run, target: Target, *, until: datetime) -> None:
        """Leave it as it is."""


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
