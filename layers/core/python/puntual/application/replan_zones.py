"""Plan schedules anew whose fires a new release of the zone data moves: slice by slice."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from puntual.application.advance_schedule import AdvanceSchedule, Next
from puntual.application.note_zone_release import NoteZoneRelease
from puntual.application.ports import Clock, Schedules, UnreadableHead, ZoneData, ZoneReleases
from puntual.application.show_schedule import standing
from puntual.domain.errors import Unavailable
from puntual.domain.expression import Rule
from puntual.domain.fire_differences import FireDifferences, fire_differences
from puntual.domain.instant import DAY, FIRST_INSTANT, MINUTE, minute_of, text_of
from puntual.domain.page_token import ForeignPageToken, page_token, position_of
from puntual.domain.schedule import (
    Schedule,
    ScheduleKey,
    ScheduleState,
    ScheduleVersion,
    replanned,
)
from puntual.domain.tenant import schedule_id_of, tenant_id_of
from puntual.domain.zone_releases import (
    FormerPlannersAtWork,
    OvertakenRun,
    ReleasesInUse,
    with_deployed,
)
from puntual.domain.zone_rules import ClockDifference, differing_zones, dropped_zones

HEADS_PER_PAGE = 1_000
PAGES_PER_SLICE_MAX = 100_000
NAMED_PER_SLICE_MAX = 5_000
"""Schedules of which an answer of at most 6 MB tells."""

MEMO_SIZE_MAX = 10_000

Differences = Mapping[str, Sequence[ClockDifference]]
"""By zone name: how its clocks differ now from those of each former release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replanned:
    """A version that a schedule got, or in a dry run would get, and what differs in its fires."""

    version: ScheduleVersion
    differences: FireDifferences


Tell = Callable[[Replanned], None]
"""Hears of each version right after it is written: whoever dies later has told of it."""


def tell_nobody(_: Replanned) -> None:
    """Hear nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A schedule that could not be planned anew, and why."""

    key: ScheduleKey
    reason: str


@dataclass(slots=True, kw_only=True)
class ReplanReport:
    """What a slice did. `looked_at` are active schedules in changed or dropped zones.

    `already` of them would change, but carry the deployed release: an edit or an earlier run
    came first. `left` counts what all slices of the run so far refused. With a `token` there is
    more to do; `caught_up` says that nothing is behind now.
    """

    former: tuple[str, ...]
    deployed: str
    zones: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    looked_at: int = 0
    already: int = 0
    replanned: list[Replanned] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    left: int = 0
    token: str | None = None
    caught_up: bool = False

    def refuse(self, key: ScheduleKey, reason: str) -> None:
        self.refused.append(Refused(key=key, reason=reason))
        self.left += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplanZones:
    """Safe to repeat from any point: who carries the deployed release is let be.

    A schedule that a user changes meanwhile carries it as well, so a lost race is no loss. Each
    schedule is looked at by itself: one that raises is refused, and never stops the others.
    """

    schedules: Schedules
    releases: ZoneReleases
    note: NoteZoneRelease
    advance: AdvanceSchedule
    zone_data: ZoneData
    clock: Clock

    def __call__(
        self, *, token: str | None, dry_run: bool, deadline: datetime, tell: Tell = tell_nobody
    ) -> ReplanReport:
        """Do a slice, which ends soon after `deadline`; a dry run writes nothing.

        Raises `FormerPlannersAtWork` where a release was deployed only just now, `OvertakenRun`
        for a token of another run or deployment, `LookupError` where the rules of a former release
        are gone, `Unavailable`.
        """
        now, deployed = self.clock.now(), self.zone_data.release
        in_use = (
            with_deployed(self.releases.in_use(), deployed, now=now) if dry_run else self.note()
        )
        listing = _listing(in_use, dry_run=dry_run)
        after, left = (None, 0) if token is None else _position(token, listing)
        report = ReplanReport(former=tuple(sorted(in_use.former)), deployed=deployed, left=left)
        if in_use.former and not dry_run and now < in_use.former_gone_at:
            raise FormerPlannersAtWork(in_use.former_gone_at)
        clocks, dropped = self._compared(in_use, now)
        report.zones, report.dropped = tuple(clocks), tuple(sorted(dropped))
        work = _Work(
            replan=self, clocks=clocks, in_use=in_use, report=report, dry_run=dry_run, tell=tell
        )
        after = work.scan(after, deadline=deadline) if clocks or dropped else None
        if after is not None:
            position = after.tenant, after.schedule, str(report.left)
            report.token = page_token(position, listing=listing)
        elif not dry_run and not report.left:
            caught_up = replace(in_use, former=frozenset())
            report.caught_up = not in_use.former or self.releases.swap(caught_up, seen=in_use)
        return report

    def _compared(self, in_use: ReleasesInUse, now: datetime) -> tuple[Differences, set[str]]:
        """Give how clocks differ from those of former releases, and the names that are gone."""
        clocks: dict[str, list[ClockDifference]] = {}
        dropped: set[str] = set()
        pinned = self.zone_data.rules() if in_use.former else None
        for release in sorted(in_use.former):
            assert pinned is not None
            former = self.releases.rules(release)
            if former is None:
                raise LookupError(f"the zone rules of release {release} are not kept")
            dropped |= dropped_zones(former, pinned)
            # A day sooner: an hour that is being repeated now began to be before.
            for zone, difference in differing_zones(former, pinned, since=now - DAY).items():
                clocks.setdefault(zone, []).append(difference)
        return dict(sorted(clocks.items())), dropped


