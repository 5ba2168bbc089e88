"""Routes of targets: try one, and the keys that sign webhooks."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from functions.api.answers import answer, keys_document, tried_document
from functions.api.desk import check_query, desk_of, new_router
from functions.api.models import RotationBody, TryBody
from functions.api.tenants import TENANT
from puntual.domain.tenant import tenant_id_of

TRY = f"{TENANT}/targets/try"
KEYS = f"{TENANT}/webhook-keys"

NOT_STORED = {"Cache-Control": "no-store"}

router = new_router()


@router.post(TRY)
def attempt(tenant: str, body: Annotated[TryBody, Body()]) -> Response[str]:
    check_query(router)
    tried = desk_of(router).plane.try_target(
        tenant_id_of(tenant), body.definition(), payload=body.payload
    )
    return answer(tried_document(tried))


@router.get(KEYS)
def show_keys(tenant: str) -> Response[str]:
    check_query(router)
    keys = desk_of(router).plane.show_webhook_keys(tenant_id_of(tenant))
    return answer(keys_document(keys), headers=NOT_STORED)


@router.post(f"{KEYS}/rotate")
def rotate_keys(tenant: str, body: Annotated[RotationBody, Body()]) -> Response[str]:
    check_query(router)
    keys = desk_of(router).plane.rotate_webhook_keys(tenant_id_of(tenant), seen=body.generation)
    return answer(keys_document(keys), headers=NOT_STORED)
