"""Routes that take and give a tenant's schedules as NDJSON: one body of a create in each line."""

import json
from datetime import timedelta
from typing import Annotated, Any, Literal

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import ValidationError

from functions.api.answers import answer
from functions.api.desk import author_of, check_query, desk_of, new_router
from functions.api.models import ImportBody, definition_document
from functions.api.problems import InvalidLine, error_entry, of_conflict, of_rejected
from functions.api.requests import Malformed, json_object, unpacked_body
from functions.api.schedules import SCHEDULES, DryRun
from puntual.application.export_schedules import EXPORT_LIMIT_MAX
from puntual.application.import_schedule import AnotherDefinition, Imported, Mode
from puntual.application.import_schedules import (
    CONTENT_BYTES_MAX,
    IMPORT_SECONDS_MAX,
    Asked,
    ImportOrder,
    LineResult,
)
from puntual.domain.errors import Conflict, Rejected
from puntual.domain.labels import label_filters_of
from puntual.domain.schedule import ScheduleState, ScheduleVersion
from puntual.domain.tenant import schedule_id_of, tenant_id_of

IMPORT = f"{SCHEDULES}/import"
EXPORT = f"{SCHEDULES}/export"

NDJSON = "application/x-ndjson"
NEXT_PAGE_TOKEN = "Next-Page-Token"  # noqa: S105 a header's name

LAST_LINES_SECONDS = 6
"""Kept free for the lines that are begun when the time is up, with their repetitions."""

NAMED_LENGTH_MAX = 64

router = new_router()


@router.post(IMPORT)
def import_lines(
    tenant: str,
    mode: Annotated[Literal["create", "upsert"], Query()] = "create",
    dry_run: DryRun = "false",
    time_limit_seconds: Annotated[int, Query(ge=1, le=IMPORT_SECONDS_MAX)] = IMPORT_SECONDS_MAX,
    resume: Annotated[str | None, Query()] = None,
) -> Response[str]:
    check_query(router, "mode", "dry_run", "time_limit_seconds", "resume")
    order = ImportOrder(
        mode=Mode(mode),
        dry_run=dry_run == "true",
        author=author_of(router),
        within=min(timedelta(seconds=time_limit_seconds), _time_left()),
    )
    imported = desk_of(router).plane.import_schedules(
        tenant_id_of(tenant),
        unpacked_body(router, bytes_max=CONTENT_BYTES_MAX),
        order,
        read=_asked,
        weigh=_weight,
        resume=resume,
    )
    return answer(
        {
            "mode": mode,
            "dry_run": order.dry_run,
            "results": [_result(result) for result in imported.results],
            "stopped": imported.stopped,
            "resume": imported.resume,
        }
    )


@router.get(EXPORT)
def export_lines(
    tenant: str,
    prefix: Annotated[str, Query()] = "",
    state: Annotated[ScheduleState | None, Query()] = None,
    label: Annotated[list[str] | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=EXPORT_LIMIT_MAX)] = EXPORT_LIMIT_MAX,
    page_token: Annotated[str | None, Query()] = None,
) -> Response[str]:
    check_query(router, "prefix", "state", "label", "limit", "page_token")
    exported = desk_of(router).plane.export_schedules(
        tenant_id_of(tenant),
        prefix=prefix,
        state=state,
        labels=label_filters_of(label or ()),
        limit=limit,
        token=page_token,
        write=_line,
        weigh=_escaped_bytes,
    )
    token = exported.page_token
    return Response(
        status_code=200,
        content_type=NDJSON,
        body="".join(exported.lines),
        headers={} if token is None else {NEXT_PAGE_TOKEN: token},
    )


def _time_left() -> timedelta:
    """Give how long lines may be begun, since the function ends when its time is up."""
    left = router.lambda_context.get_remaining_time_in_millis()
    return timedelta(milliseconds=left) - timedelta(seconds=LAST_LINES_SECONDS)


def _asked(content: bytes) -> Asked:
    try:
        document = json_object(content.decode())
    except UnicodeDecodeError as error:
        raise Rejected("line", "bytes that are not UTF-8", Malformed.ALLOWED) from error
    except Malformed as error:
        raise Rejected("line", error.value, error.allowed) from error
    try:
        body = ImportBody.model_validate(document)
    except ValidationError as error:
        raise InvalidLine(error.errors(include_url=False)) from error
    return Asked(schedule=schedule_id_of(body.id), definition=body.definition())


def _result(result: LineResult) -> dict[str, Any]:
    named = None if result.named is None else result.named[:NAMED_LENGTH_MAX]
    line = {"line": result.line, "id": named}
    match result.outcome:
        case Imported(result=became, version=version):
            return {**line, "result": became.value, "version": version}
        case AnotherDefinition() as error:
            taken = Rejected("id", error.key.schedule, "an id of this definition, or mode=upsert")
            problem = of_conflict(error)
            return {**line, **_refused(problem.status, problem.detail, [error_entry(taken)])}
        case Conflict() as error:
            problem = of_conflict(error)
        case Rejected() as error:
            problem = of_rejected(error)
    return {**line, **_refused(problem.status, problem.detail, list(problem.errors))}


def _refused(status: int, detail: str, errors: list[Any]) -> dict[str, Any]:
    return {"result": "refused", "status": int(status), "detail": detail, "errors": errors}


def _weight(result: LineResult) -> int:
    return _escaped_bytes(json.dumps(_result(result)))


def _line(version: ScheduleVersion) -> str:
    document = {"id": version.schedule, **definition_document(version)}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n"


def _escaped_bytes(text: str) -> int:
    """Give what a text takes at most within the JSON that the function answers."""
    return len(json.dumps(text))
