"""API Gateway's event in, one use case, its answer or a problem out."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError
from pydantic import ValidationError

from functions.api import (
    admin,
    bulk,
    dead_letters,
    occurrences,
    previews,
    runs,
    schedules,
    targets,
    tenants,
)
from functions.api.admin import ADMIN_TENANT, ADMIN_TENANTS
from functions.api.bulk import EXPORT, IMPORT
from functions.api.dead_letters import DEAD_LETTERS, REPLAY, REPLAY_MANY
from functions.api.desk import Desk, caller_in
from functions.api.guard import admit
from functions.api.occurrences import OCCURRENCE, OCCURRENCES
from functions.api.previews import CATCH_UP_PREVIEW, PREVIEW, SCHEDULE_PREVIEW
from functions.api.problems import (
    Problem,
    of_conflict,
    of_invalid,
    of_rejected,
    of_unavailable,
    of_unexpected,
)
from functions.api.requests import Malformed, json_object
from functions.api.runs import BACKFILL, TRIGGER
from functions.api.schedules import SCHEDULE, SCHEDULES
from functions.api.targets import KEYS, TRY
from functions.api.tenants import FORECAST, TENANT, USAGE
from puntual import bootstrap
from puntual.application.forecast_fires import ForecastTooSoon
from puntual.domain.errors import Conflict, Rejected, Unavailable

METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
METHODS_OF: Mapping[str, frozenset[str]] = {
    ADMIN_TENANTS: frozenset({"GET"}),
    ADMIN_TENANT: frozenset({"GET", "PUT"}),
    TENANT: frozenset({"GET"}),
    USAGE: frozenset({"GET"}),
    FORECAST: frozenset({"GET"}),
    TRY: frozenset({"POST"}),
    KEYS: frozenset({"GET"}),
    f"{KEYS}/rotate": frozenset({"POST"}),
    SCHEDULES: frozenset({"GET", "POST"}),
    IMPORT: frozenset({"POST"}),
    EXPORT: frozenset({"GET"}),
    SCHEDULE: frozenset({"DELETE", "GET", "PATCH", "PUT"}),
    f"{SCHEDULE}/pause": frozenset({"POST"}),
    f"{SCHEDULE}/resume": frozenset({"POST"}),
    TRIGGER: frozenset({"POST"}),
    BACKFILL: frozenset({"POST"}),
    PREVIEW: frozenset({"POST"}),
    SCHEDULE_PREVIEW: frozenset({"GET"}),
    CATCH_UP_PREVIEW: frozenset({"GET"}),
    OCCURRENCES: frozenset({"GET"}),
    OCCURRENCE: frozenset({"GET"}),
    REPLAY: frozenset({"POST"}),
    DEAD_LETTERS: frozenset({"GET"}),
    REPLAY_MANY: frozenset({"POST"}),
}
CONTENT_TYPE = "content-type"
PLAIN_PATH = re.compile(r"(/[^/\s]+)+")
NOWHERE = "/"

logger = Logger()
app = APIGatewayRestResolver(enable_validation=True, json_body_deserializer=json_object)
for router in (
    admin.router,
    tenants.router,
    targets.router,
    # Before the schedules, whose ids stand in the same place of the path.
    bulk.router,
    schedules.router,
    runs.router,
    previews.router,
    occurrences.router,
    dead_letters.router,
):
    app.include_router(router)


def _refuse_other_methods(path: str, allowed: frozenset[str]) -> None:
    """Answer 405 where a path exists; the resolver by itself knows 404 only."""

    @app.route(path, method=sorted(METHODS - allowed), enable_validation=False)
    def refuse(**_: str) -> Response[str]:
        return Problem(
            status=HTTPStatus.METHOD_NOT_ALLOWED,
            detail=f"This resource takes {', '.join(sorted(allowed))}.",
            headers={"Allow": ", ".join(sorted(allowed))},
        ).response()


for _path, _allowed in METHODS_OF.items():
    _refuse_other_methods(_path, _allowed)


def rejected(error: Rejected) -> Response[str]:
    return of_rejected(error).response()


def conflict(error: Conflict) -> Response[str]:
    return of_conflict(error).response()


def too_soon(error: ForecastTooSoon) -> Response[str]:
    return of_unavailable(error).response()


def unavailable(error: Unavailable) -> Response[str]:
    logger.warning("unavailable", why=str(error))
    return of_unavailable(error).response()


def invalid(error: RequestValidationError) -> Response[str]:
    return of_invalid(error.errors()).response()


def invalid_once_merged(error: ValidationError) -> Response[str]:
    return of_invalid(error.errors(include_url=False)).response()


def not_text(_: UnicodeDecodeError) -> Response[str]:
    return of_rejected(Malformed("bytes that are not UTF-8")).response()


def no_route(_: NotFoundError) -> Response[str]:
    return Problem(
        status=HTTPStatus.NOT_FOUND, detail="There is no such resource; see docs/api.md."
    ).response()


def unexpected(error: Exception) -> Response[str]:
    logger.error("unexpected failure", exc_info=error)
    return of_unexpected().response()


PROBLEMS: Sequence[tuple[type[Exception], Callable[..., Response[str]]]] = (
    (Rejected, rejected),
    (Conflict, conflict),
    (ForecastTooSoon, too_soon),
    (Unavailable, unavailable),
    (RequestValidationError, invalid),
    (ValidationError, invalid_once_merged),
    (UnicodeDecodeError, not_text),
    (NotFoundError, no_route),
    (Exception, unexpected),
)
for _error, _answered in PROBLEMS:
    app.exception_handler(_error)(_answered)


def respond(event: Mapping[str, Any], context: Any, desk: Desk) -> dict[str, Any]:
    """Answer one request; one line of log for it, without bodies and headers."""
    app.context.update(desk=desk)
    request = _as_resolved(event)
    answer = _turned_away(request, desk) or app.resolve(request, context)
    logger.info(
        "answered",
        method=event["httpMethod"],
        path=event["path"],
        status=answer["statusCode"],
        caller=caller_in(event),
    )
    return answer


def _turned_away(request: Mapping[str, Any], desk: Desk) -> dict[str, Any] | None:
    """Answer who may not call for the tenant of the path; None lets the request in."""
    try:
        admit(request, desk)
    except Exception as error:  # noqa: BLE001 the resolver answers all others, and is yet to come
        problem = next(answered for kind, answered in PROBLEMS if isinstance(error, kind))(error)
        return {
            "statusCode": problem.status_code,
            "multiValueHeaders": {name: [text] for name, text in problem.headers.items()},
            "body": problem.body,
            "isBase64Encoded": False,
        }
    return None


def _as_resolved(event: Mapping[str, Any]) -> dict[str, Any]:
    """Have every body read as JSON, whatever type it claims, and only plain paths found.

    Clients such as curl call all they send a form, and the resolver would read it as one; a merge
    patch has a type of its own, which the resolver would refuse. The resolver overlooks slashes at
    the end, but IAM does not: who may call all that lies below a tenant may not call the tenant.
    """
    stripped = dict(event)
    if not PLAIN_PATH.fullmatch(event["path"]):
        stripped["path"] = NOWHERE
    for name in ("headers", "multiValueHeaders"):
        headers = event.get(name) or {}
        stripped[name] = {key: headers[key] for key in headers if key.lower() != CONTENT_TYPE}
    return stripped


@cache
def _desk() -> Desk:
    return Desk(plane=bootstrap.control_plane(), idempotency=bootstrap.idempotency_store())


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return respond(event, context, _desk())
