"""Export a tenant's schedules page by page, as bodies that an import takes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from puntual.application.list_schedules import check_prefix, schedule_after
from puntual.application.ports import Clock, Schedules, Tenants
from puntual.domain.labels import LabelFilter
from puntual.domain.page_token import page_token
from puntual.domain.schedule import Schedule, ScheduleState, ScheduleVersion
from puntual.domain.tenant import ScheduleId, TenantId, UnknownTenant

PAGE_BYTES_MAX = 4_000_000
"""Of an answer's lines as they travel: an answer may have 6 MB, a call that imports them 4.5."""

READ_AT_ONCE = 100
EXPORT_LIMIT_MAX = 1000
EXPORT_SECONDS_MAX = 15

Write = Callable[[ScheduleVersion], str]
"""Gives the line that would make a version."""

Weigh = Callable[[str], int]
"""Gives the bytes that a line takes in the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedSchedules:
    """Lines, and where others are if there may be any."""

    lines: tuple[str, ...]
    page_token: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSchedules:
    schedules: Schedules
    tenants: Tenants
    clock: Clock

    def __call__(
        self,
        tenant: TenantId,
        *,
        prefix: str,
        state: ScheduleState | None,
        labels: Sequence[LabelFilter],
        limit: int,
        token: str | None,
        write: Write,
        weigh: Weigh,
    ) -> ExportedSchedules:
        """Give a page by id; it may be short, or empty, while there is a token.

        Without a state, all but the CANCELED ones. Raises `UnknownTenant`, `Rejected`.
        """
        check_prefix(prefix)
        filters = tuple(label.text for label in labels)
        listing = ("export", tenant, prefix, state or "", *filters)
        after = None if token is None else schedule_after(token, listing=listing)
        if self.tenants.get(tenant) is None:
            raise UnknownTenant(tenant)
        deadline = self.clock.now() + timedelta(seconds=EXPORT_SECONDS_MAX)
        lines: list[str] = []
        size = 0
        while True:
            page = self.schedules.listed(
                tenant,
                prefix=prefix,
                state=state,
                labels=labels,
                after=after,
                limit=min(READ_AT_ONCE, limit - len(lines)),
            )
            for version in self._versions(page.schedules, state):
                line = write(version)
                size += weigh(line)
                if lines and size > PAGE_BYTES_MAX:
                    return _page(lines, after, listing)
                lines.append(line)
                after = version.schedule
            after = page.after
            if after is None or len(lines) >= limit or self.clock.now() >= deadline:
                return _page(lines, after, listing)

    def _versions(
        self, heads: Sequence[Schedule], state: ScheduleState | None
    ) -> Iterator[ScheduleVersion]:
        """Read what stands of schedules, in their order; one that cannot be read is left out."""
        wanted = [
            head for head in heads if state is not None or head.state is not ScheduleState.CANCELED
        ]
        versions = self.schedules.versions({head.key: head.version for head in wanted})
        for head in wanted:
            if head.key in versions:
                yield versions[head.key]


def _page(
    lines: list[str], after: ScheduleId | None, listing: tuple[str, ...]
) -> ExportedSchedules:
    token = None if after is None else page_token((after,), listing=listing)
    return ExportedSchedules(lines=tuple(lines), page_token=token)
