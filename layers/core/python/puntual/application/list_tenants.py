"""List the registered tenants by id."""

from dataclasses import dataclass

from puntual.application.ports import Tenants
from puntual.domain.errors import Rejected
from puntual.domain.page_token import ForeignPageToken, page_token, position_of
from puntual.domain.tenant import ListedTenant, TenantId, tenant_id_of

_LISTING = ("tenants",)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTenants:
    tenants: tuple[ListedTenant, ...]
    page_token: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTenants:
    tenants: Tenants

    def __call__(self, *, limit: int, token: str | None) -> ListedTenants:
        """Give a page; raises `Rejected` for a token of another listing."""
        after = None if token is None else _after(token)
        page = self.tenants.listed(after=after, limit=limit)
        return ListedTenants(
            tenants=page.tenants,
            page_token=page_token((page.after,), listing=_LISTING) if page.after else None,
        )


def _after(token: str) -> TenantId:
    (after,) = position_of(token, listing=_LISTING, length=1)
    try:
        return tenant_id_of(after)
    except Rejected as error:
        raise ForeignPageToken(token) from error
