"""Routes of a schedule's occurrences."""

from typing import Annotated
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Query

from functions.api.answers import answer, occurrence_document
from functions.api.desk import check_query, desk_of, key_of, new_router
from functions.api.models import query_instant
from functions.api.schedules import SCHEDULE
from puntual.domain.instant import text_of
from puntual.domain.timeline import OccurrenceState

OCCURRENCES = f"{SCHEDULE}/occurrences"
OCCURRENCE = f"{SCHEDULE}/occurrences/<occurrence>"

router = new_router()


@router.get(OCCURRENCES)
def listing(
    tenant: str,
    schedule: str,
    start: Annotated[str | None, Query(alias="from")] = None,
    end: Annotated[str | None, Query(alias="to")] = None,
    state: Annotated[OccurrenceState | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    page_token: Annotated[str | None, Query()] = None,
) -> Response[str]:
    check_query(router, "from", "to", "state", "limit", "page_token")
    listed = desk_of(router).plane.list_occurrences(
        key_of(tenant, schedule),
        start=query_instant("from", start),
        end=query_instant("to", end),
        state=state,
        limit=limit,
        token=page_token,
    )
    return answer(
        {
            "from": text_of(listed.start),
            "to": text_of(listed.end),
            "occurrences": [
                occurrence_document(entry, listed.as_of, listed.counts) for entry in listed.entries
            ],
            "next_page_token": listed.page_token,
        }
    )


@router.get(OCCURRENCE)
def show(tenant: str, schedule: str, occurrence: str) -> Response[str]:
    check_query(router)
    # API Gateway hands the path on as it was written, where clients write : as %3A.
    ref = unquote(occurrence)
    shown = desk_of(router).plane.show_occurrence(key_of(tenant, schedule), ref)
    return answer(occurrence_document(shown.entry, shown.as_of, shown.counts))
