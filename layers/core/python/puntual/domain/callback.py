"""Runs that end by a callback: how long they are leased, and what a callback may say.

An attempt whose target has taken it holds a lease that no executor stands behind. Heartbeats raise
it, up to the policy's `max_duration`; when it has run out, the next attempt may be claimed.
"""

import json
from dataclasses import replace
from datetime import datetime

from puntual.domain.errors import Conflict, Rejected
from puntual.domain.policies import CompletionPolicy
from puntual.domain.run import (
    DETAIL_LENGTH_MAX,
    LEASE_RAN_OUT,
    MAX_DURATION_REACHED,
    RESULT_BYTES_MAX,
    Run,
    RunState,
)

COMPLETED = "completed by callback"
FAILED = "failed by callback"


class AttemptOver(Conflict):
    """The attempt has ended, or has no more time; nothing was changed."""

    def __init__(self, attempt: int, why: str) -> None:
        super().__init__(f"attempt {attempt} {why}; nothing was changed")
        self.attempt = attempt


def ends_at(run: Run, completion: CompletionPolicy) -> datetime:
    """Give the instant beyond which no heartbeat holds the current attempt."""
    return run.attempts[-1].started_at + completion.max_duration


def renewed(run: Run, completion: CompletionPolicy, *, now: datetime) -> Run:
    """Give the row with its lease raised by a heartbeat; leases only rise."""
    assert run.lease_until is not None
    lease = min(now + completion.heartbeat, ends_at(run, completion))
    return replace(run, lease_until=max(run.lease_until, lease))


def accepted(run: Run, completion: CompletionPolicy, *, detail: str, now: datetime) -> Run:
    """Give the row of an attempt that its target has taken and will call back about."""
    held = renewed(run, completion, now=now)
    taken = replace(held.attempts[-1], result=detail[:DETAIL_LENGTH_MAX])
    return replace(held, attempts=(*held.attempts[:-1], taken))


def completed(run: Run, *, result: str, now: datetime) -> Run:
    """Give the row of an attempt that its target says has succeeded."""
    attempts = run.finished_attempt(now=now, result=result, length_max=RESULT_BYTES_MAX)
    return replace(run, state=RunState.SUCCEEDED, lease_until=None, attempts=attempts)


def lapse_of(run: Run, completion: CompletionPolicy) -> str:
    """Say why the lease of a row ran out: nobody raised it, or nobody could any more."""
    if not completion.is_by_callback or not run.attempts or run.lease_until is None:
        return LEASE_RAN_OUT
    reached = run.lease_until >= ends_at(run, completion)
    return MAX_DURATION_REACHED if reached else LEASE_RAN_OUT


def was_completed(run: Run) -> bool:
    """Tell whether a repeated complete of the row's attempt finds its own effect."""
    return run.state is RunState.SUCCEEDED


def was_failed(run: Run) -> bool:
    """Tell whether a repeated fail of the row's attempt finds its own effect."""
    return run.state in {RunState.RETRY_WAIT, RunState.DEAD, RunState.CANCELED}


def result_of(value: object) -> str:
    """Check what a receiver says of a run that it completes; raises `Rejected`."""
    allowed = f"text of 1 to {RESULT_BYTES_MAX} bytes in UTF-8"
    if value is None:
        return COMPLETED
    if not isinstance(value, str) or not 0 < _bytes_of(value) <= RESULT_BYTES_MAX:
        raise Rejected("result", _unshown(value), allowed)
    return value


def reason_of(value: object) -> str:
    """Check why a receiver says that an attempt failed; raises `Rejected`."""
    allowed = f"text of 1 to {DETAIL_LENGTH_MAX} characters"
    if value is None:
        return FAILED
    if (
        not isinstance(value, str)
        or not 0 < len(value) <= DETAIL_LENGTH_MAX
        or not _bytes_of(value)
    ):
        raise Rejected("reason", _unshown(value), allowed)
    return value


def retry_of(value: object) -> bool:
    """Check whether a failed attempt may be followed by another; raises `Rejected`."""
    if not isinstance(value, bool):
        raise Rejected("retry", _unshown(value), "true or false")
    return value


def _bytes_of(text: str) -> int:
    """Count the bytes of a text; 0 where it holds half of a character, which UTF-8 cannot say."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return 0


def _unshown(value: object) -> str:
    """Name a value by its kind: an error repeats nothing of a body that comes with a token."""
    match value:
        case str():
            return f"text of {len(value)} characters"
        case None | bool():
            return json.dumps(value)
        case int() | float():
            return "a number"
        case _:
            return "an array" if isinstance(value, list) else "an object"
