"""Routes that tell when rules will fire, saved or not; they write nothing."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query

from functions.api.answers import answer, catch_up_document, preview_document
from functions.api.desk import check_query, desk_of, key_of, new_router
from functions.api.models import INSTANT_ALLOWED, PreviewBody, query_instant
from functions.api.schedules import SCHEDULE
from functions.api.tenants import TENANT
from puntual.domain.catch_up_preview import RUNS_SHOWN_MAX
from puntual.domain.errors import Rejected
from puntual.domain.preview import PREVIEW_FIRES_DEFAULT, PREVIEW_FIRES_MAX
from puntual.domain.tenant import schedule_id_of, tenant_id_of

PREVIEW = f"{TENANT}/preview"
SCHEDULE_PREVIEW = f"{SCHEDULE}/preview"
CATCH_UP_PREVIEW = f"{SCHEDULE}/catch-up-preview"

router = new_router()


@router.post(PREVIEW)
def preview_rule(tenant: str, body: Annotated[PreviewBody, Body()]) -> Response[str]:
    check_query(router)
    previewed = desk_of(router).plane.preview_rule(
        tenant_id_of(tenant),
        body.definition(),
        schedule=None if body.id is None else schedule_id_of(body.id),
        window=body.window,
        after=body.after,
        count=body.count,
    )
    return answer(preview_document(previewed))


@router.get(SCHEDULE_PREVIEW)
def preview_schedule(
    tenant: str,
    schedule: str,
    count: Annotated[int, Query(ge=1, le=PREVIEW_FIRES_MAX)] = PREVIEW_FIRES_DEFAULT,
    after: Annotated[str | None, Query()] = None,
) -> Response[str]:
    check_query(router, "count", "after")
    shown = desk_of(router).plane.preview_schedule(
        key_of(tenant, schedule), after=query_instant("after", after), count=count
    )
    head = shown.head
    standing = {"id": head.schedule, "version": head.version, "state": head.state.value}
    return answer({**standing, **preview_document(shown.previewed)})


@router.get(CATCH_UP_PREVIEW)
def preview_catch_up(
    tenant: str,
    schedule: str,
    start: Annotated[str | None, Query(alias="from")] = None,
    until: Annotated[str | None, Query()] = None,
    count: Annotated[int, Query(ge=1, le=RUNS_SHOWN_MAX)] = PREVIEW_FIRES_DEFAULT,
) -> Response[str]:
    check_query(router, "from", "until", "count")
    outage_began = query_instant("from", start)
    if outage_began is None:
        raise Rejected("from", None, INSTANT_ALLOWED)
    previewed = desk_of(router).plane.preview_catch_up(
        key_of(tenant, schedule),
        start=outage_began,
        end=query_instant("until", until),
        count=count,
    )
    return answer(catch_up_document(previewed))
