"""The bodies that requests may carry, and the definitions that they stand for."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal, TypedDict

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from puntual.application.backfill_schedule import Range
from puntual.domain.backfill import BACKFILL_DEFAULT, BACKFILL_MAX
from puntual.domain.definition import (
    AwsDefinition,
    Definition,
    RuleDefinition,
    TargetDefinition,
    WebhookDefinition,
)
from puntual.domain.errors import Rejected
from puntual.domain.expression import Fold, Gap
from puntual.domain.instant import DAY_SECONDS, SECOND, text_of, truncated_to_millisecond
from puntual.domain.policies import (
    ATTEMPTS_MAX,
    CATCH_UP_LIMIT_DEFAULT,
    CATCH_UP_LIMIT_MAX,
    HEARTBEAT_DEFAULT,
    HEARTBEAT_MAX,
    HEARTBEAT_MIN,
    MAX_DURATION_DEFAULT,
    MAX_DURATION_MAX,
    MAX_DURATION_MIN,
    RUNS_MAX,
    Completion,
    CompletionPolicy,
    Misfire,
    MisfirePolicy,
    Overlap,
    Policies,
    RetryPolicy,
)
from puntual.domain.preview import PREVIEW_FIRES_DEFAULT, PREVIEW_FIRES_MAX
from puntual.domain.replay import REPLAYS_MAX
from puntual.domain.schedule import ScheduleVersion
from puntual.domain.target import (
    DETAIL_TYPE_DEFAULT,
    FACTS,
    SOURCE_DEFAULT,
    AwsTarget,
    Service,
    Target,
    WebhookTarget,
)
from puntual.domain.target_limit import TargetLimit
from puntual.domain.tenant import DEFAULT_QUOTAS, Quotas

INSTANT_ALLOWED = "an RFC 3339 instant with its offset from UTC, such as 2026-11-30T09:00:00Z"
MAX_LATENESS_SECONDS = 15 * DAY_SECONDS
RETRY_DEADLINE_SECONDS_MAX = 15 * DAY_SECONDS
TIMEOUT_SECONDS_MAX = 840
FIELD_LENGTH_MAX = 200

_RFC_3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def instant_in(text: object) -> datetime:
    """Read an instant that a caller wrote; raises ValueError that says what is allowed."""
    try:
        if isinstance(text, str) and _RFC_3339.fullmatch(text):
            return truncated_to_millisecond(datetime.fromisoformat(text).astimezone(UTC))
    except (ValueError, OverflowError) as error:
        raise ValueError(INSTANT_ALLOWED) from error
    raise ValueError(INSTANT_ALLOWED)


def query_instant(field: str, text: str | None) -> datetime | None:
    """Read an instant of the query; raises `Rejected`."""
    if text is None:
        return None
    try:
        return instant_in(text)
    except ValueError as error:
        raise Rejected(field, text, f"{INSTANT_ALLOWED}, its + written %2B") from error


def shown(value: object) -> object:
    """Give what a problem may repeat of a refused value."""
    if isinstance(value, str | int | float | bool | None):
        return value
    return "an array" if isinstance(value, list) else "an object"


Instant = Annotated[datetime, BeforeValidator(instant_in)]


class Body(BaseModel):
    # Strict: a number in quotes is a mistake, not a number.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    within: ClassVar[str] = ""
    """Where in a request this stands, for messages about it."""

    @model_validator(mode="before")
    @classmethod
    def refuse_unknown_fields(cls, value: Any) -> Any:
        """Name what is allowed, which pydantic's own refusal does not."""
        known = [field.alias or name for name, field in cls.model_fields.items()]
        for name in value if isinstance(value, dict) else ():
            if name not in known:
                allowed = f"only {', '.join(known)}" if known else "nothing"
                raise Rejected(
                    f"{cls.within}{name}"[:FIELD_LENGTH_MAX], shown(value[name]), allowed
                )
        return value


class MisfireBody(Body):
    within = "misfire."
    policy: Literal["skip", "fire_once", "catch_up"] = "fire_once"
    misfire_after_seconds: int = Field(default=60, ge=1, le=DAY_SECONDS)
    max_lateness_seconds: int | None = Field(default=None, ge=1, le=MAX_LATENESS_SECONDS)
    limit: int = Field(default=CATCH_UP_LIMIT_DEFAULT, ge=1, le=CATCH_UP_LIMIT_MAX)


