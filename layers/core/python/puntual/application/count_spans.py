"""Count what spans stand for, from their versions' rules and the rows inside them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from puntual.application.ports import Ledger, Schedules
from puntual.domain.instant import text_of
from puntual.domain.occurrence import RunKey
from puntual.domain.run import Span
from puntual.domain.schedule import ScheduleKey, ScheduleVersion
from puntual.domain.span_count import SpanCount, count_of
from puntual.domain.timeline import Entry

ROWS_IN_SPAN_MAX = 200
"""Rows looked at in one span: there are few, since it stands for what has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountSpans:
    schedules: Schedules
    ledger: Ledger

    def __call__(self, entries: Iterable[Entry]) -> Mapping[RunKey, SpanCount]:
        """Count each span among some entries of one schedule; one read each, and its version's."""
        versions: dict[int, ScheduleVersion] = {}
        counts: dict[RunKey, SpanCount] = {}
        for span in entries:
            if not isinstance(span, Span):
                continue
            if span.version not in versions:
                versions[span.version] = self._version(span)
            counts[span.key] = self._count(span, versions[span.version])
        return counts

    def _count(self, span: Span, version: ScheduleVersion) -> SpanCount:
        key = ScheduleKey(tenant=span.tenant, schedule=span.schedule)
        rows = self.ledger.between(
            key, first=text_of(span.first), last=span.key.run, limit=ROWS_IN_SPAN_MAX + 1
        )
        cut = len(rows) > ROWS_IN_SPAN_MAX
        return count_of(span, version, rows, cut=cut)

    def _version(self, span: Span) -> ScheduleVersion:
        key = ScheduleKey(tenant=span.tenant, schedule=span.schedule)
        version = self.schedules.version(key, span.version)
        assert version is not None, "versions are never deleted"
        return version
