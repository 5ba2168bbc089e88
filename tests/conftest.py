"""No test may reach the network or a real account."""

import ipaddress
import os
import socket
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Before any AWS library reads the environment: these open nothing, wherever they would be sent.
os.environ.update(
    {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_SESSION_TOKEN": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
)
for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL"):
    os.environ.pop(name, None)

# How long an example takes says more about the machine than about the code.
# How fast examples come is the machine's affair, and says nothing about the code.
UNHURRIED = [HealthCheck.too_slow]
settings.register_profile("default", deadline=None, suppress_health_check=UNHURRIED)
settings.register_profile(
    "nightly", deadline=None, suppress_health_check=UNHURRIED, max_examples=2_000
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

_connect = socket.socket.connect


def _is_local(address: Any) -> bool:
    if not isinstance(address, tuple):
        return True  # a Unix socket
    host = str(address[0])
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _guarded_connect(self: socket.socket, address: Any) -> None:
    if not _is_local(address):
        raise AssertionError(f"a test tried to reach {address!r}")
    _connect(self, address)


@pytest.fixture(autouse=True, scope="session")
def _no_network() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", _guarded_connect)
        yield