class RetryBody(Body):
    within = "retry."
    max_attempts: int = Field(default=5, ge=1, le=ATTEMPTS_MAX)
    base_seconds: int = Field(default=10, ge=1, le=3600)
    cap_seconds: int = Field(default=1800, ge=1, le=DAY_SECONDS)
    deadline_seconds: int | None = Field(default=None, ge=1, le=RETRY_DEADLINE_SECONDS_MAX)


class CompletionBody(Body):
    within = "completion."
    policy: Literal["response", "callback"] = "response"
    heartbeat_seconds: int = Field(
        default=HEARTBEAT_DEFAULT // SECOND,
        ge=HEARTBEAT_MIN // SECOND,
        le=HEARTBEAT_MAX // SECOND,
    )
    max_duration_seconds: int = Field(
        default=MAX_DURATION_DEFAULT // SECOND,
        ge=MAX_DURATION_MIN // SECOND,
        le=MAX_DURATION_MAX // SECOND,
    )


class WebhookBody(Body):
    within = "target."
    type: Literal["webhook"]
    url: str
    timeout_seconds: int = Field(default=10, ge=1, le=TIMEOUT_SECONDS_MAX)

    def definition(self) -> WebhookDefinition:
        return WebhookDefinition(url=self.url, timeout=timedelta(seconds=self.timeout_seconds))


class AwsBody(Body):
    within = "target."
    type: str
    role_arn: str | None = None

    def definition(self) -> AwsDefinition:
        service = Service(self.type)
        members = self.model_dump()
        return AwsDefinition(
            service=service,
            arn=members[FACTS[service].field],
            role_arn=self.role_arn,
            source=members.get("source", ""),
            detail_type=members.get("detail_type", ""),
        )


class QueueBody(AwsBody):
    type: Literal["sqs"]
    queue_arn: str


class TopicBody(AwsBody):
    type: Literal["sns"]
    topic_arn: str


class BusBody(AwsBody):
    type: Literal["eventbridge"]
    bus_arn: str
    source: str = SOURCE_DEFAULT
    detail_type: str = DETAIL_TYPE_DEFAULT


class FunctionBody(AwsBody):
    type: Literal["lambda"]
    function_arn: str


class StateMachineBody(AwsBody):
    type: Literal["step_functions"]
    state_machine_arn: str


TargetBody = Annotated[
    WebhookBody | QueueBody | TopicBody | BusBody | FunctionBody | StateMachineBody,
    Field(discriminator="type"),
]
TARGET_TYPES = ("webhook", *Service)


class RuleFields(TypedDict):
    """What definitions hold of a rule, under their names for it."""

    expression: str
    time_zone: str
    gap: Gap
    fold: Fold
    start_at: datetime | None
    end_at: datetime | None
    max_runs: int | None


class RuleBody(Body):
    expression: str
    time_zone: str = "UTC"
    gap: Literal["skip", "fire_after"] = "skip"
    fold: Literal["auto", "first", "second", "both"] = "auto"
    start_at: Instant | None = None
    end_at: Instant | None = None
    max_runs: int | None = Field(default=None, ge=1, le=RUNS_MAX)
    flexible_window_seconds: int = Field(default=0, ge=0, le=DAY_SECONDS)

    @property
    def window(self) -> timedelta:
        return timedelta(seconds=self.flexible_window_seconds)

    def rule_fields(self) -> RuleFields:
        return RuleFields(
            expression=self.expression,
            time_zone=self.time_zone,
            gap=Gap(self.gap),
            fold=Fold(self.fold),
            start_at=self.start_at,
            end_at=self.end_at,
            max_runs=self.max_runs,
        )


class PreviewBody(RuleBody):
    id: str | None = None
    after: Instant | None = None
    count: int = Field(default=PREVIEW_FIRES_DEFAULT, ge=1, le=PREVIEW_FIRES_MAX)

    def definition(self) -> RuleDefinition:
        return RuleDefinition(**self.rule_fields())


