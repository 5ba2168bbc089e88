"""The root secret of all webhook keys, in Secrets Manager."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from puntual.application.ports import Clock
from puntual.aws import SecretsManagerClient, unavailable_if_transient
from puntual.domain.errors import Unavailable

SECRET_AGE_MAX = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsRootSecret:
    client: SecretsManagerClient
    clock: Clock
    secret_id: str
    _known: dict[str, tuple[datetime, bytes]] = field(default_factory=dict, repr=False)

    def read(self) -> bytes:
        """Give it as it was at most five minutes ago, or where nobody answers, as it last was.

        Raises `Unavailable` where it was never read.
        """
        now, known = self.clock.now(), self._known.get(self.secret_id)
        if known is not None and now - known[0] < SECRET_AGE_MAX:
            return known[1]
        try:
            with unavailable_if_transient("read the root secret"):
                found = self.client.get_secret_value(SecretId=self.secret_id)
        except Unavailable:
            if known is None:
                raise
            return known[1]
        secret = found["SecretString"].encode()
        self._known[self.secret_id] = (now, secret)
        return secret
