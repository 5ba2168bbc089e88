"""The door to a tenant: its registered principals come in, before any route is looked for."""

import re
from collections.abc import Mapping
from typing import Any

from functions.api.desk import Desk, caller_in
from puntual.domain.tenant import tenant_id_of

TENANT_PATH = re.compile(r"/v1/tenants/([^/]+)(?:/.*)?", re.DOTALL)


def admit(event: Mapping[str, Any], desk: Desk) -> None:
    """Raises `CallerNotRegistered`, `Rejected` for a bad id, `Unavailable`.

    By the path and not by routes, so that a route that is added later is guarded too, and a caller
    who is not let in learns nothing of what there is: no route, method or body is looked at.
    """
    match = TENANT_PATH.fullmatch(event["path"])
    if match is not None:
        desk.plane.admit_caller(tenant_id_of(match[1]), caller=caller_in(event))
