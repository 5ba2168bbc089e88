"""A tenant with registered principals: every route is closed to everybody else."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from functions.api.handler import METHODS, METHODS_OF, app
from puntual.application.admit_caller import AdmitCaller
from puntual.application.known_tenants import KnownTenants
from puntual.application.ports import Tenants
from puntual.domain.errors import Unavailable
from puntual.domain.tenant import Tenant, TenantId
from tests.builders import a_tenant
from tests.fakes.in_memory_tenants import InMemoryTenants
from tests.functions.conftest import Answered, Api

ROLE = "arn:aws:iam::123456789012:role/teams/acme"
OURS = "arn:aws:sts::123456789012:assumed-role/acme/ana"
FOREIGN = "arn:aws:sts::123456789012:assumed-role/globex/ben"

TENANT_ROOT = "/v1/tenants/<tenant>"
ADMIN_ROOT = "/v1/admin/"

ROUTES = [(method, path) for path in METHODS_OF for method in sorted(METHODS)]
OWN_ROUTES = [(method, path) for method, path in ROUTES if path.startswith(TENANT_ROOT)]

REFUSAL = {
    "type": "about:blank",
    "title": "Forbidden",
    "status": 403,
    "detail": f"caller: '{FOREIGN}' is not allowed;"
    " allowed: a principal that may call for this tenant",
    "errors": [
        {
            "field": "caller",
            "value": FOREIGN,
            "allowed": "a principal that may call for this tenant",
        }
    ],
}


@pytest.fixture
def guarded(api: Api) -> Api:
    api.world.created()
    api.world.tenants.register(a_tenant(principals=(ROLE,)))
    return api


def filled(path: str, *, tenant: str = "acme", schedule: str = "invoices") -> str:
    named = path.replace("<tenant>", tenant).replace("<schedule>", schedule)
    return named.replace("<occurrence>", "2026-11-30T09:05:00.000Z")


def routes_of_the_resolver() -> Iterator[tuple[str, str]]:
    for route in (*app._static_routes, *app._dynamic_routes):
        yield route.method, route.path


def test_there_is_no_route_but_those_that_are_walked_here() -> None:
    assert set(routes_of_the_resolver()) == set(ROUTES)


def test_every_route_is_a_tenants_or_an_administrators() -> None:
    for path in METHODS_OF:
        assert path.startswith((f"{TENANT_ROOT}/", ADMIN_ROOT)) or path == TENANT_ROOT, path


@pytest.mark.parametrize(("method", "path"), OWN_ROUTES)
def test_no_route_of_a_tenant_answers_who_is_not_its_principal(
    guarded: Api, method: str, path: str
) -> None:
    before = guarded.world.writes()
    bodies: tuple[object, ...] = (None, "{", {})
    answers = [
        guarded.call(method, filled(path, schedule=schedule), body, caller=FOREIGN)
        for schedule in ("invoices", "never-made")
        for body in bodies
    ]
    for answer in answers:
        assert (answer.status, answer.body) == (403, REFUSAL), (method, path)
        assert answer.headers["Content-Type"] == "application/problem+json"
    assert guarded.world.writes() == before


@pytest.mark.parametrize(("method", "path"), OWN_ROUTES)
def test_every_route_of_a_tenant_is_open_to_its_principals(
    guarded: Api, method: str, path: str
) -> None:
    assert guarded.call(method, filled(path), caller=OURS).status != 403


@pytest.mark.parametrize(
    "rest", ["/nowhere", "/schedules/a/b/c/d/e", "/schedules/invoices/explode"]
)
def test_who_is_not_let_in_does_not_learn_what_routes_there_are(guarded: Api, rest: str) -> None:
    assert guarded.call("GET", f"/v1/tenants/acme{rest}", caller=FOREIGN).body == REFUSAL
    assert guarded.call("GET", f"/v1/tenants/acme{rest}", caller=OURS).status == 404


@pytest.mark.parametrize(
    "caller", [None, "", "arn:aws:iam::123456789012:root", "arn:aws:iam::123456789012:user/acme"]
)
def test_a_caller_whom_nobody_can_name_is_no_principal(guarded: Api, caller: str | None) -> None:
    assert guarded.call("GET", "/v1/tenants/acme", caller=caller).status == 403


def test_administrators_are_not_bound_by_it_and_let_principals_in(guarded: Api) -> None:
    admin = "/v1/admin/tenants/acme"
    assert guarded.call("GET", admin, caller=FOREIGN).body["principals"] == [ROLE]
    body = {"principals": [ROLE, "arn:aws:iam::123456789012:role/globex"]}
    assert guarded.call("PUT", admin, body, caller=FOREIGN).status == 200
    assert guarded.call("GET", "/v1/tenants/acme", caller=FOREIGN).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/v1/tenants/acme/",
        "/v1/tenants//acme",
        "/v1//tenants/acme",
        "/v1/tenants/./acme",
        "/v1/tenants/globex/../acme",
        "/v1/tenants/acme/schedules/",
        "/v1/tenants/acme\n",
        "/v1/tenants/%61cme",
        "/v1/tenants/acme%2Fschedules",
        "/V1/tenants/acme",
        "/v1/admin/../tenants/acme",
    ],
)
def test_no_other_way_of_writing_the_path_leads_past_the_guard(guarded: Api, path: str) -> None:
    """No unnormalised path finds what the plain one does: its tenant is another, or no route."""
    answer = guarded.call("GET", path, caller=FOREIGN)
    assert answer.status in {400, 403, 404}, answer.text
    assert "quotas" not in answer.text


def test_a_tenant_without_principals_is_open_to_whom_iam_lets_call(api: Api) -> None:
    assert api.call("GET", "/v1/tenants/acme", caller=FOREIGN).status == 200


def test_a_tenant_that_nobody_registered_is_not_found(guarded: Api) -> None:
    assert guarded.call("GET", "/v1/tenants/nobody", caller=FOREIGN).status == 404


class FailingTenants(InMemoryTenants):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def get(self, tenant: TenantId) -> Tenant | None:
        assert tenant
        raise self.error


def answered_by(api: Api, tenants: Tenants) -> Answered:
    admit = AdmitCaller(known=KnownTenants(tenants=tenants, clock=api.world.clock))
    plane = replace(api.desk.plane, admit_caller=admit)
    failing = replace(api, desk=replace(api.desk, plane=plane))
    return failing.call("GET", "/v1/tenants/acme/schedules", caller=OURS)


@pytest.mark.parametrize(("error", "status"), [(Unavailable("throttled"), 503), (KeyError(), 500)])
def test_a_registration_that_cannot_be_read_lets_nobody_in(
    api: Api, error: Exception, status: int
) -> None:
    answer = answered_by(api, FailingTenants(error))
    assert answer.status == status
    problem: dict[str, Any] = answer.body
    assert problem["status"] == status
    assert answer.headers["Content-Type"] == "application/problem+json"
