"""What answers look like: documents of schedules, occurrences and tenants as JSON."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, time, timedelta, timezone
from typing import Any, assert_never
from zoneinfo import ZoneInfo

from aws_lambda_powertools.event_handler import Response

from functions.api.models import definition_document
from puntual.application.cancel_schedule import ROWS_READ_MAX, CanceledSchedule
from puntual.application.change_schedule import ChangedSchedule
from puntual.application.preview_catch_up import PreviewedCatchUp
from puntual.application.preview_rule import PreviewedRule
from puntual.application.replay_dead_letters import ReplayedDeadLetters, ReplayResult
from puntual.application.show_schedule import ShownSchedule
from puntual.application.show_usage import RateUsage, RunningUsage, TargetUsage, Usage
from puntual.application.try_target import Tried
from puntual.domain.breaker import OpenBreaker
from puntual.domain.catch_up_preview import PolicyOutcome
from puntual.domain.change_summary import summary_of
from puntual.domain.clock_changes import ClockChange
from puntual.domain.forecast import BusyMinute, Forecast, ZonedExpression
from puntual.domain.instant import MILLISECOND, SECOND, text_of
from puntual.domain.occurrence import Occurrence, RunKey, ref_of
from puntual.domain.page import Planned
from puntual.domain.run import Attempt, Note, Run, Span
from puntual.domain.run_request import RunRequest
from puntual.domain.schedule import Schedule, ScheduleState
from puntual.domain.span_count import SpanCount
from puntual.domain.target import Delivered, Failed
from puntual.domain.target_limit import TargetLimit
from puntual.domain.tenant import Quotas, Tenant, TenantId, external_id_of
from puntual.domain.timeline import Entry, Fire, run_of, state_of
from puntual.domain.webhook_keys import WebhookKey
from puntual.domain.zone_names import canonical_zone

JSON = "application/json"
SHARE_DIGITS = 4
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
        "description": version.rule.describe(),
        **definition_document(version),
        "ends_at": _text(version.rule.end_at),
        "canonical_time_zone": canonical_zone(version.rule.time_zone),
        "created_at": text_of(head.created_at),
        "effective_from": text_of(head.effective_from),
        "author": version.author,
        "tzdata": version.tzdata,
        "next_fires": [_fire_time(fire, version.rule.time_zone) for fire in shown.next_fires],
        "warnings": list(shown.warnings),
    }


def changed_answer(changed: ChangedSchedule) -> Response[str]:
    """Show what stands now, or after a dry run what would; only what stands has an ETag."""
    document = {
        **schedule_document(changed.shown),
        "warnings": list(changed.warnings),
        "dry_run": changed.dry_run,
        "changes": changes_document(changed),
    }
    headers = {} if changed.dry_run else {"ETag": etag_of(changed.shown.head)}
    return answer(document, headers=headers)


def changes_document(changed: ChangedSchedule) -> dict[str, Any]:
    """Show each fire in the zone of the rule that has it."""
    changes = changed.changes
    old_zone, new_zone = changed.replaced.rule.time_zone, changed.shown.version.rule.time_zone
    return {
        "rule_changed": changed.rule_changed,
        "summary": summary_of(changes, rule_changed=changed.rule_changed),
        "next": {
            "before": _next_fire(changes.next_before, old_zone),
            "after": _next_fire(changes.next_after, new_zone),
        },
        "from": text_of(changes.start),
        "through": text_of(changes.through),
        "complete": changes.complete,
        "compared": changes.compared,
        "unchanged": changes.unchanged,
        "appear": [_fire_time(fire, new_zone) for fire in changes.appear],
        "vanish": [_fire_time(fire, old_zone) for fire in changes.vanish],
        "move": [
            {"from": _fire_time(move.before, old_zone), "to": _fire_time(move.after, new_zone)}
            for move in changes.move
        ],
    }


def listed_schedule(head: Schedule, as_of: datetime) -> dict[str, Any]:
    fire = head.rule.next_fire(as_of) if head.state is ScheduleState.ACTIVE else None
    return {
        "id": head.schedule,
        "version": head.version,
        "state": head.state.value,
        "expression": head.rule.expression,
        "time_zone": head.rule.time_zone,
        "canonical_time_zone": canonical_zone(head.rule.time_zone),
        "description": head.rule.describe(),
        "labels": dict(head.labels),
        "created_at": text_of(head.created_at),
        "effective_from": text_of(head.effective_from),
        "next_fire": _next_fire(fire, head.rule.time_zone),
    }


def preview_document(previewed: PreviewedRule) -> dict[str, Any]:
    rule, preview = previewed.rule, previewed.preview
    return {
        "description": rule.describe(),
        "expression": rule.expression,
        "time_zone": rule.time_zone,
        "fires": [
            {
                **_fire_time(fire.instant, rule.time_zone),
                "available_at": text_of(fire.available_at),
                "notes": [{"kind": note.kind.value, "text": note.sentence} for note in fire.notes],
            }
            for fire in preview.fires
        ],
        "clock_changes": [_clock_change(change) for change in preview.clock_changes],
        "notes_through": text_of(preview.notes_through),
        "warnings": list(previewed.warnings),
        "tzdata": previewed.tzdata,
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


def occurrence_document(
    entry: Entry, as_of: datetime, counts: Mapping[RunKey, SpanCount] | None = None
) -> dict[str, Any]:
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
                **_count(entry, counts or {}),
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
            return {**run_document(entry), "state": state}
        case _:
            assert_never(entry)


def run_document(run: Run) -> dict[str, Any]:
    identity = _identity(run.occurrence, run_of(run))
    return {**identity, "state": run.state.value, **_run(run)}


def dead_letter_document(run: Run) -> dict[str, Any]:
    died_at = _text(run.died_at)
    return {"schedule": run.occurrence.schedule, "died_at": died_at, **run_document(run)}


def replayed_document(replayed: ReplayedDeadLetters) -> dict[str, Any]:
    results = [_replay_result(result, dry_run=replayed.dry_run) for result in replayed.results]
    return {
        "dry_run": replayed.dry_run,
        "replayed": sum(result.run is not None for result in replayed.results),
        "refused": sum(result.why is not None for result in replayed.results),
        "results": results,
        "resume_token": replayed.token,
    }


def _replay_result(result: ReplayResult, *, dry_run: bool) -> dict[str, Any]:
    run = result.run
    done = "would_replay" if dry_run else "replayed"
    return {
        "schedule": result.key.schedule,
        "ref": ref_of(result.key.run),
        "result": done if result.why is None else "refused",
        "round": None if run is None else run.round,
        "not_before": None if run is None else _text(run.not_before),
        "reason": result.why or "",
    }


def asked_document(request: RunRequest) -> dict[str, Any]:
    """Show what was triggered as it was answered first, whatever has become of it since."""
    (planned,) = request.planned
    fire = Fire(occurrence=planned.occurrence, available_at=planned.available_at)
    return occurrence_document(fire, request.asked_at)


def backfill_document(request: RunRequest, *, dry_run: bool) -> dict[str, Any]:
    survey, planned = request.survey, request.planned
    assert survey is not None, "a backfill has looked at its range"
    return {
        "dry_run": dry_run,
        "count": len(planned),
        "first": _planned_document(planned[:1], dry_run=dry_run),
        "last": _planned_document(planned[-1:], dry_run=dry_run),
        "per_minute": request.per_minute,
        "looked_at": survey.looked_at,
        "ran": survey.ran,
        "pending": survey.pending,
        "rest_from": _text(survey.rest_from),
    }


def _planned_document(planned: Sequence[Planned], *, dry_run: bool) -> dict[str, Any] | None:
    """Show one of a backfill, if there is any; in a dry run it has no ref and no id yet."""
    for each in planned:
        identity = _identity(each.occurrence, each.occurrence.key.run)
        unknown: dict[str, Any] = {"ref": None, "id": None} if dry_run else {}
        return {**identity, **unknown, "available_at": text_of(each.available_at)}
    return None


def registration_answer(tenant: Tenant, *, environment: str) -> Response[str]:
    return answer(tenant_document(tenant, external_id_of(environment, tenant.tenant)))


def tenant_document(tenant: Tenant, external_id: str) -> dict[str, Any]:
    return {
        "tenant": tenant.tenant,
        "quotas": quotas_document(tenant.quotas),
        "targets": list(tenant.targets),
        "roles": list(tenant.roles),
        "principals": list(tenant.principals),
        "target_limits": [_target_limit(limit) for limit in tenant.target_limits],
        "external_id": external_id,
        "usage": {"schedules": tenant.schedules},
    }


def _target_limit(limit: TargetLimit) -> dict[str, Any]:
    return {"target": limit.target, "per_minute": limit.per_minute, "running": limit.running}


def quotas_document(quotas: Quotas) -> dict[str, Any]:
    return {
        "schedules_max": quotas.schedules_max,
        "fires_per_minute_max": quotas.fires_per_minute_max,
        "running_max": quotas.running_max,
        "catch_ups_per_minute": quotas.catch_ups_per_minute,
        "retries_per_minute": quotas.retries_per_minute,
        "smallest_interval_seconds": quotas.smallest_interval // SECOND,
        "weight": quotas.weight,
    }


def usage_document(usage: Usage) -> dict[str, Any]:
    return {
        "tenant": usage.tenant.tenant,
        "as_of": text_of(usage.as_of),
        "quotas": quotas_document(usage.tenant.quotas),
        "used": {
            "schedules": usage.tenant.schedules,
            **{name: _rate_document(rate) for name, rate in usage.rates.items()},
            **_running_document(usage.running),
            "targets": [_target_usage_document(each) for each in usage.targets],
        },
        "breakers": [breaker_document(each) for each in usage.breakers],
    }


def _target_usage_document(usage: TargetUsage) -> dict[str, Any]:
    rate = {} if usage.rate is None else {"attempts": _rate_document(usage.rate)}
    return {"target": usage.target, **rate, **_running_document(usage.running)}


def _rate_document(usage: RateUsage) -> dict[str, Any]:
    return {"waiting": usage.waiting, "held": usage.held}


def _running_document(usage: RunningUsage | None) -> dict[str, Any]:
    """Give nothing where nothing is counted."""
    if usage is None:
        return {}
    return {"running": {"in_use": usage.in_use, "max": usage.max, "held": usage.held}}


def breaker_document(breaker: OpenBreaker) -> dict[str, Any]:
    return {
        "target": breaker.target,
        "until": text_of(breaker.until),
        "opened": breaker.opened,
    }


def keys_document(keys: Sequence[WebhookKey]) -> dict[str, Any]:
    return {"keys": [{"generation": key.generation, "key": key.text} for key in keys]}


def tried_document(tried: Tried) -> dict[str, Any]:
    result = tried.result
    return {
        "result": "delivered" if isinstance(result, Delivered) else "failed",
        "detail": result.detail,
        "retryable": isinstance(result, Failed) and result.retryable,
        "duration_ms": tried.duration // MILLISECOND,
        "breaker": None if tried.breaker is None else breaker_document(tried.breaker),
    }


def forecast_document(tenant: TenantId, forecast: Forecast) -> dict[str, Any]:
    """Give the shares with four digits: they are ratios, and often estimates."""
    peak = forecast.busiest[0] if forecast.busiest else None
    share = forecast.minute_0_share
    return {
        "tenant": tenant,
        "from": text_of(forecast.start),
        "to": text_of(forecast.end),
        "schedules": {
            "active": forecast.schedules,
            "read": forecast.schedules_read,
            "unreadable": forecast.unreadable,
        },
        "sampled": forecast.is_sampled,
        "sampled_share": round(forecast.share, SHARE_DIGITS),
        "fires": forecast.fires,
        "minute_0_share": None if share is None else round(share, SHARE_DIGITS),
        "hints": list(forecast.hints),
        "peak": None if peak is None else {"minute": text_of(peak.start), "fires": peak.fires},
        "busiest": [_busy_minute(minute) for minute in forecast.busiest],
        "distinct_expressions": forecast.distinct_expressions,
        "expressions": [
            {
                **_zoned_expression(expression.zoned),
                "schedules": expression.schedules,
                "fires": expression.fires,
                "minute_0_fires": expression.minute_0_fires,
            }
            for expression in forecast.expressions
        ],
        "minutes": list(forecast.minutes),
    }


def _busy_minute(minute: BusyMinute) -> dict[str, Any]:
    return {
        "minute": text_of(minute.start),
        "fires": minute.fires,
        "expressions": [
            {**_zoned_expression(herd.zoned), "fires": herd.fires} for herd in minute.herds
        ],
    }


def _zoned_expression(zoned: ZonedExpression) -> dict[str, str]:
    return {"expression": zoned.expression, "time_zone": zoned.time_zone}


def catch_up_document(previewed: PreviewedCatchUp) -> dict[str, Any]:
    head, preview = previewed.head, previewed.preview
    misfire = head.policies.misfire
    late = misfire.max_lateness
    return {
        "id": head.schedule,
        "version": head.version,
        "state": head.state.value,
        "policy": misfire.policy.value,
        "misfire_after_seconds": misfire.after.total_seconds(),
        "max_lateness_seconds": None if late is None else late.total_seconds(),
        "limit": misfire.limit,
        "catch_ups_per_minute": preview.per_minute,
        "from": text_of(preview.start),
        "until": text_of(preview.end),
        "fires": preview.fires,
        "on_time": preview.on_time,
        "policies": {
            outcome.policy.value: _outcome(outcome, head.rule.time_zone)
            for outcome in preview.outcomes
        },
    }


def _outcome(outcome: PolicyOutcome, time_zone: str) -> dict[str, Any]:
    return {
        "runs": outcome.runs,
        "first_runs": [_fire_time(fire, time_zone) for fire in outcome.fires],
        "last_run": _next_fire(outcome.last, time_zone),
        "drains_in_seconds": round(outcome.drains_in.total_seconds()),
        "missed": sum(missed.count for missed in outcome.missed),
        "missed_ranges": [
            {
                "first": text_of(missed.first),
                "last": text_of(missed.last),
                "count": missed.count,
                "reason": missed.reason,
            }
            for missed in outcome.missed
        ],
    }


def _count(span: Span, counts: Mapping[RunKey, SpanCount]) -> dict[str, Any]:
    found = counts.get(span.key)
    if found is None:
        return {}
    return {"count": found.count, "count_is_exact": found.is_exact}


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
    lag = None if enqueued is None else enqueued - run.available_at
    return {
        "available_at": text_of(run.available_at),
        "enqueued_at": _text(enqueued),
        "started_at": _text(first.started_at if first else None),
        "finished_at": _text(last.finished_at if last else None),
        "lag_seconds": None if lag is None else lag.total_seconds(),
        "attempt": run.attempt,
        "round": run.round,
        "not_before": _text(run.not_before),
        "cancel_requested": run.cancel_requested,
        "authorised_version": run.authorised_version,
        **_held(run),
        "reason": run.reason,
        "last_error": run.last_error,
        "attempts": [_attempt(attempt) for attempt in run.attempts],
    }


def _held(run: Run) -> dict[str, Any]:
    """Give which gate held it, only of those that one did: nearly none."""
    if run.held_until is None:
        return {}
    return {"held_by": run.held_by, "held_until": text_of(run.held_until)}


def _attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "round": attempt.round,
        "started_at": text_of(attempt.started_at),
        "finished_at": _text(attempt.finished_at),
        "result": attempt.result,
    }


def _clock_change(change: ClockChange) -> dict[str, Any]:
    return {
        "kind": change.kind.value,
        "instant": text_of(change.instant),
        "offset_before": _offset(change.offset_before),
        "offset_after": _offset(change.offset_after),
        "first": change.first.isoformat(),
        "last": change.last.isoformat(),
        "count": change.count,
        "fires": [text_of(fire) for fire in change.fires],
        "text": change.sentence,
    }


def _offset(offset: timedelta) -> str:
    """Give an offset from UTC as local times end in it: `+05:30`."""
    return time(tzinfo=timezone(offset)).isoformat("hours").removeprefix("00")


def _fire_time(fire: datetime, time_zone: str) -> dict[str, str]:
    local = fire.astimezone(ZoneInfo(time_zone))
    return {"utc": text_of(fire), "local": local.isoformat(timespec="seconds")}


def _next_fire(fire: datetime | None, time_zone: str) -> dict[str, str] | None:
    return None if fire is None else _fire_time(fire, time_zone)


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else text_of(instant)
