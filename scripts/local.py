"""The local system: an AWS emulator on this machine and the real CDK app deployed to it.

``python -m scripts.local up`` starts MiniStack (or uses what AWS_ENDPOINT_URL names, LocalStack
for one), deploys ENV=local and writes ``.local/outputs.json``; ``down`` stops what `up` started.
Doing either twice is fine. The port is PUNTUAL_PORT, 4566 by default.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import ClientError

ROOT = Path(__file__).resolve().parent.parent
STATE = ROOT / ".local"
PID = STATE / "ministack.pid"
LOG = STATE / "ministack.log"
OUTPUTS = STATE / "outputs.json"
ASSEMBLY = ROOT / "cdk.out" / "deploy-local"

HOST = "127.0.0.1"
REGION = "us-east-1"
ACCOUNT = "000000000000"
PREFIX = "puntual-local"

START_SECONDS_MAX = 30.0
STOP_SECONDS_MAX = 30.0
POLL_SECONDS = 0.1
USAGE_ERROR = 2

# The emulator drops these from CloudFormation templates, so they are applied after a deploy.
EXPIRY = {f"{PREFIX}-occurrences": "expires_at", f"{PREFIX}-idempotency": "expiration"}


class Refused(Exception):
    """Something a person must put right first; the message is for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    endpoint: str
    # False when AWS_ENDPOINT_URL named an emulator that somebody else runs.
    ours: bool

    @property
    def port(self) -> int:
        return urlsplit(self.endpoint).port or 80


def main() -> None:
    parser = argparse.ArgumentParser(description="The local system.")
    parser.add_argument("command", choices=["up", "down"])
    command = parser.parse_args().command
    try:
        if command == "up":
            up(target())
        else:
            down()
    except Refused as refused:
        print(refused, file=sys.stderr)
        raise SystemExit(USAGE_ERROR) from None


def up(where: Target) -> None:
    STATE.mkdir(exist_ok=True)
    if where.ours:
        start(where)
    elif not healthy(where):
        raise Refused(f"AWS_ENDPOINT_URL is {where.endpoint}, but nothing answers there.")
    environment = hermetic_environment(where)
    deploy(environment)
    restore_expiry(where)
    outputs = collect_outputs(where)
    OUTPUTS.write_text(json.dumps(outputs, indent=2) + "\n")
    print(
        f"\nPuntual runs here.\n"
        f"  endpoint   {outputs['endpoint']}\n"
        f"  API        {outputs['api_url']}\n"
        f"  outputs    {OUTPUTS.relative_to(ROOT)}\n"
        f"  log        {LOG.relative_to(ROOT) if where.ours else '(the emulator is not ours)'}\n"
        f"Try next: `make demo`, `make e2e`; `make down` stops it."
    )


def down() -> None:
    pid = running_pid()
    if pid is None:
        print("The local system is not running.")
    else:
        stop(pid)
        print("The local system is stopped.")
    PID.unlink(missing_ok=True)
    OUTPUTS.unlink(missing_ok=True)


def target() -> Target:
    named = os.environ.get("AWS_ENDPOINT_URL")
    if named:
        return Target(endpoint=named.rstrip("/"), ours=False)
    port = os.environ.get("PUNTUAL_PORT", "4566")
    if not port.isdecimal():
        raise Refused(f"PUNTUAL_PORT is {port!r}, not a port number.")
    return Target(endpoint=f"http://{HOST}:{port}", ours=True)


# -- the emulator ------------------------------------------------------------------------------


def start(where: Target) -> None:
    if running_pid() is not None:
        if healthy(where):
            return
        raise Refused(
            f"The emulator runs already, but not on port {where.port}: `make down` first."
        )
    if port_taken(where.port):
        raise Refused(f"Port {where.port} is in use: free it, or set PUNTUAL_PORT to another one.")
    environment = hermetic_environment(where)
    # Functions run as children of the emulator and inherit its environment; they reach it by
    # the address that it gives them itself.
    del environment["AWS_ENDPOINT_URL"]
    environment |= {"BIND_HOST": HOST, "GATEWAY_PORT": str(where.port), "PYTHONUNBUFFERED": "1"}
    with LOG.open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - our own argv
            [str(ROOT / ".venv" / "bin" / "ministack")],
            cwd=STATE,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # A group of its own: Ctrl-C in the terminal must not reach it, and whatever it
            # leaves behind can be found by the group.
            start_new_session=True,
        )
    PID.write_text(f"{process.pid}\n")
    wait_until_healthy(where, process)