class DefinitionBody(RuleBody):
    misfire: MisfireBody = Field(default_factory=MisfireBody)
    retry: RetryBody = Field(default_factory=RetryBody)
    overlap: Literal["allow", "skip_if_running", "queue_one", "cancel_running"] = "allow"
    completion: CompletionBody = Field(default_factory=CompletionBody)
    target: TargetBody
    payload: Any = Field(default=None, repr=False)
    labels: dict[str, str] = Field(default_factory=dict)

    def definition(self) -> Definition:
        return Definition(
            **self.rule_fields(),
            policies=Policies(
                misfire=self._misfire(),
                retry=self._retry(),
                window=self.window,
                overlap=Overlap(self.overlap),
                completion=self._completion(),
            ),
            target=self.target.definition(),
            payload=self.payload,
            labels=self.labels,
        )

    def _misfire(self) -> MisfirePolicy:
        lateness = self.misfire.max_lateness_seconds
        return MisfirePolicy(
            policy=Misfire(self.misfire.policy),
            after=timedelta(seconds=self.misfire.misfire_after_seconds),
            max_lateness=None if lateness is None else timedelta(seconds=lateness),
            limit=self.misfire.limit,
        )

    def _retry(self) -> RetryPolicy:
        deadline = self.retry.deadline_seconds
        return RetryPolicy(
            max_attempts=self.retry.max_attempts,
            base=timedelta(seconds=self.retry.base_seconds),
            cap=timedelta(seconds=self.retry.cap_seconds),
            deadline=None if deadline is None else timedelta(seconds=deadline),
        )

    def _completion(self) -> CompletionPolicy:
        return CompletionPolicy(
            policy=Completion(self.completion.policy),
            heartbeat=timedelta(seconds=self.completion.heartbeat_seconds),
            max_duration=timedelta(seconds=self.completion.max_duration_seconds),
        )


class CreateBody(DefinitionBody):
    id: str | None = None

    def canonical(self) -> str:
        """Give the text that two bodies share if and only if they say the same.

        Members may stand in any order, instants in any offset; a default may be written out or
        left out. Defaults are left out of the text, so that a field that a later release adds
        changes nothing for a request that is being repeated.
        """
        asked = self.model_dump(mode="json", exclude_defaults=True, exclude={"payload"})
        # As it was read, since pydantic cannot write all that JSON holds.
        asked["payload"] = self.payload
        return json.dumps(asked, sort_keys=True, separators=(",", ":"))


class ImportBody(CreateBody):
    id: str


class QuotasBody(Body):
    within = "quotas."
    schedules_max: int = DEFAULT_QUOTAS.schedules_max
    fires_per_minute_max: int | None = DEFAULT_QUOTAS.fires_per_minute_max
    running_max: int | None = DEFAULT_QUOTAS.running_max
    catch_ups_per_minute: int = DEFAULT_QUOTAS.catch_ups_per_minute
    retries_per_minute: int = DEFAULT_QUOTAS.retries_per_minute
    smallest_interval_seconds: int = Field(
        default=DEFAULT_QUOTAS.smallest_interval // SECOND, ge=0, le=DAY_SECONDS
    )
    weight: int = DEFAULT_QUOTAS.weight

    def quotas(self) -> Quotas:
        return Quotas(
            schedules_max=self.schedules_max,
            fires_per_minute_max=self.fires_per_minute_max,
            running_max=self.running_max,
            catch_ups_per_minute=self.catch_ups_per_minute,
            retries_per_minute=self.retries_per_minute,
            smallest_interval=timedelta(seconds=self.smallest_interval_seconds),
            weight=self.weight,
        )


class EmptyBody(Body):
    """Nothing can be said but when it is said."""


class BackfillBody(Body):
    start: Instant = Field(alias="from")
    until: Instant
    limit: int = Field(default=BACKFILL_DEFAULT, ge=1, le=BACKFILL_MAX)
    only_missing: bool = True
    dry_run: bool = False

    def range(self) -> Range:
        return Range(
            start=self.start, end=self.until, limit=self.limit, only_missing=self.only_missing
        )

    def canonical(self) -> str:
        """Give the text that two bodies share if and only if they ask for the same."""
        asked = self.model_dump(mode="json", exclude_defaults=True)
        return "backfill " + json.dumps(asked, sort_keys=True, separators=(",", ":"))


class TargetLimitBody(Body):
    within = "target_limits."
    target: str
    per_minute: int | None = None
    running: int | None = None

    def limit(self) -> TargetLimit:
        return TargetLimit(target=self.target, per_minute=self.per_minute, running=self.running)


