"""Routes of administrators, on a path of their own that no tenant's IAM policy reaches."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query

from functions.api.answers import answer, quotas_document, registration_answer
from functions.api.desk import check_query, desk_of, new_router
from functions.api.models import TenantBody
from puntual.domain.tenant import tenant_id_of

ADMIN_TENANTS = "/v1/admin/tenants"
ADMIN_TENANT = f"{ADMIN_TENANTS}/<tenant>"

router = new_router()


@router.get(ADMIN_TENANTS)
def listing(
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    page_token: Annotated[str | None, Query()] = None,
) -> Response[str]:
    check_query(router, "limit", "page_token")
    listed = desk_of(router).plane.list_tenants(limit=limit, token=page_token)
    return answer(
        {
            "tenants": [
                {"tenant": each.tenant, "quotas": quotas_document(each.quotas)}
                for each in listed.tenants
            ],
            "next_page_token": listed.page_token,
        }
    )


@router.put(ADMIN_TENANT)
def register(tenant: str, body: Annotated[TenantBody, Body()]) -> Response[str]:
    check_query(router)
    plane = desk_of(router).plane
    registered = plane.register_tenant(
        tenant_id_of(tenant),
        quotas=body.quotas.quotas(),
        targets=tuple(body.targets),
        roles=tuple(body.roles),
        principals=tuple(body.principals),
    )
    return registration_answer(registered, environment=plane.environment)


@router.get(ADMIN_TENANT)
def show(tenant: str) -> Response[str]:
    check_query(router)
    plane = desk_of(router).plane
    return registration_answer(
        plane.show_tenant(tenant_id_of(tenant)), environment=plane.environment
    )
