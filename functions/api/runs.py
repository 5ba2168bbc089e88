"""Routes that run a schedule beside its rule: trigger now, backfill a past range."""

from typing import Annotated
from urllib.parse import quote

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from functions.api.answers import answer, asked_document, backfill_document
from functions.api.desk import check_query, desk_of, key_of, new_router, path_of
from functions.api.models import BackfillBody
from functions.api.requests import check_no_body, request_of, seen_version
from functions.api.schedules import SCHEDULE

TRIGGER = f"{SCHEDULE}/trigger"
BACKFILL = f"{SCHEDULE}/backfill"

ACCEPTED = 202
TRIGGERS = "trigger"
"""What the body of a trigger says, as far as repetitions go."""

router = new_router()


@router.post(TRIGGER)
def trigger(tenant: str, schedule: str) -> Response[str]:
    check_query(router)
    check_no_body(router)
    asked = desk_of(router).plane.trigger_schedule(
        key_of(tenant, schedule), seen=seen_version(router), request=request_of(router, TRIGGERS)
    )
    document = asked_document(asked)
    place = path_of(router).removesuffix("/trigger")
    location = f"{place}/occurrences/{quote(document['ref'], safe=':~')}"
    return answer(document, status=ACCEPTED, headers={"Location": location})


@router.post(BACKFILL)
def backfill(tenant: str, schedule: str, body: Annotated[BackfillBody, Body()]) -> Response[str]:
    check_query(router)
    asked = desk_of(router).plane.backfill_schedule(
        key_of(tenant, schedule),
        body.range(),
        seen=seen_version(router),
        request=request_of(router, body.canonical()),
        dry_run=body.dry_run,
    )
    status = 200 if body.dry_run else ACCEPTED
    return answer(backfill_document(asked, dry_run=body.dry_run), status=status)
