"""What each route finds at hand: the use cases, the idempotency store, the caller."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools.event_handler.router import APIGatewayRouter
from aws_lambda_powertools.utilities.idempotency import BasePersistenceLayer

from puntual.application.control_plane import ControlPlane
from puntual.domain.errors import Rejected
from puntual.domain.schedule import ScheduleKey
from puntual.domain.tenant import schedule_id_of, tenant_id_of

NOBODY = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    plane: ControlPlane
    idempotency: BasePersistenceLayer


def new_router() -> APIGatewayRouter:
    return APIGatewayRouter()  # type: ignore[no-untyped-call]  # Powertools left it untyped


def desk_of(router: APIGatewayRouter) -> Desk:
    desk = router.context["desk"]
    assert isinstance(desk, Desk)
    return desk


def key_of(tenant: str, schedule: str) -> ScheduleKey:
    """Check the ids of a path; raises `Rejected`."""
    return ScheduleKey(
        tenant=tenant_id_of(tenant), schedule=schedule_id_of(schedule, field="schedule")
    )


def caller_in(event: Mapping[str, Any]) -> str:
    """Give the IAM identity that signed a request."""
    identity = (event.get("requestContext") or {}).get("identity") or {}
    return str(identity.get("userArn") or identity.get("caller") or NOBODY)


def author_of(router: APIGatewayRouter) -> str:
    return caller_in(router.current_event.raw_event)


def path_of(router: APIGatewayRouter) -> str:
    """Give the path as the caller wrote it, the stage before it included."""
    event = router.current_event
    path = event["requestContext"].get("path") or event["path"]
    return str(path).rstrip("/")


def check_query(router: APIGatewayRouter, *known: str) -> None:
    """Refuse what nobody reads, since it is a misspelt filter; raises `Rejected`."""
    for name in router.current_event.query_string_parameters:
        if name not in known:
            raise Rejected("query", name, f"only {', '.join(known)}" if known else "no parameters")
