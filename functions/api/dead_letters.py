"""Routes of dead letters, and of the replay of any occurrence that has ended."""

from typing import Annotated, Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query

from functions.api.answer_once import answer_once
from functions.api.answers import (
    answer,
    dead_letter_document,
    replayed_document,
    run_document,
)
from functions.api.desk import check_query, desk_of, key_of, new_router
from functions.api.models import ReplayBody, ReplayManyBody, query_instant
from functions.api.occurrences import OCCURRENCE
from functions.api.requests import request_of
from puntual.domain.replay import DeadLetterFilter
from puntual.domain.tenant import ScheduleId, schedule_id_of, tenant_id_of

REPLAY = f"{OCCURRENCE}/replay"
DEAD_LETTERS = "/v1/tenants/<tenant>/dead-letters"
REPLAY_MANY = f"{DEAD_LETTERS}/replay"

router = new_router()


@router.post(REPLAY)
def replay(
    tenant: str, schedule: str, occurrence: str, body: Annotated[ReplayBody, Body()]
) -> Response[str]:
    check_query(router)
    key, ref = key_of(tenant, schedule), unquote(occurrence)
    desk = desk_of(router)
    request = request_of(router, f"{key.schedule} {ref} {body.canonical()}")

    def run() -> dict[str, Any]:
        return run_document(
            desk.plane.replay_occurrence(key, ref, force=body.force, request=request)
        )

    document = answer_once(
        desk,
        run,
        what="replay",
        tenant=key.tenant,
        request=request,
        context=router.lambda_context,
    )
    return answer(document, status=202)


@router.get(DEAD_LETTERS)
def listing(
    tenant: str,
    schedule: Annotated[str | None, Query()] = None,
    since: Annotated[str | None, Query()] = None,
    until: Annotated[str | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    page_token: Annotated[str | None, Query()] = None,
) -> Response[str]:
    check_query(router, "schedule", "since", "until", "limit", "page_token")
    which = DeadLetterFilter(
        schedule=_schedule_or_none(schedule),
        since=query_instant("since", since),
        until=query_instant("until", until),
    )
    plane = desk_of(router).plane
    listed = plane.list_dead_letters(tenant_id_of(tenant), which, limit=limit, token=page_token)
    return answer(
        {
            "dead_letters": [dead_letter_document(run) for run in listed.runs],
            "next_page_token": listed.page_token,
        }
    )


@router.post(REPLAY_MANY)
def replay_many(tenant: str, body: Annotated[ReplayManyBody, Body()]) -> Response[str]:
    check_query(router)
    owner, plane = tenant_id_of(tenant), desk_of(router).plane
    body.refuse_both()
    if body.refs is not None:
        refs = [
            (schedule_id_of(each.schedule, field="refs.schedule"), each.ref) for each in body.refs
        ]
        replayed = plane.replay_dead_letters.named(owner, refs, dry_run=body.dry_run)
    else:
        which = DeadLetterFilter(
            schedule=_schedule_or_none(body.schedule), since=body.since, until=body.until
        )
        replayed = plane.replay_dead_letters.matching(
            owner, which, limit=body.limit, token=body.resume_token, dry_run=body.dry_run
        )
    return answer(replayed_document(replayed), status=200 if body.dry_run else 202)


def _schedule_or_none(text: str | None) -> ScheduleId | None:
    return None if text is None else schedule_id_of(text, field="schedule")
