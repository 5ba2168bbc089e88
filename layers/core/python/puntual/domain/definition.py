"""What a caller says about a schedule, and the version that it makes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from puntual.domain.errors import Rejected
from puntual.domain.expression import Fold, Gap, Rule, rule_of
from puntual.domain.instant import MILLISECOND, SECOND
from puntual.domain.labels import labels_of
from puntual.domain.occurrence import Occurrence
from puntual.domain.policies import WINDOW_MAX, Policies, RunsBound
from puntual.domain.schedule import (
    PAYLOAD_BYTES_MAX,
    PAYLOAD_DEPTH_MAX,
    ScheduleKey,
    ScheduleState,
    ScheduleVersion,
    settled,
)
from puntual.domain.smallest_interval import smallest_interval
from puntual.domain.target import (
    TIMEOUT_DEFAULT,
    Service,
    Target,
    aws_target_of,
    payload_bytes_max_of,
    webhook_target_of,
)
from puntual.domain.template import longest_values_of, rendered
from puntual.domain.tenant import Quotas, ScheduleId, Tenant, TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookDefinition:
    url: str
    timeout: timedelta = TIMEOUT_DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsDefinition:
    service: Service
    arn: str
    role_arn: str | None = None
    source: str = ""
    detail_type: str = ""


TargetDefinition = WebhookDefinition | AwsDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDefinition:
    """Of the right types; nothing else is checked yet."""

    expression: str
    time_zone: str = "UTC"
    gap: Gap = Gap.SKIP
    fold: Fold = Fold.AUTO
    start_at: datetime | None = None
    end_at: datetime | None = None
    max_runs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition(RuleDefinition):
    """Of the right types and within the bounds of numbers; nothing else is checked yet.

    `payload` is any value that JSON can hold.
    """

    policies: Policies = field(default_factory=Policies)
    target: TargetDefinition
    payload: object = field(default=None, repr=False)
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """An environment: its name, what it allows in definitions, the zone rules it computes with."""

    environment: str
    tzdata: str
    plain_http: bool
    delivery_timeout_max: timedelta


class NestedTooDeeply(Rejected):
    """A value, shown to nobody, has too many arrays and objects within one another."""

    def __init__(self, field: str) -> None:
        super().__init__(field, "(not shown)", f"JSON nested at most {PAYLOAD_DEPTH_MAX} deep")


class IntervalTooSmall(Rejected):
    """Two fires of the rule lie nearer to each other than the tenant's quota allows."""

    def __init__(self, expression: str, interval: timedelta, *, least: timedelta) -> None:
        super().__init__(
            "expression",
            expression,
            f"fires at least {least // SECOND} s apart (the quota smallest_interval_seconds of the"
            f" tenant); two of these lie {interval // SECOND} s apart",
        )
        self.interval, self.least = interval, least


class PayloadTooLarge(Rejected):
    """The payload is beyond what a schedule can hold, or what its target takes."""

    def __init__(self, size: int, *, rendered_max: int | None = None) -> None:
        allowed = f"at most {PAYLOAD_BYTES_MAX} bytes as compact JSON"
        if rendered_max is not None:
            allowed = f"at most {rendered_max} bytes for this target, placeholders replaced"
        super().__init__("payload", f"{size} bytes", allowed)
        self.size = size


def version_of(
    definition: Definition,
    *,
    key: ScheduleKey,
    tenant: Tenant,
    limits: Limits,
    effective_from: datetime,
    author: str,
    previous: ScheduleVersion | None = None,
    request: str = "",
) -> ScheduleVersion:
    """Check a definition and give version 1 of it, or what to pass to `edited`.

    Raises `Rejected` for the first thing wrong with it. A rule that an edit leaves as it was is
    not checked again, since it may have no fire left, or a quota that is newer; its anchor stays,
    so that a fixed rate keeps its pace.
    """
    rule = _rule(definition, key=key, effective_from=effective_from, previous=previous)
    if previous is None or rule != previous.rule:
        check_interval(rule, tenant.quotas)
    policies = replace(_policies(definition.policies, rule), runs=_runs_of(definition))
    target, payload = target_of(definition.target, tenant=tenant, limits=limits), definition.payload
    occurrence = Occurrence(
        tenant=key.tenant, schedule=key.schedule, version=1, scheduled_for=effective_from
    )
    version = ScheduleVersion(
        tenant=key.tenant,
        schedule=key.schedule,
        version=1,
        state=ScheduleState.ACTIVE,
        rule=rule,
        policies=policies,
        target=target,
        payload=checked_payload(payload, target=target, occurrence=occurrence),
        labels=labels_of(definition.labels),
        effective_from=effective_from,
        author=author,
        tzdata=limits.tzdata,
        request=request,
    )
    return settled(version)


def new_rule_of(
    definition: RuleDefinition,
    *,
    tenant: TenantId,
    schedule: ScheduleId | None,
    effective_from: datetime,
) -> Rule:
    """Check the rule of a schedule to be created; raises `Rejected`.

    Without a schedule's id there is nothing that H could stand for, and it is refused.
    """
    rule = _unbounded_rule_of(
        definition, tenant=tenant, schedule=schedule, effective_from=effective_from
    )
    return _bounded(rule, definition, effective_from)


def _unbounded_rule_of(
    definition: RuleDefinition,
    *,
    tenant: TenantId,
    schedule: ScheduleId | None,
    effective_from: datetime,
) -> Rule:
    return rule_of(
        definition.expression,
        time_zone=definition.time_zone,
        gap=definition.gap,
        fold=definition.fold,
        anchor=(definition.start_at or effective_from).replace(microsecond=0),
        now=effective_from,
        start_at=definition.start_at,
        end_at=definition.end_at,
        hash_key="" if schedule is None else f"{tenant}/{schedule}",
    )


