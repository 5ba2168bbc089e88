"""Problem details (RFC 9457) for every error, naming field, value and what is allowed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import Response

from functions.api.models import FIELD_LENGTH_MAX, TARGET_TYPES, shown
from puntual.application.forecast_fires import ForecastTooSoon
from puntual.application.import_schedules import FileTooLarge
from puntual.domain.definition import PayloadTooLarge
from puntual.domain.errors import Conflict, Rejected, Unavailable
from puntual.domain.occurrence import UnknownOccurrence
from puntual.domain.principal import CallerNotRegistered
from puntual.domain.request import IdempotencyKeyReused
from puntual.domain.schedule import DuplicateSchedule, StaleVersion, UnknownSchedule
from puntual.domain.tenant import ScheduleQuotaReached, UnknownTenant

PROBLEM_JSON = "application/problem+json"
RETRY_AFTER_SECONDS = 1
ERRORS_SHOWN_MAX = 20
LINE_ERRORS_SHOWN_MAX = 5
"""Of one line of an import, whose answer tells of many."""

STATUS_OF_REJECTED: Mapping[type[Rejected], HTTPStatus] = {
    UnknownTenant: HTTPStatus.NOT_FOUND,
    UnknownSchedule: HTTPStatus.NOT_FOUND,
    UnknownOccurrence: HTTPStatus.NOT_FOUND,
    CallerNotRegistered: HTTPStatus.FORBIDDEN,
    # 403, not 429: waiting alone does not help.
    ScheduleQuotaReached: HTTPStatus.FORBIDDEN,
    PayloadTooLarge: HTTPStatus.CONTENT_TOO_LARGE,
    FileTooLarge: HTTPStatus.CONTENT_TOO_LARGE,
    IdempotencyKeyReused: HTTPStatus.UNPROCESSABLE_CONTENT,
}


class PreconditionMissing(Rejected):
    """The change must say which version it is based on."""

    def __init__(self) -> None:
        super().__init__("If-Match", None, 'the ETag of the version that was read, such as "3"')


class InvalidLine(Rejected):
    """A line is none that a create takes; `found` is what pydantic found."""

    def __init__(self, found: Sequence[Mapping[str, Any]]) -> None:
        first = _rejected(found[0])
        super().__init__(first.field, first.value, first.allowed)
        self.found = found[:LINE_ERRORS_SHOWN_MAX]


class RequestInProgress(Conflict):
    """The same request is being worked on, or its worker died and its time is not over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    status: HTTPStatus
    detail: str
    errors: Sequence[Mapping[str, object]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    def response(self) -> Response[str]:
        document: dict[str, Any] = {
            "type": "about:blank",
            "title": self.status.phrase,
            "status": self.status.value,
            "detail": self.detail,
        }
        if self.errors:
            document["errors"] = list(self.errors)
        return Response(
            status_code=self.status.value,
            content_type=PROBLEM_JSON,
            body=json.dumps(document, separators=(",", ":")),
            headers=dict(self.headers),
        )


def error_entry(error: Rejected) -> dict[str, object]:
    return {"field": error.field, "value": error.value, "allowed": error.allowed}


def of_rejected(error: Rejected) -> Problem:
    if isinstance(error, InvalidLine):
        return of_invalid(error.found)
    if isinstance(error, PreconditionMissing):
        status = HTTPStatus.PRECONDITION_REQUIRED
    else:
        status = STATUS_OF_REJECTED.get(type(error), HTTPStatus.BAD_REQUEST)
    return Problem(status=status, detail=str(error), errors=[error_entry(error)])


def of_conflict(error: Conflict) -> Problem:
    if isinstance(error, StaleVersion):
        current = f'"{error.current}"'
        stale = Rejected("If-Match", f'"{error.seen}"', f"the current ETag, {current}")
        return Problem(
            status=HTTPStatus.PRECONDITION_FAILED,
            detail=str(error),
            errors=[error_entry(stale)],
            headers={"ETag": current},
        )
    if isinstance(error, DuplicateSchedule):
        taken = Rejected("id", error.key.schedule, "an id that the tenant has not used yet")
        return Problem(status=HTTPStatus.CONFLICT, detail=str(error), errors=[error_entry(taken)])
    headers = {}
    if isinstance(error, RequestInProgress):
        headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return Problem(status=HTTPStatus.CONFLICT, detail=str(error), headers=headers)


def of_unavailable(error: Unavailable) -> Problem:
    if isinstance(error, ForecastTooSoon):
        seconds = int(error.again_after.total_seconds())
        return Problem(
            status=HTTPStatus.TOO_MANY_REQUESTS,
            detail=f"A tenant may ask for a forecast once in {seconds} seconds; repeat it then.",
            headers={"Retry-After": str(seconds)},
        )
    return Problem(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        detail="Nothing is wrong with the request; repeat it.",
        headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
    )


def of_unexpected() -> Problem:
    return Problem(
        status=HTTPStatus.INTERNAL_SERVER_ERROR,
        detail="An unexpected failure; it has been logged.",
    )


def of_invalid(errors: Sequence[Mapping[str, Any]]) -> Problem:
    """Map what pydantic found; one entry for each field."""
    refused = [_rejected(error) for error in errors[:ERRORS_SHOWN_MAX]]
    return Problem(
        status=HTTPStatus.BAD_REQUEST,
        detail="; ".join(str(error) for error in refused),
        errors=[error_entry(error) for error in refused],
    )


def _rejected(error: Mapping[str, Any]) -> Rejected:
    return Rejected(_field(error), _shown(error), _allowed(error))


def _field(error: Mapping[str, Any]) -> str:
    """Give the path of a field as its caller wrote it, without pydantic's own steps."""
    steps = [str(step) for step in error["loc"]]
    if steps and steps[0] in {"body", "query", "path", "header"} and len(steps) > 1:
        steps = steps[1:]
    if len(steps) > 1 and steps[0] == "target" and steps[1] in TARGET_TYPES:
        del steps[1]
    if error["type"] in {"union_tag_invalid", "union_tag_not_found"}:
        steps.append("type")
    return ".".join(steps)[:FIELD_LENGTH_MAX]


def _shown(error: Mapping[str, Any]) -> object:
    """Give the refused value if it is small and no part of a payload."""
    value = error.get("input")
    if error["type"] in {"missing", "union_tag_not_found"}:
        return None
    if error["type"] == "union_tag_invalid":
        return error.get("ctx", {}).get("tag")
    if "payload" in error["loc"]:
        return "(not shown)"
    return shown(value)


_ONE_OF_THE_TYPES = f"one of {', '.join(TARGET_TYPES)}"

ALLOWED_OF: Mapping[str, str] = {
    "missing": "a value",
    "union_tag_invalid": _ONE_OF_THE_TYPES,
    "union_tag_not_found": _ONE_OF_THE_TYPES,
    "literal_error": "{expected}",
    "enum": "{expected}",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "text",
    "bool_type": "true or false",
    "too_short": "at least {min_length} of them",
    "too_long": "at most {max_length} of them",
    "list_type": "an array",
    "dict_type": "a JSON object",
    "model_type": "a JSON object",
    "model_attributes_type": "a JSON object",
    "value_error": "{error}",
}


def _allowed(error: Mapping[str, Any]) -> str:
    if error["type"] == "missing" and tuple(error["loc"]) == ("body",):
        return "a JSON object"
    wording = ALLOWED_OF.get(error["type"], "")
    return wording.format_map(error.get("ctx") or {}) or str(error["msg"])
