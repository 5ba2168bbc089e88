"""What answers look like: documents of schedules, occurrences and tenants as JSON."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, assert_never
from zoneinfo import ZoneInfo

from aws_lambda_powertools.event_handler import Response

from functions.api.models import definition_document
from puntual.application.cancel_schedule import ROWS_READ_MAX, CanceledSchedule
from puntual.application.show_schedule import ShownSchedule
from puntual.domain.instant import text_of
from puntual.domain.occurrence import Occurrence, ref_of
from puntual.domain.run import Attempt, Note, Run, Span
from puntual.domain.schedule import Schedule, ScheduleState
from puntual.domain.tenant import Tenant
from puntual.domain.timeline import Entry, Fire, run_of, state_of

JSON = "application/json"
VOIDED = "voided: it will be recorded as CANCELED instead of started"


def answer(
    document: Mapping[str, Any], *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response[str]:
    return Response(
        status_code=status,
        content_type=JSON,
        body=json.dumps(document, separators=(",", ":")),
        headers=dict(headers or {}),
    )


def etag_of(head: Schedule) -> str:
    return f'"{head.version}"'


def schedule_answer(
    shown: ShownSchedule, *, status: int = 200, location: str | None = None
) -> Response[str]:
    headers = {"ETag": etag_of(shown.head)}
    if location is not None:
        headers["Location"] = location
    return answer(schedule_document(shown), status=status, headers=headers)


def schedule_document(shown: ShownSchedule) -> dict[str, Any]:
    head, version = shown.head, shown.version
    return {
        "tenant": head.tenant,
        "id": head.schedule,
        "version": head.version,
        "state": head.state.value,
        **definition_document(version),
        "created_at": text_of(head.created_at),
        "effective_from": text_of(head.effective_from),
        "author": version.author,
        "tzdata": version.tzdata,
        "next_fires": [_fire_time(fire, version.rule.time_zone) for fire in shown.next_fires],
        "warnings": list(shown.warnings),
    }


def listed_schedule(head: Schedule, as_of: datetime) -> dict[str, Any]:
    fire = head.rule.next_fire(as_of) if head.state is ScheduleState.ACTIVE else None
    return {
        "id": head.schedule,
        "version": head.version,
        "state": head.state.value,
        "expression": head.rule.expression,
        "time_zone": head.rule.time_zone,
        "created_at": text_of(head.created_at),
        "effective_from": text_of(head.effective_from),
        "next_fire": None if fire is None else _fire_time(fire, head.rule.time_zone),
    }


def canceled_document(canceled: CanceledSchedule) -> dict[str, Any]:
    as_of = canceled.shown.as_of
    return {
        "tenant": canceled.shown.head.tenant,
        "id": canceled.shown.head.schedule,
        "version": canceled.shown.head.version,
        "state": canceled.shown.head.state.value,
        "running": [occurrence_document(run, as_of) for run in canceled.running],
        "finished": [occurrence_document(run, as_of) for run in canceled.finished],
        "already_out": [occurrence_document(fire, as_of) for fire in canceled.already_out],
        "looked_at_rows_max": ROWS_READ_MAX,
        "complete": canceled.complete,
    }


def occurrence_document(entry: Entry, as_of: datetime) -> dict[str, Any]:
    state = state_of(entry, as_of).value
    match entry:
        case Span():
            return {
                "ref": None,
                "version": entry.version,
                "scheduled_for": None,
                "state": state,
                "first": text_of(entry.first),
                "last": text_of(entry.last),
                "reason": entry.reason,
            }
        case Note():
            return {
                **_identity(entry.occurrence, run_of(entry)),
                "state": state,
                "reason": entry.reason,
                "noted_at": text_of(entry.noted_at),
            }
        case Fire():
            return {
                **_identity(entry.occurrence, run_of(entry)),
                "state": state,
                "available_at": text_of(entry.available_at),
                "reason": VOIDED if entry.voided else "",
            }
        case Run():
            return {**_identity(entry.occurrence, run_of(entry)), "state": state, **_run(entry)}
        case _:
            assert_never(entry)


def tenant_document(tenant: Tenant) -> dict[str, Any]:
    return {
        "tenant": tenant.tenant,
        "schedules_max": tenant.schedules_max,
        "target_queues": list(tenant.target_queues),
        "usage": {"schedules": tenant.schedules},
    }


def _identity(occurrence: Occurrence, run: str) -> dict[str, Any]:
    return {
        "ref": ref_of(run),
        "id": occurrence.id,
        "kind": occurrence.kind.value,
        "version": occurrence.version,
        "scheduled_for": text_of(occurrence.scheduled_for),
    }


def _run(run: Run) -> dict[str, Any]:
    first = run.attempts[0] if run.attempts else None
    last = run.attempts[-1] if run.attempts and run.state.is_terminal else None
    enqueued = run.enqueued_at
    lag = None if enqueued is None else enqueued - run.occurrence.scheduled_for
    return {
        "available_at": text_of(run.available_at),
        "enqueued_at": _text(enqueued),
        "started_at": _text(first.started_at if first else None),
        "finished_at": _text(last.finished_at if last else None),
        "lag_seconds": None if lag is None else lag.total_seconds(),
        "attempt": run.attempt,
        "not_before": _text(run.not_before),
        "cancel_requested": run.cancel_requested,
        "reason": run.reason,
        "attempts": [_attempt(attempt) for attempt in run.attempts],
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "started_at": text_of(attempt.started_at),
        "finished_at": _text(attempt.finished_at),
        "result": attempt.result,
    }


def _fire_time(fire: datetime, time_zone: str) -> dict[str, str]:
    local = fire.astimezone(ZoneInfo(time_zone))
    return {"utc": text_of(fire), "local": local.isoformat(timespec="seconds")}


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else text_of(instant)
