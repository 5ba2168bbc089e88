"""Preview a rule that nobody has saved: checked as by a create, written nowhere."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from puntual.application.ports import Clock, Tenants
from puntual.domain.definition import (
    Limits,
    RuleDefinition,
    check_interval,
    check_window,
    new_rule_of,
)
from puntual.domain.errors import Rejected
from puntual.domain.expression import Rule
from puntual.domain.instant import MILLISECOND, in_calendar
from puntual.domain.occurrence import VersionFires
from puntual.domain.preview import Preview, preview_of
from puntual.domain.rule_warnings import unsaved_warnings, warnings_of
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
        window: timedelta,
        after: datetime | None,
        count: int,
    ) -> PreviewedRule:
        """Preview what a create at this moment would make; raises `UnknownTenant`, `Rejected`.

        `schedule` is the id that the create would name; H and a window need it, since it decides
        what they come to.
        """
        now = self.clock.now()
        # A version owns a fire exactly at its start, which would be now.
        after = now - MILLISECOND if after is None else in_calendar("after", after)
        registered = self.tenants.get(tenant)
        if registered is None:
            raise UnknownTenant(tenant)
        rule = new_rule_of(definition, tenant=tenant, schedule=schedule, effective_from=now)
        check_interval(rule, registered.quotas)
        check_window(window, rule)
        if schedule is None and window:
            raise Rejected(
                "id", None, "the id of the schedule, by which fires are spread in a window"
            )

        def available_at(fire: datetime) -> datetime:
            if schedule is None:
                return fire
            fires = VersionFires(
                tenant=tenant, schedule=schedule, version=1, rule=rule, window=window
            )
            return fires.available_at(fire)

        return PreviewedRule(
            rule=rule,
            preview=preview_of(rule, after=after, count=count, available_at=available_at),
            warnings=(*unsaved_warnings(rule), *warnings_of(rule, now=after)),
            tzdata=self.limits.tzdata,
        )
