"""Trigger a schedule: one run now, beside its rule."""

from dataclasses import dataclass

from puntual.application.send_request import SendRequest
from puntual.domain.occurrence import Kind
from puntual.domain.request import Request
from puntual.domain.run_request import OwnedFire, RunRequest
from puntual.domain.schedule import ScheduleKey


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerSchedule:
    send: SendRequest

    def __call__(
        self, key: ScheduleKey, *, seen: int | None = None, request: Request | None = None
    ) -> RunRequest:
        """Run the head's version once more; it is on its way when this returns.

        A paused schedule runs too, and a completed one, which stays so. Misfire does not apply,
        overlap does. Raises `UnknownSchedule`, `StaleVersion`, `NothingRuns`,
        `IdempotencyKeyReused`.
        """
        asked = self.send.before(key, request)
        if asked is None:
            asked = self._asked(key, seen, request)
        return self.send(asked, request)

    def _asked(self, key: ScheduleKey, seen: int | None, request: Request | None) -> RunRequest:
        head = self.send.head(key, seen=seen)
        now = self.send.clock.now()
        second = now.replace(microsecond=0)
        return RunRequest(
            tenant=key.tenant,
            schedule=key.schedule,
            id=self.send.id_of(request),
            fingerprint=request.fingerprint if request else "",
            kind=Kind.MANUAL,
            authorised_version=head.version,
            asked_at=now,
            fires=(OwnedFire(head.version, second),),
            available_from=second,
        )
