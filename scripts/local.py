"""The local system: an AWS emulator on this machine and the real CDK app deployed to it.

``python -m scripts.local up`` starts MiniStack (or uses what AWS_ENDPOINT_URL names, LocalStack
for one), deploys ENV=local and writes ``.local/outputs.json``; ``down`` stops what `up` started.
Doing either twice is fine. The port is PUNTUAL_PORT, 4566 by default.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from scripts import emulator, receiver
from scripts.emulator import ACCOUNT, REGION, ROOT, STATE, Endpoint, Refused

OUTPUTS = STATE / "outputs.json"
DEPLOY_LOG = STATE / "deploy.log"
# Apart for each local system: two may be deployed at once.
ASSEMBLY = STATE / "cdk.out"

PREFIX = "puntual-local"
STACKS = ("storage", "compute", "api")
USAGE_ERROR = 2
FAILURE = 1

# The emulator drops these from CloudFormation templates, so they are applied after a deploy.
EXPIRY = {f"{PREFIX}-occurrences": "expires_at", f"{PREFIX}-idempotency": "expiration"}

BY_HAND = """\
  .venv/bin/python -m scripts.receiver    # in another terminal: takes what schedules send
  api={api_url}v1/tenants/try
  admin={api_url}v1/admin/tenants/try
  call() {{ curl -sS --aws-sigv4 aws:amz:{region}:execute-api -u test:test "$@"; }}
  call -X PUT -d '{{}}' $admin
  call -d '{{"id": "first", "expression": "* * * * *",
    "target": {{"type": "webhook", "url": "{receiver_url}/ok"}}}}' $api/schedules
  call "$api/schedules/first/occurrences?limit=5" | .venv/bin/python -m json.tool"""


RETRYING = Config(retries={"mode": "standard", "max_attempts": 3})


class DeployFailed(Exception):
    """The CDK CLI ended with an error; the message holds the end of what it said."""


def main() -> None:
    parser = argparse.ArgumentParser(description="The local system.")
    parser.add_argument("command", choices=["up", "down"])
    command = parser.parse_args().command
    try:
        if command == "up":
            up()
        else:
            down()
    except Refused as refused:
        print(refused, file=sys.stderr)
        raise SystemExit(USAGE_ERROR) from None
    except DeployFailed as failed:
        print(failed, file=sys.stderr)
        raise SystemExit(FAILURE) from None


def up() -> None:
    begun = time.monotonic()
    endpoint = emulator.chosen_endpoint()
    STATE.mkdir(parents=True, exist_ok=True)
    if endpoint.ours:
        emulator.start(endpoint)
    elif not emulator.healthy(endpoint):
        raise Refused(f"AWS_ENDPOINT_URL is {endpoint.url}, but nothing answers there.")
    print(f"Deploying to {endpoint.url} …", flush=True)
    deploy(endpoint)
    restore_expiry(endpoint)
    outputs = collect_outputs(endpoint)
    OUTPUTS.write_text(json.dumps(outputs, indent=2) + "\n")
    print(
        f"Puntual runs here, after {time.monotonic() - begun:.0f} s.\n"
        f"  endpoint   {outputs['endpoint']}\n"
        f"  API        {outputs['api_url']}\n"
        f"  outputs    {relative(OUTPUTS)}\n"
        f"  log        {relative(emulator.LOG) if endpoint.ours else 'kept by the emulator'}\n"
        "Try next: `make demo` shows it at work, `make down` stops it. By hand (docs/api.md):\n"
        f"{by_hand(outputs)}"
    )


def by_hand(outputs: Mapping[str, Any]) -> str:
    """Give the commands that make a first schedule and show that it runs."""
    receiver_url = f"http://{receiver.HOST}:{receiver.PORT}"
    return BY_HAND.format(**outputs, receiver_url=receiver_url)


def down() -> None:
    stopped = emulator.stop()
    OUTPUTS.unlink(missing_ok=True)
    print("The local system is stopped." if stopped else "The local system is not running.")


def deploy(endpoint: Endpoint) -> None:
    DEPLOY_LOG.unlink(missing_ok=True)
    if not stack_outputs(endpoint, "CDKToolkit"):
        # Outside the project: with a cdk.json in sight, bootstrapping would synthesise first.
        cdk(endpoint, STATE, "bootstrap", f"aws://{ACCOUNT}/{REGION}")
    cdk(
        endpoint,
        ROOT,
        "deploy",
        "--all",
        "--context=environment=local",
        # What is deployed there is not reached by its name in the cloud.
        f"--context=endpoint={endpoint.url}",
        "--require-approval=never",
        "--concurrency=2",
        "--method=direct",
        f"--output={ASSEMBLY}",
    )


def cdk(endpoint: Endpoint, directory: Path, *arguments: str) -> None:
    environment = emulator.hermetic_environment() | {
        "AWS_ENDPOINT_URL": endpoint.url,
        "AWS_ENDPOINT_URL_S3": endpoint.url,
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CI": "true",
        "NODE_NO_WARNINGS": "1",
        "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "1",
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
    }
    command = [str(ROOT / "node_modules" / ".bin" / "cdk"), *arguments]
    command += ["--no-notices", "--no-version-reporting", "--no-color"]
    with DEPLOY_LOG.open("ab") as log:
        done = subprocess.run(  # noqa: S603 - our own argv
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        said = DEPLOY_LOG.read_text(errors="replace").splitlines()[-25:]
        raise DeployFailed(
            "\n".join(
                [*said, f"`cdk {arguments[0]}` failed; all of it is in {relative(DEPLOY_LOG)}"]
            )
        )


def restore_expiry(endpoint: Endpoint) -> None:
    dynamodb = client("dynamodb", endpoint)
    for table, attribute in EXPIRY.items():
        described = dynamodb.describe_time_to_live(TableName=table)
        if described["TimeToLiveDescription"]["TimeToLiveStatus"] == "ENABLED":
            continue
        dynamodb.update_time_to_live(
            TableName=table,
            TimeToLiveSpecification={"Enabled": True, "AttributeName": attribute},
        )


def collect_outputs(endpoint: Endpoint) -> dict[str, Any]:
    """What tests and the demo need to know: addresses and plain names, by kind."""
    stacks: dict[str, str] = {}
    for stack in STACKS:
        stacks |= stack_outputs(endpoint, f"{PREFIX}-{stack}")
    if "ApiId" not in stacks:
        raise DeployFailed(f"The stacks have no API; see {relative(DEPLOY_LOG)}")
    api_id, stage = stacks["ApiId"], stacks["ApiStage"]
    dead_letters = named_by_suffix(stacks, "DlqUrl")
    return {
        "endpoint": endpoint.url,
        "region": REGION,
        "account": ACCOUNT,
        # The stack's own output is an address in the cloud.
        "api_url": f"{endpoint.url}/restapis/{api_id}/{stage}/_user_request_/",
        "tables": named_by_suffix(stacks, "Table"),
        "queues": named_by_suffix(stacks, "QueueUrl")
        | {f"{lane}_dlq": url for lane, url in dead_letters.items()},
        "functions": named_by_suffix(stacks, "Function"),
    }


def stack_outputs(endpoint: Endpoint, stack: str) -> dict[str, str]:
    """The outputs of a stack, empty where there is no such stack."""
    try:
        described = client("cloudformation", endpoint).describe_stacks(StackName=stack)
    except ClientError:
        return {}
    outputs = described["Stacks"][0].get("Outputs", [])
    return {output["OutputKey"]: output["OutputValue"] for output in outputs}


def named_by_suffix(outputs: Mapping[str, str], suffix: str) -> dict[str, str]:
    """Outputs named `<SomeThing><suffix>`, as `some_thing`."""
    return {
        snake(name.removesuffix(suffix)): value
        for name, value in outputs.items()
        if name.endswith(suffix)
    }


def snake(name: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name).lstrip("_")


def client(service: str, endpoint: Endpoint, config: Config = RETRYING) -> Any:
    return boto3.client(  # type: ignore[call-overload]
        service,
        endpoint_url=endpoint.url,
        region_name=REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 - what every emulator takes
        config=config,
    )


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
