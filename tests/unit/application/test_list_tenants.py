import pytest

from puntual.domain.errors import Rejected
from puntual.domain.page_token import page_token
from tests.builders import a_tenant
from tests.control_plane_world import World


def test_every_tenant_is_listed_once_page_after_page() -> None:
    world = World()
    names = [f"t-{number}" for number in range(5)]
    for name in names:
        world.tenants.register(a_tenant(name))
    listed: list[str] = []
    token: str | None = None
    for _ in range(len(names)):
        page = world.plane.list_tenants(limit=2, token=token)
        listed += [each.tenant for each in page.tenants]
        token = page.page_token
        if token is None:
            break
    assert listed == ["acme", *names]
    assert token is None


@pytest.mark.parametrize(
    "token",
    [
        "guess",
        page_token(("acme",), listing=("schedules", "acme", "", "")),
        page_token(("a/b",), listing=("tenants",)),
        page_token(("acme", "x"), listing=("tenants",)),
    ],
)
def test_a_token_of_another_listing_is_refused(token: str) -> None:
    with pytest.raises(Rejected) as caught:
        World().plane.list_tenants(limit=2, token=token)
    assert caught.value.field == "page_token"
