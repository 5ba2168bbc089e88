"""Idempotency-Key: what tells whether two requests of a caller are one."""

import hashlib
from dataclasses import dataclass

from puntual.domain.errors import Rejected
from puntual.domain.tenant import ScheduleId, TenantId

MARK_LENGTH = 16


class IdempotencyKeyReused(Rejected):
    """The key came before with another body."""

    def __init__(self, key: str) -> None:
        super().__init__(
            "Idempotency-Key", key, "a key that came with this very body, or a new one"
        )
        self.key = key


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What makes a request repeatable: the caller's key and the canonical text of the body."""

    key: str
    body: str

    @property
    def fingerprint(self) -> str:
        """Tells requests apart; its first half tells keys apart."""
        return f"{self.key_digest}.{_digest(self.body)}"

    @property
    def key_digest(self) -> str:
        """What a key is known by within one schedule."""
        return _digest(self.key)

    @property
    def mark(self) -> str:
        """Tells the requests of one occurrence apart, in few characters."""
        return self.fingerprint[:MARK_LENGTH]

    def schedule_id(self, tenant: TenantId) -> ScheduleId:
        """Give the id of a schedule whose body names none: the same for the same key."""
        return ScheduleId(_digest(f"{tenant}\x1f{self.key}"))

    def shares_key_with(self, fingerprint: str) -> bool:
        return fingerprint.split(".", maxsplit=1)[0] == self.key_digest


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
