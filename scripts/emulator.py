"""Starts and stops MiniStack, the AWS emulator, as a process of this machine on loopback only."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
# The end-to-end tests keep theirs apart, so that they leave a running system alone.
STATE = ROOT / os.environ.get("PUNTUAL_STATE", ".local")
PID = STATE / "ministack.pid"
LOG = STATE / "ministack.log"
SCRATCH = STATE / "tmp"

HOST = "127.0.0.1"
PORT_DEFAULT = "4566"
PORT_MAX = 65535
REGION = "us-east-1"
ACCOUNT = "000000000000"

START_SECONDS_MAX = 30.0
STOP_SECONDS_MAX = 30.0
POLL_SECONDS = 0.1


class Refused(Exception):
    """Something a person must put right first; the message is for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    url: str
    # False when AWS_ENDPOINT_URL named an emulator that somebody else runs.
    ours: bool

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 80


def chosen_endpoint() -> Endpoint:
    """What AWS_ENDPOINT_URL names, or else our own emulator on PUNTUAL_PORT."""
    named = os.environ.get("AWS_ENDPOINT_URL")
    if named:
        return Endpoint(url=named.rstrip("/"), ours=False)
    port = os.environ.get("PUNTUAL_PORT", PORT_DEFAULT)
    if not (port.isdecimal() and 0 < int(port) <= PORT_MAX):
        raise Refused(f"PUNTUAL_PORT is {port!r}, not a port number.")
    return Endpoint(url=f"http://{HOST}:{int(port)}", ours=True)


def hermetic_environment() -> dict[str, str]:
    """Our environment without anything that could reach a real AWS account."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return kept | {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def start(endpoint: Endpoint) -> None:
    """Start the emulator and wait until it answers; nothing to do where it already does."""
    if running_pid() is not None:
        if healthy(endpoint):
            return
        raise Refused(
            f"The emulator runs already, but not on port {endpoint.port}: `make down` first."
        )
    if port_taken(endpoint.port):
        raise Refused(
            f"Port {endpoint.port} is in use: free it, or set PUNTUAL_PORT to another one."
        )
    SCRATCH.mkdir(parents=True, exist_ok=True)
    with LOG.open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - our own argv
            [str(ROOT / ".venv" / "bin" / "ministack")],
            cwd=STATE,
            env=hermetic_environment() | _emulator_settings(endpoint),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # A group of its own: Ctrl-C in the terminal must not reach it, and whatever it
            # leaves behind can be found by the group.
            start_new_session=True,
        )
    PID.write_text(f"{process.pid}\n")
    _wait_until_healthy(endpoint, process)


def stop() -> bool:
    """Stop what `start` started, with all its children; False when nothing ran."""
    pid = running_pid()
    if pid is not None:
        _end_group(pid)
    PID.unlink(missing_ok=True)
    shutil.rmtree(SCRATCH, ignore_errors=True)
    return pid is not None


def healthy(endpoint: Endpoint) -> bool:
    try:
        # LocalStack's path, which MiniStack answers too.
        with urllib.request.urlopen(  # noqa: S310 - http, and named by the user at most
            f"{endpoint.url}/_localstack/health", timeout=2
        ) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except (urllib.error.URLError, OSError):
        return False


def port_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0


def running_pid() -> int | None:
    """The emulator that `start` started, or None: a pid file may be stale, its number reused."""
    try:
        pid = int(PID.read_text())
    except (FileNotFoundError, ValueError):
        return None
    listed = subprocess.run(  # noqa: S603 - our own argv
        ["ps", "-p", str(pid), "-o", "command="],  # noqa: S607 - where ps lies differs by system
        capture_output=True,
        text=True,
        check=False,
    )
    return pid if str(ROOT / ".venv" / "bin" / "ministack") in listed.stdout else None


def _emulator_settings(endpoint: Endpoint) -> dict[str, str]:
    return {
        "BIND_HOST": HOST,
        "GATEWAY_PORT": str(endpoint.port),
        # What it calls itself in queue addresses.
        "MINISTACK_HOST": HOST,
        # On by default, and on all interfaces.
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        # Code of functions, packages of the layer: out of the way and gone with `down`.
        "TMPDIR": str(SCRATCH),
        "STATE_DIR": str(SCRATCH / "state"),
        "PYTHONUNBUFFERED": "1",
    }


def _wait_until_healthy(endpoint: Endpoint, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        if process.poll() is not None:
            PID.unlink(missing_ok=True)
            raise Refused(f"The emulator ended at once; see {LOG.relative_to(ROOT)}.")
        if healthy(endpoint):
            return
        time.sleep(POLL_SECONDS)
    stop()
    raise Refused(f"The emulator did not come up; see {LOG.relative_to(ROOT)}.")


def _end_group(group: int) -> None:
    os.kill(group, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS_MAX
    while _leader_alive(group) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    # Functions that were running when their emulator went are orphans of its group now.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _leader_alive(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        # A child of our own that has ended stays listed until it is waited for.
        os.waitpid(pid, os.WNOHANG)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
