"""Routes of tenants; IAM policies keep the registration for administrators."""

from typing import Annotated

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from functions.api.answers import answer, forecast_document, tenant_document
from functions.api.desk import check_query, desk_of, new_router
from functions.api.models import TenantBody
from puntual.domain.tenant import Tenant, external_id_of, tenant_id_of

TENANT = "/v1/tenants/<tenant>"
FORECAST = "/v1/tenants/<tenant>/forecast"

logger = Logger(child=True)

router = new_router()


@router.put(TENANT)
def register(tenant: str, body: Annotated[TenantBody, Body()]) -> Response[str]:
    check_query(router)
    registered = desk_of(router).plane.register_tenant(
        tenant_id_of(tenant),
        quotas=body.quotas.quotas(),
        targets=tuple(body.targets),
        roles=tuple(body.roles),
        target_limits=tuple(each.limit() for each in body.target_limits),
    )
    return _shown(registered)


@router.get(TENANT)
def show(tenant: str) -> Response[str]:
    check_query(router)
    return _shown(desk_of(router).plane.show_tenant(tenant_id_of(tenant)))


@router.get(FORECAST)
def forecast(tenant: str) -> Response[str]:
    check_query(router)
    owner = tenant_id_of(tenant)
    forecast = desk_of(router).plane.forecast_fires(owner)
    if forecast.unreadable:
        logger.warning(
            "rules left out",
            tenant=owner,
            schedules=forecast.unreadable,
            example=forecast.unreadable_rule,
        )
    return answer(forecast_document(owner, forecast))


def _shown(tenant: Tenant) -> Response[str]:
    environment = desk_of(router).plane.environment
    return answer(tenant_document(tenant, external_id_of(environment, tenant.tenant)))
