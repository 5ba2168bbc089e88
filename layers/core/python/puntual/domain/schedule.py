"""A schedule's head, its versions, and the changes that make a new version of it."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from puntual.domain.errors import Conflict, Rejected
from puntual.domain.expression import Rule
from puntual.domain.instant import MILLISECOND
from puntual.domain.labels import Labels
from puntual.domain.occurrence import VersionFires
from puntual.domain.policies import Policies
from puntual.domain.target import Target
from puntual.domain.tenant import ScheduleId, TenantId

PAYLOAD_BYTES_MAX = 64 * 1024
PAYLOAD_DEPTH_MAX = 100
"""Arrays and objects within one another: every library reads so many."""

FIRES_SHOWN = 5


class ScheduleState(StrEnum):
    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    CANCELED = "CANCELED"
    COMPLETED = "COMPLETED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleKey:
    tenant: TenantId
    schedule: ScheduleId


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The head: small, since the planner reads it for every cursor."""

    tenant: TenantId
    schedule: ScheduleId
    version: int
    state: ScheduleState
    rule: Rule
    policies: Policies
    created_at: datetime
    effective_from: datetime
    min_valid_version: int
    labels: Labels = ()

    @property
    def key(self) -> ScheduleKey:
        return ScheduleKey(tenant=self.tenant, schedule=self.schedule)

    @property
    def fires(self) -> VersionFires:
        return _fires_of(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleVersion:
    """What held in `[effective_from, until)`. Immutable but for `until`, set once by the next.

    `tzdata` is the release of the zone rules that its fires were computed with. `request` is
    the fingerprint of the create request that made it, so that a repeated create finds its own.
    """

    tenant: TenantId
    schedule: ScheduleId
    version: int
    state: ScheduleState
    rule: Rule
    policies: Policies
    target: Target
    payload: str = field(repr=False)
    labels: Labels = ()
    effective_from: datetime
    until: datetime | None = None
    author: str
    tzdata: str
    request: str = ""

    @property
    def key(self) -> ScheduleKey:
        return ScheduleKey(tenant=self.tenant, schedule=self.schedule)

    @property
    def asked_end_at(self) -> datetime | None:
        """The end that its author named; the rule's own may come before, by `max_runs`."""
        runs = self.policies.runs
        return self.rule.end_at if runs is None else runs.end_at

    @property
    def first_fire(self) -> datetime | None:
        """The first fire that this version owns; one exactly at its start is its own."""
        return self.rule.next_fire(self.effective_from - MILLISECOND)

    @property
    def fires(self) -> VersionFires:
        """Its fires as if it had no end, which is never taken from what may be a cache."""
        return _fires_of(self)


def _fires_of(version: Schedule | ScheduleVersion) -> VersionFires:
    return VersionFires(
        tenant=version.tenant,
        schedule=version.schedule,
        version=version.version,
        rule=version.rule,
        window=version.policies.window,
    )


class UnknownSchedule(Rejected):
    """The tenant has no schedule of this id."""

    def __init__(self, key: ScheduleKey) -> None:
        super().__init__("schedule", key.schedule, "the id of one of the tenant's schedules")
        self.key = key


class DuplicateSchedule(Conflict):
    """Another request made a schedule of this id."""

    def __init__(self, key: ScheduleKey) -> None:
        super().__init__(f"the tenant already has a schedule {key.schedule}")
        self.key = key


class StaleVersion(Conflict):
    """The schedule has moved on from the version that the caller saw."""

    def __init__(self, key: ScheduleKey, *, seen: int, current: int) -> None:
        super().__init__(f"schedule {key.schedule} is at version {current}, not at {seen}")
        self.key, self.seen, self.current = key, seen, current


class ContendedSchedule(Conflict):
    """Others changed the schedule each time that this change was tried."""

    def __init__(self, key: ScheduleKey) -> None:
        super().__init__(f"schedule {key.schedule} is being changed by others")
        self.key = key


class ScheduleEnded(Conflict):
    """A canceled schedule cannot be changed any more."""

    def __init__(self, key: ScheduleKey) -> None:
        super().__init__(f"schedule {key.schedule} is CANCELED and cannot be changed")
        self.key = key


class NothingRuns(Conflict):
    """Nothing of a canceled schedule runs any more, not by hand either."""

    def __init__(self, key: ScheduleKey) -> None:
        super().__init__(f"schedule {key.schedule} is CANCELED, and nothing of it runs any more")
        self.key = key


class NotPausable(Conflict):
    """Only an active schedule can be paused."""

    def __init__(self, key: ScheduleKey, state: ScheduleState) -> None:
        super().__init__(f"schedule {key.schedule} is {state}; only an ACTIVE one can be paused")
        self.key, self.state = key, state


class NotResumable(Conflict):
    """Only a paused schedule can be resumed."""

    def __init__(self, key: ScheduleKey, state: ScheduleState) -> None:
        super().__init__(f"schedule {key.schedule} is {state}; only a PAUSED one can be resumed")
        self.key, self.state = key, state


def effective_from_of(head: Schedule, now: datetime) -> datetime:
    """Give the start of the next version: now, but always after its predecessor's."""
    return max(now, head.effective_from + MILLISECOND)


def head_of(version: ScheduleVersion, *, created_at: datetime, min_valid_version: int) -> Schedule:
    """Give the head that a version stands for."""
    return Schedule(
        tenant=version.tenant,
        schedule=version.schedule,
        version=version.version,
        state=version.state,
        rule=version.rule,
        policies=version.policies,
        created_at=created_at,
        effective_from=version.effective_from,
        min_valid_version=min_valid_version,
        labels=version.labels,
    )


def settled(version: ScheduleVersion) -> ScheduleVersion:
    """Turn an active version that has no fire left into a completed one (E11)."""
    if version.state is ScheduleState.ACTIVE and version.first_fire is None:
        return replace(version, state=ScheduleState.COMPLETED)
    return version


def edited(head: Schedule, proposed: ScheduleVersion) -> tuple[Schedule, ScheduleVersion]:
    """Give head and version after an edit: a paused schedule stays paused.

    `proposed` carries the new definition and `effective_from`; its state and number are set here.
    Raises `ScheduleEnded` for a canceled schedule.
    """
    if head.state is ScheduleState.CANCELED:
        raise ScheduleEnded(head.key)
    paused = head.state is ScheduleState.PAUSED
    version = settled(
        replace(
            proposed,
            version=head.version + 1,
            state=ScheduleState.PAUSED if paused else ScheduleState.ACTIVE,
            until=None,
        )
    )
    return _next_head(head, version, head.min_valid_version), version


def paused(
    head: Schedule, current: ScheduleVersion, *, now: datetime, author: str
) -> tuple[Schedule, ScheduleVersion]:
    """Give head and version after a pause, which voids every older version (P3)."""
    if head.state is not ScheduleState.ACTIVE:
        raise NotPausable(head.key, head.state)
    version = _successor(head, current, ScheduleState.PAUSED, now=now, author=author)
    return _next_head(head, version, version.version), version


def resumed(
    head: Schedule, current: ScheduleVersion, *, now: datetime, author: str, tzdata: str
) -> tuple[Schedule, ScheduleVersion]:
    """Give head and version after a resume; fires of the pause are not made up for.

    `tzdata` is the release that its fires are computed with from here on.
    """
    if head.state is not ScheduleState.PAUSED:
        raise NotResumable(head.key, head.state)
    return _planned_anew(head, current, now=now, author=author, tzdata=tzdata)


def replanned(
    head: Schedule, current: ScheduleVersion, *, now: datetime, author: str, tzdata: str
) -> tuple[Schedule, ScheduleVersion]:
    """Give head and version of an active schedule whose fires another release of zone data moves.

    Nothing is voided (P3): what was due before it stays due. A fire is left to it.
    """
    assert head.state is ScheduleState.ACTIVE
    return _planned_anew(head, current, now=now, author=author, tzdata=tzdata)


def canceled(
    head: Schedule, current: ScheduleVersion, *, now: datetime, author: str
) -> tuple[Schedule, ScheduleVersion]:
    """Give head and version after a cancel, which voids every older version (P3)."""
    if head.state is ScheduleState.CANCELED:
        raise ScheduleEnded(head.key)
    version = _successor(head, current, ScheduleState.CANCELED, now=now, author=author)
    return _next_head(head, version, version.version), version


def _planned_anew(
    head: Schedule, current: ScheduleVersion, *, now: datetime, author: str, tzdata: str
) -> tuple[Schedule, ScheduleVersion]:
    version = _successor(head, current, ScheduleState.ACTIVE, now=now, author=author)
    version = settled(replace(version, tzdata=tzdata))
    return _next_head(head, version, head.min_valid_version), version


def _successor(
    head: Schedule, current: ScheduleVersion, state: ScheduleState, *, now: datetime, author: str
) -> ScheduleVersion:
    return replace(
        current,
        version=head.version + 1,
        state=state,
        effective_from=effective_from_of(head, now),
        until=None,
        author=author,
        request="",
    )


def _next_head(head: Schedule, version: ScheduleVersion, min_valid_version: int) -> Schedule:
    return head_of(version, created_at=head.created_at, min_valid_version=min_valid_version)
