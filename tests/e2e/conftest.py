"""The local system that `make up` deployed, and a receiver of this process's own."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scripts.local import OUTPUTS
from scripts.receiver import Receiver, receiving
from scripts.signed_api import SignedApi
from scripts.waiting import until

RETRY_QUICKLY = {"max_attempts": 3, "base_seconds": 1, "cap_seconds": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One tenant of the deployed system, and what a test does with it."""

    api: SignedApi
    receiver: Receiver
    tenant: str
    outputs: dict[str, Any]

    def create(self, path: str = "ok", **definition: Any) -> dict[str, Any]:
        """Create a schedule that calls `path` of the receiver, with an id of its own."""
        body = {
            "id": f"s-{uuid.uuid4().hex[:12]}",
            "target": {"type": "webhook", "url": f"{self.receiver.url}/{path}"},
            "payload": {"made": "by a test"},
            **definition,
        }
        return self.api.create(self.tenant, body)

    def path(self, schedule: str, rest: str = "") -> str:
        return SignedApi.path(self.tenant, schedule) + rest

    def occurrence(self, schedule: str, scheduled_for: str) -> dict[str, Any]:
        """Give one occurrence with its attempts; empty where the list does not have it."""
        for row in self.api.occurrences(self.tenant, schedule):
            if row.get("scheduled_for") == scheduled_for:
                return self.api.occurrence(self.tenant, schedule, row["ref"])
        return {}

    def wait_for_state(
        self, schedule: str, scheduled_for: str, state: str, *, seconds: float
    ) -> dict[str, Any]:
        """Wait until an occurrence is in a state; fails with what it was instead."""
        row = until(
            lambda: self.occurrence(schedule, scheduled_for),
            lambda row: row.get("state") == state,
            seconds=seconds,
        )
        assert row.get("state") == state, row
        return row


@pytest.fixture(scope="session")
def outputs() -> dict[str, Any]:
    if not OUTPUTS.exists():
        pytest.fail("the local system is not running: `make up` first")
    found: dict[str, Any] = json.loads(OUTPUTS.read_text())
    return found


@pytest.fixture(scope="session")
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest.fixture(scope="session")
def api(outputs: dict[str, Any]) -> SignedApi:
    return SignedApi(outputs["api_url"], region=outputs["region"])


@pytest.fixture
def stage(api: SignedApi, receiver: Receiver, outputs: dict[str, Any]) -> Stage:
    tenant = f"t-{uuid.uuid4().hex[:8]}"
    api.register(tenant)
    receiver.book.trust(tenant, api.webhook_keys(tenant))
    return Stage(api=api, receiver=receiver, tenant=tenant, outputs=outputs)


def at_in(seconds: float) -> tuple[str, str]:
    """Give the expression of a one-off so far ahead, and its instant as the API writes it."""
    instant = (datetime.now(UTC) + timedelta(seconds=seconds)).replace(microsecond=0)
    return f"at({instant:%Y-%m-%dT%H:%M:%S})", f"{instant:%Y-%m-%dT%H:%M:%S}.000Z"
