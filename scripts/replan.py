"""Plans schedules anew whose fires new zone data move, and says which and how.

Usage: ``python -m scripts.replan ENV [--dry-run]``; `make replan ENV=dev DRY_RUN=true` is the
same. Calls the environment's replanner until nothing is left, with the credentials and region of
your environment; for `local` on the local system. Ends with 0 where all is done, 1 where it is
not, 2 where it could not begin.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from infra.environments import ENVIRONMENTS, LOCAL
from scripts.emulator import Endpoint, Refused
from scripts.local import FAILURE, OUTPUTS, USAGE_ERROR, client

SLICE_SECONDS_MAX = 180
"""A little longer than the function may take."""

SLICES_MAX = 100_000
"""Months of work: who needs more is in a circle."""

RUNBOOK = "docs/runbooks/zone-rules.md"

type Call = Callable[[dict[str, Any]], dict[str, Any]]
"""Invokes the replanner with an event; raises `Failed`."""

type Answer = dict[str, Any]


class Failed(Exception):
    """The run ended before its end; the message is for people, in a line."""


def main(arguments: Sequence[str], replanner: Callable[[str], Call] | None = None) -> None:
    """Do what the arguments say; `replanner` gives an environment's, as `replanner_of` does."""
    parser = argparse.ArgumentParser(description="Plan anew what new zone data move.")
    parser.add_argument("environment", choices=list(ENVIRONMENTS))
    parser.add_argument("--dry-run", action="store_true")
    read = parser.parse_args(arguments)
    try:
        replan((replanner or replanner_of)(read.environment), dry_run=read.dry_run)
    except Refused as refused:
        print(refused, file=sys.stderr)
        raise SystemExit(USAGE_ERROR) from None
    except Failed as failed:
        print(failed, file=sys.stderr)
        raise SystemExit(FAILURE) from None


def replan(call: Call, *, dry_run: bool) -> None:
    """Do slice after slice and print what each did; raises `Failed`."""
    looked_at = already = replanned = 0
    for answer in slices(call, dry_run=dry_run):
        for entry in answer["replanned"]:
            print(line_of(entry), flush=True)
        for entry in answer["refused"]:
            print(f"{name_of(entry)} REFUSED: {entry['reason']}", flush=True)
        looked_at += answer["looked_at"]
        already += answer["already"]
        replanned += len(answer["replanned"])
        last = answer
    former = ", ".join(last["from"]) or "nothing older"
    if last["dropped"]:
        print(f"Zone names that are gone: {', '.join(last['dropped'])}.")
    print(
        f"tzdata {former} -> {last['to']}: zone names that differ {len(last['zones'])}, active "
        f"schedules in them {looked_at}, {'to be ' * dry_run}re-planned {replanned}, on "
        f"{last['to']} before {already}, refused {last['left']}."
    )
    if dry_run:
        print("Nothing was written: it was a dry run.")
    elif last["left"]:
        raise Failed(f"Refused schedules are left, {last['left']} of them: see {RUNBOOK}.")
    elif not last["caught_up"]:
        raise Failed("Zone data were deployed anew in the meantime: run it again.")
    else:
        print(f"All schedules follow {last['to']}.")


def slices(call: Call, *, dry_run: bool) -> Iterator[Answer]:
    token: str | None = None
    for _ in range(SLICES_MAX):
        answer = call({"dry_run": dry_run, "next_token": token})
        yield answer
        token = answer["next_token"]
        if token is None:
            return
    raise Failed(f"{SLICES_MAX} slices were not enough: run it again.")


def name_of(entry: dict[str, Any]) -> str:
    return f"{entry['tenant']}/{entry['schedule']}"


def line_of(entry: dict[str, Any]) -> str:
    rule = f"{entry['expression']} in {entry['time_zone']}"
    return f"{name_of(entry)} version {entry['version']}: {rule}: {_moved(entry)}"


def _moved(entry: dict[str, Any]) -> str:
    at_least = "" if entry["complete"] else "at least "
    parts = [
        f"{at_least}{entry[what]} {verb}, the first at {entry[f'first_{what}']}"
        for what, verb in (("vanished", "vanish"), ("appeared", "appear"))
        if entry[what]
    ]
    return "; ".join(parts) or "too many fires to compare them all"


def replanner_of(environment: str, *, outputs: Path = OUTPUTS) -> Call:
    """Give a call of the environment's function; raises `Refused`."""
    config = Config(read_timeout=SLICE_SECONDS_MAX, retries={"total_max_attempts": 1})
    if environment == LOCAL.name:
        if not outputs.exists():
            raise Refused("The local system is not running: `make up` first.")
        url = json.loads(outputs.read_text())["endpoint"]
        functions = client("lambda", Endpoint(url=url, ours=False), config)
    else:
        try:
            functions = boto3.client("lambda", config=config)
        except BotoCoreError as error:
            raise Refused(str(error)) from error
    name = f"{ENVIRONMENTS[environment].prefix}-replanner"
    return lambda event: invoked(functions, name, event)


def invoked(functions: Any, name: str, event: dict[str, Any]) -> Answer:
    try:
        answer = functions.invoke(FunctionName=name, Payload=json.dumps(event).encode())
        text = answer["Payload"].read().decode()
    except (BotoCoreError, ClientError) as error:
        raise Failed(f"{name}: {error}") from error
    document: Answer = json.loads(text)
    if answer.get("FunctionError"):
        raise Failed(f"{name}: {document.get('errorMessage', text)}")
    return document


if __name__ == "__main__":
    main(sys.argv[1:])