class TenantBody(Body):
    quotas: QuotasBody = Field(default_factory=QuotasBody)
    targets: list[str] = Field(default_factory=list)
    roles: list[str] = Field(default_factory=list)
    principals: list[str] = Field(default_factory=list)
    target_limits: list[TargetLimitBody] = Field(default_factory=list)


class RotationBody(Body):
    generation: int


class ReplayBody(Body):
    force: bool = False

    def canonical(self) -> str:
        return f"force={self.force}"


class RefBody(Body):
    within = "refs."
    schedule: str
    ref: str


class ReplayManyBody(Body):
    """Either `refs`, or what a list of dead letters is filtered by."""

    refs: list[RefBody] | None = Field(default=None, min_length=1, max_length=REPLAYS_MAX)
    schedule: str | None = None
    since: Instant | None = None
    until: Instant | None = None
    limit: int = Field(default=REPLAYS_MAX, ge=1, le=REPLAYS_MAX)
    resume_token: str | None = None
    dry_run: bool = False

    def refuse_both(self) -> None:
        """Refuse a list that is filtered too; raises `Rejected`."""
        for name in ("schedule", "since", "until", "limit", "resume_token"):
            if self.refs is not None and name in self.model_fields_set:
                raise Rejected(name, "it stands beside refs", "either refs or a filter")


class TryBody(Body):
    target: TargetBody
    payload: Any = Field(default=None, repr=False)

    def definition(self) -> TargetDefinition:
        return self.target.definition()


def definition_document(version: ScheduleVersion) -> dict[str, Any]:
    """Give a version as the body that would make it, every field written out."""
    rule, misfire, retry = version.rule, version.policies.misfire, version.policies.retry
    end_at = version.asked_end_at
    completion = version.policies.completion
    return {
        "expression": rule.expression,
        "time_zone": rule.time_zone,
        "gap": rule.gap.value,
        "fold": rule.fold.value,
        "start_at": None if rule.start_at is None else text_of(rule.start_at),
        "end_at": None if end_at is None else text_of(end_at),
        "max_runs": None if version.policies.runs is None else version.policies.runs.max_runs,
        "flexible_window_seconds": _seconds(version.policies.window),
        "misfire": {
            "policy": misfire.policy.value,
            "misfire_after_seconds": _seconds(misfire.after),
            "max_lateness_seconds": (
                None if misfire.max_lateness is None else _seconds(misfire.max_lateness)
            ),
            "limit": misfire.limit,
        },
        "retry": {
            "max_attempts": retry.max_attempts,
            "base_seconds": _seconds(retry.base),
            "cap_seconds": _seconds(retry.cap),
            "deadline_seconds": None if retry.deadline is None else _seconds(retry.deadline),
        },
        "overlap": version.policies.overlap.value,
        "completion": {
            "policy": completion.policy.value,
            "heartbeat_seconds": _seconds(completion.heartbeat),
            "max_duration_seconds": _seconds(completion.max_duration),
        },
        "target": _target_document(version.target),
        "payload": json.loads(version.payload),
        "labels": dict(version.labels),
    }


def merge_patched(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a JSON merge patch (RFC 7396) to a definition that has every field written out.

    A null for a member that is not there stays, so that the body's own check refuses a name that
    nobody knows; only in payload and labels, where all names are allowed, is it dropped.
    """
    result = dict(document)
    for name, value in patch.items():
        if name == "payload" and name in document:
            result[name] = _merged(document[name], value)
        elif value is None and name in result:
            del result[name]
        elif name == "labels" and name in result:
            result[name] = _merged(result[name], value)
        elif isinstance(value, Mapping) and isinstance(result.get(name), Mapping):
            result[name] = merge_patched(result[name], value)
        else:
            result[name] = value
    return result


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result


def _target_document(target: Target) -> dict[str, Any]:
    match target:
        case WebhookTarget():
            timeout = _seconds(target.timeout)
            return {"type": "webhook", "url": target.url, "timeout_seconds": timeout}
        case AwsTarget():
            document = {
                "type": target.service.value,
                FACTS[target.service].field: target.arn,
                "role_arn": target.role_arn,
            }
            if target.service is Service.EVENTBRIDGE:
                document |= {"source": target.source, "detail_type": target.detail_type}
            return document


def _seconds(duration: timedelta) -> int:
    return int(duration.total_seconds())
