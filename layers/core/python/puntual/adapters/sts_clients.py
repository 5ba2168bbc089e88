"""Clients for targets, by region and by the tenant's role, kept as long as their credentials."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from botocore.client import BaseClient

from puntual.application.ports import Clock
from puntual.aws import Credentials, STSClient
from puntual.domain.target import AwsTarget
from puntual.domain.tenant import TenantId, external_id_of

CLIENTS_KNOWN_MAX = 64
ROLES_KNOWN_MAX = 500
SESSION_SECONDS = 3600
"""The longest that AWS allows a role which is assumed by a role."""

RENEWED_BEFORE = timedelta(minutes=5)
SESSION_NAME_LENGTH_MAX = 64
FOR_EVER = datetime.max.replace(tzinfo=UTC)

Make = Callable[[str, str, Credentials | None], BaseClient]
"""Makes the client of a service in a region, with a role's credentials or our own."""

type Key = tuple[str, str, str | None, TenantId | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StsClients:
    """Gives clients; an executor's threads share them.

    Credentials belong to one tenant, whose external id is in the request: a role that another
    tenant registered too is asked for anew, and refuses.
    """

    sts: STSClient
    make: Make
    clock: Clock
    environment: str
    _clients: OrderedDict[Key, tuple[datetime, BaseClient]] = field(default_factory=OrderedDict)
    _credentials: OrderedDict[tuple[str, TenantId], Credentials] = field(
        default_factory=OrderedDict
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, service: str, target: AwsTarget, tenant: TenantId) -> BaseClient:
        """Raises what botocore does where the role cannot be assumed."""
        role = target.role_arn
        key = (service, target.region, role, tenant if role else None)
        until, client = self._clients.get(key, (None, None))
        if client is not None and until is not None and self._lasts(until):
            return client
        credentials = self._assumed(role, tenant) if role else None
        # Sessions of botocore make one client at a time; calls to AWS stay out of the lock.
        with self._lock:
            client = self.make(service, target.region, credentials)
            expires = credentials["Expiration"] if credentials else FOR_EVER
            _keep(self._clients, key, (expires, client), at_most=CLIENTS_KNOWN_MAX)
        return client

    def _assumed(self, role: str, tenant: TenantId) -> Credentials:
        known = self._credentials.get((role, tenant))
        if known is not None and self._lasts(known["Expiration"]):
            return known
        assumed = self.sts.assume_role(
            RoleArn=role,
            RoleSessionName=f"puntual-{tenant}"[:SESSION_NAME_LENGTH_MAX],
            ExternalId=external_id_of(self.environment, tenant),
            DurationSeconds=SESSION_SECONDS,
            Tags=[
                {"Key": "puntual-environment", "Value": self.environment},
                {"Key": "puntual-tenant", "Value": tenant},
            ],
        )["Credentials"]
        with self._lock:
            _keep(self._credentials, (role, tenant), assumed, at_most=ROLES_KNOWN_MAX)
        return assumed

    def _lasts(self, until: datetime) -> bool:
        return until == FOR_EVER or self.clock.now() < until - RENEWED_BEFORE


def _keep[K, V](kept: OrderedDict[K, V], key: K, value: V, *, at_most: int) -> None:
    kept[key] = value
    while len(kept) > at_most:
        kept.popitem(last=False)