class _Comparing:
    """What differs, once per rule and minute, however many schedules share the rule."""

    def __init__(self, clocks: Differences) -> None:
        self._clocks = clocks
        self._known: dict[tuple[Rule, datetime], FireDifferences | None] = {}

    def __call__(self, rule: Rule, now: datetime) -> FireDifferences | None:
        """Compare from the next minute on: what is due in this one is let be."""
        after = minute_of(now) + MINUTE
        if rule.start_at is not None and rule.start_at <= after:
            rule = replace(rule, start_at=None)
        # Only rate() asks for the anchor, and no zone moves it.
        rule = replace(rule, anchor=FIRST_INSTANT)
        if rule.end_at is None or rule.is_one_off or rule.next_fire(after) is None:
            return self._remembered(rule, after)
        found = self._remembered(replace(rule, end_at=None), after)
        # An end takes the same away from both: it only matters where differences were counted.
        ends_before = found is not None and rule.end_at < found.counted_until
        return self._remembered(rule, after) if ends_before else found

    def _remembered(self, rule: Rule, after: datetime) -> FireDifferences | None:
        if (rule, after) not in self._known:
            if len(self._known) >= MEMO_SIZE_MAX:
                self._known.clear()
            self._known[rule, after] = self._compared(rule, after)
        return self._known[rule, after]

    def _compared(self, rule: Rule, after: datetime) -> FireDifferences | None:
        for clocks in self._clocks.get(rule.time_zone, ()):
            differences = fire_differences(rule, clocks, after=after)
            if differences is not None:
                return differences
        return None


@dataclass(slots=True, kw_only=True)
class _Work:
    replan: ReplanZones
    clocks: Differences
    in_use: ReleasesInUse
    report: ReplanReport
    dry_run: bool
    tell: Tell
    compare: _Comparing = field(init=False)

    def __post_init__(self) -> None:
        self.compare = _Comparing(self.clocks)

    def scan(self, after: ScheduleKey | None, *, deadline: datetime) -> ScheduleKey | None:
        """Look at heads after one, a single one at least; None once all have been looked at."""
        zones = [*self.report.zones, *self.report.dropped]
        for _ in range(PAGES_PER_SLICE_MAX):
            page = self.replan.schedules.active_in(zones, after=after, limit=HEADS_PER_PAGE)
            for head in page.heads:
                self._look_at(head)
                if self._is_full(deadline):
                    return head.key
            after = page.after
            if after is None or self._is_full(deadline):
                break
        return after

    def _is_full(self, deadline: datetime) -> bool:
        named = len(self.report.replanned) + len(self.report.refused)
        return self.replan.clock.now() >= deadline or named >= NAMED_PER_SLICE_MAX

    def _look_at(self, head: Schedule | UnreadableHead) -> None:
        """Plan a schedule anew if it is moved; whatever it raises is a reason to refuse it."""
        report = self.report
        if isinstance(head, UnreadableHead):
            report.refuse(head.key, "its head cannot be read")
            return
        report.looked_at += 1
        if head.rule.time_zone in report.dropped:
            text = f"the zone data of {report.deployed} have no zone {head.rule.time_zone}"
            report.refuse(head.key, text)
            return
        try:
            self._replan(head)
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 one schedule must never stop the others
            report.refuse(head.key, f"{type(error).__name__}: {error}")

    def _replan(self, head: Schedule) -> None:
        # A head alone tells most schedules that do not change; their versions need no reading.
        if self.compare(head.rule, self.replan.clock.now()) is None:
            return
        decision = _Decision(work=self)
        if self.dry_run:
            standing_head, version = standing(self.replan.schedules, head.key)
            decision(standing_head, version, self.replan.clock.now())
        else:
            self.replan.advance(head.key, seen=None, decide=decision)
        self.report.already += decision.already
        if decision.replanned is not None:
            self.report.replanned.append(decision.replanned)
            if not self.dry_run:
                self.tell(decision.replanned)


@dataclass(slots=True, kw_only=True)
class _Decision:
    """Decides on a schedule as it stands, and remembers what it decided last."""

    work: _Work
    already: bool = False
    replanned: Replanned | None = None

    def __call__(self, head: Schedule, version: ScheduleVersion, now: datetime) -> Next | None:
        work, deployed = self.work, self.work.report.deployed
        self.already, self.replanned = False, None
        differences = work.compare(head.rule, now)
        if head.state is not ScheduleState.ACTIVE or differences is None:
            return None
        # What an older planner may have moved on is looked at again, whatever it carries.
        if version.tzdata == deployed and version.effective_from >= work.in_use.former_gone_at:
            self.already = True
            return None
        author = f"tzdata {deployed}"
        following = replanned(head, version, now=now, author=author, tzdata=deployed)
        self.replanned = Replanned(version=following[1], differences=differences)
        return following


def _listing(in_use: ReleasesInUse, *, dry_run: bool) -> tuple[str, ...]:
    """Name what tokens belong to: a deployment that comes in between makes it another run."""
    run = "dry run" if dry_run else text_of(in_use.since)
    return ("replan", run, in_use.current, *sorted(in_use.former))


def _position(token: str, listing: tuple[str, ...]) -> tuple[ScheduleKey, int]:
    """Give where a run goes on, and how many schedules it has refused by then."""
    try:
        tenant, schedule, left = position_of(token, listing=listing, length=3)
    except ForeignPageToken as error:
        raise OvertakenRun from error
    return ScheduleKey(tenant=tenant_id_of(tenant), schedule=schedule_id_of(schedule)), int(left)