def _bounded(rule: Rule, definition: RuleDefinition, effective_from: datetime) -> Rule:
    """End a rule with its fire number `max_runs`, from a version's start on; raises `Rejected`.

    It keeps its own end where that comes before.
    """
    runs = definition.max_runs
    if runs is None:
        return rule
    if rule.is_one_off:
        raise Rejected("max_runs", runs, "nothing for at(...), which runs once")
    fire: datetime | None = effective_from - MILLISECOND
    for _ in range(runs):
        assert fire is not None
        fire = rule.next_fire(fire)
        if fire is None:
            return rule
    return replace(rule, end_at=fire)


def _runs_of(definition: Definition) -> RunsBound | None:
    if definition.max_runs is None:
        return None
    return RunsBound(max_runs=definition.max_runs, end_at=definition.end_at)


def _rule(
    definition: Definition,
    *,
    key: ScheduleKey,
    effective_from: datetime,
    previous: ScheduleVersion | None,
) -> Rule:
    kept = previous.rule if previous is not None else None
    if previous is not None and _says_the_same(definition, previous):
        return previous.rule
    rule = _unbounded_rule_of(
        definition, tenant=key.tenant, schedule=key.schedule, effective_from=effective_from
    )
    if kept is not None and rule.expression == kept.expression and rule.start_at == kept.start_at:
        rule = replace(rule, anchor=kept.anchor)
    return _bounded(rule, definition, effective_from)


def _says_the_same(definition: Definition, version: ScheduleVersion) -> bool:
    rule, runs = version.rule, version.policies.runs
    said = (
        definition.expression,
        definition.time_zone,
        definition.gap,
        definition.fold,
        definition.start_at,
        definition.end_at,
        definition.max_runs,
    )
    held = (
        rule.expression,
        rule.time_zone,
        rule.gap,
        rule.fold,
        rule.start_at,
        version.asked_end_at,
        None if runs is None else runs.max_runs,
    )
    return said == held


def _policies(policies: Policies, rule: Rule) -> Policies:
    misfire, retry = policies.misfire, policies.retry
    if retry.cap < retry.base:
        raise Rejected(
            "retry.cap_seconds", int(retry.cap.total_seconds()), "not below retry.base_seconds"
        )
    if misfire.max_lateness is not None and misfire.max_lateness < misfire.after:
        raise Rejected(
            "misfire.max_lateness_seconds",
            int(misfire.max_lateness.total_seconds()),
            "not below misfire.misfire_after_seconds",
        )
    completion = policies.completion
    if completion.max_duration < completion.heartbeat:
        raise Rejected(
            "completion.max_duration_seconds",
            int(completion.max_duration.total_seconds()),
            "not below completion.heartbeat_seconds",
        )
    check_window(policies.window, rule)
    return policies


def check_interval(rule: Rule, quotas: Quotas) -> None:
    """Refuse a rule two fires of which lie nearer than the tenant's quota allows, anywhere."""
    interval = smallest_interval(rule)
    if interval is not None and interval < quotas.smallest_interval:
        raise IntervalTooSmall(rule.expression, interval, least=quotas.smallest_interval)


def check_window(window: timedelta, rule: Rule) -> None:
    """Refuse a window that is longer than two fires lie apart; raises `Rejected`."""
    interval = smallest_interval(rule)
    most, why = WINDOW_MAX, ""
    if interval is not None and interval < WINDOW_MAX:
        most, why = interval, f", the smallest interval of {rule.expression}"
    if window > most:
        seconds = int(window.total_seconds())
        allowed = f"0 to {int(most.total_seconds())}{why}"
        raise Rejected("flexible_window_seconds", seconds, allowed)


def target_of(target: TargetDefinition, *, tenant: Tenant, limits: Limits) -> Target:
    """Check a target against the environment and the registration; raises `Rejected`."""
    match target:
        case WebhookDefinition():
            if target.timeout > limits.delivery_timeout_max:
                raise Rejected(
                    "target.timeout_seconds",
                    int(target.timeout.total_seconds()),
                    f"at most {int(limits.delivery_timeout_max.total_seconds())}",
                )
            return webhook_target_of(
                target.url, timeout=target.timeout, plain_http=limits.plain_http
            )
        case AwsDefinition():
            return aws_target_of(
                target.service,
                target.arn,
                tenant=tenant,
                role_arn=target.role_arn,
                source=target.source,
                detail_type=target.detail_type,
            )


def checked_payload(payload: object, *, target: Target, occurrence: Occurrence) -> str:
    """Give a payload's text, which its target takes for every occurrence; raises `Rejected`."""
    text = payload_text(payload)
    size = len(rendered(text, longest_values_of(occurrence)).encode())
    if size > payload_bytes_max_of(target):
        raise PayloadTooLarge(size, rendered_max=payload_bytes_max_of(target))
    return text


def payload_text(payload: object) -> str:
    """Give a payload as compact JSON text; raises `Rejected`."""
    check_depth("payload", payload)
    allowed = "any JSON value, of finite numbers and whole characters"
    try:
        text = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size = len(text.encode())
    except ValueError as error:
        raise Rejected("payload", "(not shown)", allowed) from error
    if size > PAYLOAD_BYTES_MAX:
        raise PayloadTooLarge(size)
    return text


def check_depth(field: str, value: object) -> None:
    """Refuse what nests deeper than a payload may, without recursion; raises `NestedTooDeeply`."""
    containers = [value] if isinstance(value, dict | list) else []
    for _ in range(PAYLOAD_DEPTH_MAX):
        containers = [
            inner
            for outer in containers
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    if containers:
        raise NestedTooDeeply(field)
