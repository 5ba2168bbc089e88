"""Preview a rule that nobody has saved: checked as by a create, written nowhere."""

from dataclasses import dataclass
from datetime import datetime

from puntual.application.ports import Clock, Tenants
from puntual.domain.definition import Limits, RuleDefinition, new_rule_of
from puntual.domain.expression import Rule
from puntual.domain.instant import MILLISECOND, in_calendar
from puntual.domain.preview import Preview, preview_of
from puntual.domain.rule_warnings import warnings_of
from puntual.domain.tenant import ScheduleId, TenantId, UnknownTenant


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedRule:
    """`tzdata` is the release of the zone rules that all this was computed with."""

    rule: Rule
    preview: Preview
    warnings: tuple[str, ...]
    tzdata: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewRule:
    tenants: Tenants
    clock: Clock
    limits: Limits

    def __call__(
        self,
        tenant: TenantId,
        definition: RuleDefinition,
        *,
        schedule: ScheduleId | None,
        after: datetime | None,
        count: int,
    ) -> PreviewedRule:
        """Preview what a create at this moment would make; raises `UnknownTenant`, `Rejected`.

        `schedule` is the id that the create would name; only H needs it.
        """
        now = self.clock.now()
        # A version owns a fire exactly at its start, which would be now.
        after = now - MILLISECOND if after is None else in_calendar("after", after)
        if self.tenants.get(tenant) is None:
            raise UnknownTenant(tenant)
        rule = new_rule_of(definition, tenant=tenant, schedule=schedule, effective_from=now)
        return PreviewedRule(
            rule=rule,
            preview=preview_of(rule, after=after, count=count, available_at=lambda fire: fire),
            warnings=warnings_of(rule, now=after),
            tzdata=self.limits.tzdata,
        )
