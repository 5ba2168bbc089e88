"""List the dead letters of a tenant, the last to have died first."""

from dataclasses import dataclass
from datetime import datetime

from puntual.application.ports import Ledger, Tenants
from puntual.domain.errors import Rejected
from puntual.domain.instant import FIRST_INSTANT, in_calendar, text_of
from puntual.domain.page_token import ForeignPageToken, page_token, position_of
from puntual.domain.replay import DeadLetterFilter
from puntual.domain.run import Run
from puntual.domain.tenant import TenantId, UnknownTenant


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedDeadLetters:
    runs: tuple[Run, ...]
    page_token: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListDeadLetters:
    tenants: Tenants
    ledger: Ledger

    def __call__(
        self, tenant: TenantId, which: DeadLetterFilter, *, limit: int, token: str | None
    ) -> ListedDeadLetters:
        """Give up to `limit` of them; a page may be short, or empty, while there is a token.

        Eventually consistent. Raises `UnknownTenant`, `Rejected`.
        """
        check_filter(which)
        before = place_of(token, tenant, which)
        if self.tenants.get(tenant) is None:
            raise UnknownTenant(tenant)
        page = self.ledger.dead(tenant, which, before=before, limit=limit)
        return ListedDeadLetters(runs=page.runs, page_token=token_at(page.before, tenant, which))


def check_filter(which: DeadLetterFilter) -> None:
    """Check the instants of a filter; raises `Rejected`."""
    for field, instant in (("since", which.since), ("until", which.until)):
        if instant is not None:
            in_calendar(field, instant)
    if which.since is not None and which.until is not None and which.until < which.since:
        raise Rejected("until", text_of(which.until), f"not before since, {text_of(which.since)}")


def token_at(before: str | None, tenant: TenantId, which: DeadLetterFilter) -> str | None:
    """Give the token of the place behind which the dead letters go on."""
    return None if before is None else page_token((before,), listing=_listing(tenant, which))


def place_of(token: str | None, tenant: TenantId, which: DeadLetterFilter) -> str | None:
    """Read a place back; raises `ForeignPageToken`."""
    if token is None:
        return None
    (before,) = position_of(token, listing=_listing(tenant, which), length=1)
    # The index takes no range that ends before it begins, nor text that UTF-8 cannot carry.
    if not before.isascii() or before < text_of(which.since or FIRST_INSTANT):
        raise ForeignPageToken(token)
    return before


def _listing(tenant: TenantId, which: DeadLetterFilter) -> tuple[str, ...]:
    return ("dead-letters", tenant, which.schedule or "", _text(which.since), _text(which.until))


def _text(instant: datetime | None) -> str:
    return "" if instant is None else text_of(instant)