def wait_until_healthy(where: Target, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        if process.poll() is not None:
            PID.unlink(missing_ok=True)
            raise Refused(f"The emulator ended at once; see {LOG.relative_to(ROOT)}.")
        if healthy(where):
            return
        time.sleep(POLL_SECONDS)
    stop(process.pid)
    PID.unlink(missing_ok=True)
    raise Refused(f"The emulator did not come up; see {LOG.relative_to(ROOT)}.")


def healthy(where: Target) -> bool:
    try:
        with urllib.request.urlopen(  # noqa: S310 - an http address of this machine
            f"{where.endpoint}/_localstack/health", timeout=2
        ) as answer:
            return bool(answer.status == http_ok())
    except (urllib.error.URLError, OSError):
        return False


def http_ok() -> int:
    return 200


def port_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0


def running_pid() -> int | None:
    """The emulator that `up` started, or None: a pid file may be stale, its number reused."""
    try:
        pid = int(PID.read_text())
    except (FileNotFoundError, ValueError):
        return None
    listed = subprocess.run(  # noqa: S603 - our own argv
        ["ps", "-p", str(pid), "-o", "command="],  # noqa: S607 - ps differs in place by system
        capture_output=True,
        text=True,
        check=False,
    )
    return pid if "ministack" in listed.stdout else None


def stop(pid: int) -> None:
    """End the emulator by signal, wait for it, and end what it left in its process group."""
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS_MAX
    while group_alive(pid) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    if group_alive(pid):
        os.killpg(pid, signal.SIGKILL)


def group_alive(group: int) -> bool:
    try:
        # Reaps the emulator where it is our own child; a zombie counts as alive otherwise.
        os.waitpid(group, os.WNOHANG)
    except ChildProcessError:
        pass
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


# -- the deployment ----------------------------------------------------------------------------


def hermetic_environment(where: Target) -> dict[str, str]:
    """This process's environment without anything that could reach a real AWS account."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return kept | {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": where.endpoint,
        # The CDK CLI puts its assets into a bucket by this address instead of a host name.
        "AWS_ENDPOINT_URL_S3": where.endpoint,
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CDK_DEFAULT_ACCOUNT": ACCOUNT,
        "CDK_DEFAULT_REGION": REGION,
        "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "1",
    }


def deploy(environment: Mapping[str, str]) -> None:
    cdk(environment, "bootstrap", f"aws://{ACCOUNT}/{REGION}")
    cdk(
        environment,
        "deploy",
        "--all",
        "--require-approval=never",
        "--concurrency=2",
        "--method=direct",
    )


def cdk(environment: Mapping[str, str], *arguments: str) -> None:
    command = [
        str(ROOT / "node_modules" / ".bin" / "cdk"),
        *arguments,
        "--context=environment=local",
        f"--output={ASSEMBLY}",
        "--no-notices",
        "--no-version-reporting",
        "--progress=events",
    ]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False)  # noqa: S603 - our own
    if done.returncode:
        raise Refused(f"`cdk {arguments[0]}` failed, see above.")


def restore_expiry(where: Target) -> None:
    dynamodb = client("dynamodb", where)
    for table, attribute in EXPIRY.items():
        described = dynamodb.describe_time_to_live(TableName=table)
        if described["TimeToLiveDescription"]["TimeToLiveStatus"] == "ENABLED":
            continue
        dynamodb.update_time_to_live(
            TableName=table,
            TimeToLiveSpecification={"Enabled": True, "AttributeName": attribute},
        )


def collect_outputs(where: Target) -> dict[str, Any]:
    """What tests and the demo need to know: plain names, by kind."""
    stacks: dict[str, str] = {}
    for stack in ("storage", "compute", "api"):
        stacks |= stack_outputs(where, f"{PREFIX}-{stack}")
    api_id, stage = stacks["ApiId"], stacks["ApiStage"]
    return {
        "endpoint": where.endpoint,
        "region": REGION,
        "account": ACCOUNT,
        # The stack's own output is an address in the cloud.
        "api_url": f"{where.endpoint}/restapis/{api_id}/{stage}/_user_request_/",
        "tables": chosen(stacks, "Table"),
        "queues": chosen(stacks, "QueueUrl") | suffixed(chosen(stacks, "DlqUrl"), "_dlq"),
        "functions": chosen(stacks, "Function"),
    }


def stack_outputs(where: Target, stack: str) -> dict[str, str]:
    try:
        described = client("cloudformation", where).describe_stacks(StackName=stack)
    except ClientError as error:
        raise Refused(f"Stack {stack} is not there after the deploy.") from error
    outputs = described["Stacks"][0].get("Outputs", [])
    return {output["OutputKey"]: output["OutputValue"] for output in outputs}


def chosen(outputs: Mapping[str, str], suffix: str) -> dict[str, str]:
    """Outputs named `<Thing><suffix>`, as `<thing>`."""
    return {
        snake(name.removesuffix(suffix)): value
        for name, value in outputs.items()
        if name.endswith(suffix)
    }


def suffixed(named: Mapping[str, str], suffix: str) -> dict[str, str]:
    return {f"{name}{suffix}": value for name, value in named.items()}


def snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip(
        "_"
    )


def client(service: str, where: Target) -> Any:
    return boto3.client(  # type: ignore[call-overload]
        service,
        endpoint_url=where.endpoint,
        region_name=REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 - what every emulator takes
    )


if __name__ == "__main__":
    main()
