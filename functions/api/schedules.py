"""Routes of schedules."""

from typing import Annotated, Literal

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query

from functions.api.answers import (
    answer,
    canceled_document,
    changed_answer,
    etag_of,
    listed_schedule,
    schedule_answer,
)
from functions.api.create_once import create_once
from functions.api.desk import author_of, check_query, desk_of, key_of, new_router, path_of
from functions.api.models import CreateBody, DefinitionBody, definition_document, merge_patched
from functions.api.requests import (
    Malformed,
    check_no_body,
    request_of,
    required_version,
    seen_version,
)
from puntual.application.show_schedule import ShownSchedule
from puntual.domain.definition import Definition
from puntual.domain.labels import label_filters_of
from puntual.domain.schedule import ScheduleState, ScheduleVersion
from puntual.domain.tenant import schedule_id_of, tenant_id_of

SCHEDULES = "/v1/tenants/<tenant>/schedules"
SCHEDULE = "/v1/tenants/<tenant>/schedules/<schedule>"

DryRun = Annotated[Literal["true", "false"], Query()]

router = new_router()


@router.post(SCHEDULES)
def create(tenant: str, body: Annotated[CreateBody, Body()]) -> Response[str]:
    check_query(router)
    owner = tenant_id_of(tenant)
    schedule = None if body.id is None else schedule_id_of(body.id)
    request = request_of(router, body.canonical())
    desk, author, definition = desk_of(router), author_of(router), body.definition()

    def run() -> ShownSchedule:
        return desk.plane.create_schedule(
            owner, definition, schedule=schedule, author=author, request=request
        )

    shown = create_once(desk, run, tenant=owner, request=request, context=router.lambda_context)
    location = f"{path_of(router)}/{shown.head.schedule}"
    return schedule_answer(shown, status=201, location=location)


@router.get(SCHEDULES)
def listing(
    tenant: str,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    prefix: Annotated[str, Query()] = "",
    state: Annotated[ScheduleState | None, Query()] = None,
    label: Annotated[list[str] | None, Query()] = None,
    page_token: Annotated[str | None, Query()] = None,
) -> Response[str]:
    check_query(router, "limit", "prefix", "state", "label", "page_token")
    listed = desk_of(router).plane.list_schedules(
        tenant_id_of(tenant),
        prefix=prefix,
        state=state,
        limit=limit,
        token=page_token,
        labels=label_filters_of(label or ()),
    )
    return answer(
        {
            "schedules": [listed_schedule(head, listed.as_of) for head in listed.schedules],
            "next_page_token": listed.page_token,
        }
    )


@router.get(SCHEDULE)
def show(tenant: str, schedule: str) -> Response[str]:
    check_query(router)
    return schedule_answer(desk_of(router).plane.show_schedule(key_of(tenant, schedule)))


@router.put(SCHEDULE)
def replace(
    tenant: str,
    schedule: str,
    body: Annotated[DefinitionBody, Body()],
    dry_run: DryRun = "false",
) -> Response[str]:
    check_query(router, "dry_run")
    definition = body.definition()
    return changed_answer(
        desk_of(router).plane.change_schedule(
            key_of(tenant, schedule),
            seen=required_version(router),
            revise=lambda _: definition,
            author=author_of(router),
            dry_run=dry_run == "true",
        )
    )


@router.patch(SCHEDULE)
def patch(tenant: str, schedule: str, dry_run: DryRun = "false") -> Response[str]:
    """Take a JSON merge patch: what it makes of the version is checked, not what it is."""
    check_query(router, "dry_run")
    key, seen = key_of(tenant, schedule), required_version(router)
    changes = router.current_event.json_body
    if changes is None:
        raise Malformed("no body")

    def revise(version: ScheduleVersion) -> Definition:
        document = merge_patched(definition_document(version), changes)
        return DefinitionBody.model_validate(document).definition()

    changed = desk_of(router).plane.change_schedule(
        key, seen=seen, revise=revise, author=author_of(router), dry_run=dry_run == "true"
    )
    return changed_answer(changed)


@router.post(f"{SCHEDULE}/pause")
def pause(tenant: str, schedule: str) -> Response[str]:
    check_query(router)
    check_no_body(router)
    return schedule_answer(
        desk_of(router).plane.pause_schedule(
            key_of(tenant, schedule), author=author_of(router), seen=seen_version(router)
        )
    )


@router.post(f"{SCHEDULE}/resume")
def resume(tenant: str, schedule: str) -> Response[str]:
    check_query(router)
    check_no_body(router)
    return schedule_answer(
        desk_of(router).plane.resume_schedule(
            key_of(tenant, schedule), author=author_of(router), seen=seen_version(router)
        )
    )


@router.delete(SCHEDULE)
def cancel(tenant: str, schedule: str) -> Response[str]:
    check_query(router)
    canceled = desk_of(router).plane.cancel_schedule(
        key_of(tenant, schedule), author=author_of(router), seen=seen_version(router)
    )
    headers = {"ETag": etag_of(canceled.shown.head)}
    return answer(canceled_document(canceled), headers=headers)
