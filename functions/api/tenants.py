"""Routes of a tenant's own registration, which administrators write, and what it uses of it."""

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response

from functions.api.answers import (
    answer,
    forecast_document,
    registration_answer,
    usage_document,
)
from functions.api.desk import check_query, desk_of, new_router
from puntual.domain.tenant import tenant_id_of

TENANT = "/v1/tenants/<tenant>"
USAGE = f"{TENANT}/usage"
FORECAST = f"{TENANT}/forecast"

logger = Logger(child=True)

router = new_router()


@router.get(TENANT)
def show(tenant: str) -> Response[str]:
    check_query(router)
    plane = desk_of(router).plane
    return registration_answer(
        plane.show_tenant(tenant_id_of(tenant)), environment=plane.environment
    )


@router.get(USAGE)
def usage(tenant: str) -> Response[str]:
    check_query(router)
    return answer(usage_document(desk_of(router).plane.show_usage(tenant_id_of(tenant))))


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
