"""Importing a file: each line by itself, again without harm, on from where it stopped."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from puntual.application.control_plane import ControlPlane
from puntual.application.import_schedule import AnotherDefinition, Imported, ImportResult, Mode
from puntual.application.import_schedules import (
    CHUNK,
    CONTENT_BYTES_MAX,
    LINE_BYTES_MAX,
    LINES_MAX,
    RESULTS_BYTES_MAX,
    Asked,
    FileTooLarge,
    ForeignResumeToken,
    ImportedSchedules,
    ImportOrder,
    LineResult,
    Stop,
)
from puntual.application.ports import CreateResult
from puntual.domain.agenda import Cursor
from puntual.domain.errors import Rejected, Unavailable
from puntual.domain.expression import InvalidExpression
from puntual.domain.schedule import (
    Schedule,
    ScheduleEnded,
    ScheduleKey,
    ScheduleState,
    ScheduleVersion,
)
from puntual.domain.tenant import (
    ScheduleId,
    TenantId,
    UnknownTenant,
    schedule_id_of,
)
from tests.builders import NINE, TENANT, a_forged_page_token, a_tenant
from tests.control_plane_world import AUTHOR, World, a_definition
from tests.fakes.hostile import HostileSchedules, Hostility
from tests.fakes.manual_clock import ManualClock

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
DAILY = "0 12 * * *"
QUIET = Hostility(source=random.Random(1))


def a_line(name: str, expression: str = DAILY, **fields: object) -> str:
    return json.dumps({"id": name, "expression": expression, **fields})


def asked_by(content: bytes) -> Asked:
    try:
        document: dict[str, Any] = json.loads(content)
    except ValueError as error:
        raise Rejected("line", "no JSON", "JSON") from error
    name = schedule_id_of(document.pop("id", None))
    return Asked(schedule=name, definition=a_definition(**document))


def imported(
    world: World,
    *lines: str,
    mode: Mode = Mode.CREATE,
    dry_run: bool = False,
    within: timedelta = MINUTE,
    resume: str | None = None,
    weight: int = 1,
    tenant: TenantId = TENANT,
) -> ImportedSchedules:
    return world.plane.import_schedules(
        tenant,
        "\n".join(lines).encode(),
        ImportOrder(mode=mode, dry_run=dry_run, author=AUTHOR, within=within),
        read=asked_by,
        weigh=lambda _: weight,
        resume=resume,
    )


def told(done: ImportedSchedules) -> list[str]:
    return [_told(result) for result in done.results]


def _told(result: LineResult) -> str:
    match result.outcome:
        case Imported(result=became):
            return f"{result.line} {result.named} {became}"
        case error:
            return f"{result.line} {result.named} {type(error).__name__}"


def key_of(name: str) -> ScheduleKey:
    return ScheduleKey(tenant=TENANT, schedule=ScheduleId(name))


def test_each_line_makes_a_schedule_as_a_create_does(world: World) -> None:
    alone = World()
    alone.created(schedule="a", labels={"team": "billing"})
    done = imported(world, a_line("a", "rate(5 minutes)", labels={"team": "billing"}))
    assert told(done) == ["1 a created"]
    assert (done.stopped, done.resume) == (None, None)
    assert world.writes() == alone.writes()
    assert world.planned() == alone.planned() != []


def test_the_same_file_again_changes_nothing(world: World) -> None:
    lines = [a_line("a"), a_line("b", "rate(5 minutes)", payload={"x": [1], "y": 2})]
    imported(world, *lines)
    world.clock.advance(timedelta(hours=1))
    before = world.writes()
    lines[1] = a_line("b", "rate(5 minutes)", payload={"y": 2, "x": [1]})
    for mode in Mode:
        assert told(imported(world, *lines, mode=mode)) == ["1 a unchanged", "2 b unchanged"]
    assert world.writes() == before


def test_a_fire_that_has_come_keeps_its_schedule_unchanged(world: World) -> None:
    line = a_line("a", "at(2026-11-30T09:00:05)")
    imported(world, line)
    world.clock.advance(MINUTE)
    assert told(imported(world, line)) == ["1 a unchanged"]
    (refused,) = imported(world, a_line("b", "at(2026-11-30T09:00:05)")).results
    assert isinstance(refused.outcome, Rejected)
    assert refused.outcome.field == "expression"


def test_a_line_that_says_something_else_is_refused_unless_it_may_edit(world: World) -> None:
    imported(world, a_line("a"), a_line("b"))
    world.clock.advance(MINUTE)
    before = world.writes()
    other = [a_line("a", "0 13 * * *", payload=1), a_line("b")]
    done = imported(world, *other)
    assert told(done) == ["1 a AnotherDefinition", "2 b unchanged"]
    assert isinstance(done.results[0].outcome, AnotherDefinition)
    assert done.results[0].outcome.parts == ("rule", "payload")
    assert world.writes() == before
    assert told(imported(world, *other, mode=Mode.UPSERT)) == ["1 a updated", "2 b unchanged"]
    version = world.schedules.version_rows[key_of("a"), 2]
    assert (version.rule.expression, version.payload) == ("0 13 * * *", "1")
    assert told(imported(world, *other)) == ["1 a unchanged", "2 b unchanged"]


def test_an_edit_keeps_the_pace_and_the_pause_as_a_replacement_does(world: World) -> None:
    imported(world, a_line("a", "rate(7 minutes)"))
    world.plane.pause_schedule(key_of("a"), author=AUTHOR)
    world.clock.advance(MINUTE)
    assert told(imported(world, a_line("a", "rate(7 minutes)"))) == ["1 a unchanged"]
    imported(world, a_line("a", "rate(7 minutes)", payload=2), mode=Mode.UPSERT)
    head = world.schedules.head_rows[key_of("a")]
    assert (head.state, head.rule.anchor, head.version) == (ScheduleState.PAUSED, NINE, 3)


@pytest.mark.parametrize("mode", Mode)
def test_a_canceled_schedule_stays_canceled(world: World, mode: Mode) -> None:
    imported(world, a_line("a"))
    world.plane.cancel_schedule(key_of("a"), author=AUTHOR)
    (result,) = imported(world, a_line("a"), mode=mode).results
    assert isinstance(result.outcome, ScheduleEnded)


def test_a_bad_line_is_refused_by_itself(world: World) -> None:
    done = imported(
        world,
        "{",
        a_line("a"),
        "",
        a_line("b", "61 * * * *"),
        json.dumps({"expression": DAILY}),
        a_line(".."),
        a_line("c", payload="x" * LINE_BYTES_MAX),
        a_line("d"),
    )
    assert told(done) == [
        "1 None Rejected",
        "2 a created",
        "4 b InvalidExpression",
        "5 None Rejected",
        "6 .. Rejected",
        "7 c Rejected",
        "8 d created",
    ]
    assert isinstance(done.results[2].outcome, InvalidExpression)


def test_an_id_counts_where_it_comes_first(world: World) -> None:
    done = imported(world, a_line("a", "61 * * * *"), a_line("b"), a_line("b"), a_line("a"))
    assert told(done)[1:] == ["2 b created", "3 b Rejected", "4 a Rejected"]
    assert isinstance(done.results[3].outcome, Rejected)
    assert "line 1" in done.results[3].outcome.allowed


def test_a_dry_run_checks_every_line_and_writes_nothing(world: World) -> None:
    imported(world, a_line("a"), a_line("b"))
    before = world.writes()
    lines = [a_line("a"), a_line("b", payload=1), a_line("c"), a_line("d", "61 * * * *")]
    assert told(imported(world, *lines, dry_run=True)) == [
        "1 a unchanged",
        "2 b AnotherDefinition",
        "3 c created",
        "4 d InvalidExpression",
    ]
    done = imported(world, *lines, dry_run=True, mode=Mode.UPSERT)
    assert told(done)[1] == "2 b updated"
    assert world.writes() == before


@pytest.mark.parametrize("dry_run", [False, True])
def test_an_import_stops_at_the_quota_and_says_so(world: World, *, dry_run: bool) -> None:
    world.tenants.register(a_tenant(schedules_max=3))
    world.created(schedule="z")
    lines = [a_line(name) for name in "abcd"]
    done = imported(world, *lines, dry_run=dry_run)
    assert told(done) == ["1 a created", "2 b created", "3 c ScheduleQuotaReached"]
    assert done.stopped is Stop.QUOTA
    world.tenants.register(a_tenant(schedules_max=4))
    again = imported(world, *lines, dry_run=dry_run, resume=done.resume)
    assert told(again) == ["3 c created", "4 d ScheduleQuotaReached"]
    world.tenants.register(a_tenant(schedules_max=9))
    assert told(imported(world, *lines, dry_run=dry_run, resume=again.resume)) == ["4 d created"]


class SlowClock(ManualClock):
    """Each look takes a second."""

    def now(self) -> datetime:
        self.advance(timedelta(seconds=1))
        return super().now()


def test_a_stopped_import_goes_on_where_it_stopped() -> None:
    world = World(clock=SlowClock(NINE))
    lines = ["", *(a_line(f"s{n:02}") for n in range(12)), "", a_line("last", "61 * * * *")]
    calls, seen, token = 0, list[str](), None
    while calls == 0 or token:
        done = imported(world, *lines, within=timedelta(seconds=20), resume=token)
        assert done.stopped is (Stop.TIME if done.resume else None)
        seen, token, calls = seen + told(done), done.resume, calls + 1
    assert calls > 2
    expected = [f"{n + 2} s{n:02} created" for n in range(12)]
    assert seen == [*expected, "15 last InvalidExpression"]


def test_at_least_one_line_is_done_however_little_time_there_is(world: World) -> None:
    lines, token, seen = [a_line(name) for name in "abc"], None, list[str]()
    for _ in lines:
        done = imported(world, *lines, within=-MINUTE, resume=token)
        seen, token = seen + told(done), done.resume
    assert seen == ["1 a created", "2 b created", "3 c created"]
    assert token is None


def test_an_answer_that_is_full_ends_a_call(world: World) -> None:
    lines = [a_line(f"s{n}", "61 * * * *") for n in range(2 * CHUNK + 1)]
    weight = RESULTS_BYTES_MAX // CHUNK + 1
    done = imported(world, *lines, weight=weight)
    assert (len(done.results), done.stopped) == (CHUNK, Stop.ANSWER)
    rest = imported(world, *lines, resume=done.resume)
    assert [result.line for result in rest.results] == list(range(CHUNK + 1, 2 * CHUNK + 2))


@pytest.mark.parametrize(
    "change",
    [
        {"tenant": TenantId("globex")},
        {"mode": Mode.UPSERT},
        {"dry_run": True},
        {"resume": "x"},
    ],
)
def test_a_resume_token_is_of_one_import(world: World, change: Mapping[str, Any]) -> None:
    world.tenants.register(a_tenant(TenantId("globex")))
    token = imported(world, a_line("a"), a_line("b"), within=-MINUTE).resume
    before = world.writes()
    with pytest.raises(ForeignResumeToken) as caught:
        imported(world, a_line("a"), a_line("b"), **{"resume": token, **change})
    assert caught.value.field == "resume"
    with pytest.raises(ForeignResumeToken):
        imported(world, a_line("a"), a_line("c"), resume=token)
    assert world.writes() == before


@pytest.mark.parametrize("position", [["x", "0"], ["-1", "0"], ["1", ""], ["9" * 9, "0"]])
def test_a_forged_resume_token_that_names_no_line_is_refused(
    world: World, position: list[str]
) -> None:
    # Known to whoever reads the code: the digest of nothing.
    listing = ("import", TENANT, "create", "False", "cae66941d9efbd404e4d88758ea67670")
    token = a_forged_page_token(json.dumps(position).encode(), listing=listing)
    with pytest.raises(ForeignResumeToken):
        imported(world, resume=token)
    fine = a_forged_page_token(json.dumps(["1", "0"]).encode(), listing=listing)
    assert imported(world, resume=fine).results == ()


@pytest.mark.parametrize("lines", [["x" * (CONTENT_BYTES_MAX + 1)], ["0"] * (LINES_MAX + 1)])
def test_a_file_that_is_too_large_is_refused_as_a_whole(world: World, lines: list[str]) -> None:
    with pytest.raises(FileTooLarge):
        imported(world, *lines)


def test_an_unknown_tenant_is_refused(world: World) -> None:
    with pytest.raises(UnknownTenant):
        imported(world, a_line("a"), tenant=TenantId("nobody"))


@dataclass(frozen=True, slots=True)
class _Failing(HostileSchedules):
    """Nobody answers to the transaction of one schedule."""

    def create(
        self, head: Schedule, version: ScheduleVersion, cursor: Cursor | None, *, shard: int
    ) -> CreateResult:
        if head.schedule == "b":
            raise Unavailable("throttled")
        return self.inner.create(head, version, cursor, shard=shard)


def test_an_import_stops_where_nobody_answers(world: World) -> None:
    patient, lines = world.plane, [a_line(name) for name in "abc"]
    world.plane = world.plane_on(_Failing(world.schedules, QUIET))
    done = imported(world, *lines)
    assert (told(done), done.stopped) == (["1 a created"], Stop.UNAVAILABLE)
    with pytest.raises(Unavailable):
        imported(world, *lines, resume=done.resume)
    world.plane = patient
    rest = imported(world, *lines, resume=done.resume)
    assert told(rest) == ["2 b created", "3 c created"]


@dataclass(frozen=True, slots=True)
class _Rival(HostileSchedules):
    """Another comes once, between the look at a chunk and its writes."""

    coming: list[Callable[[], object]]

    def heads(self, keys: Sequence[ScheduleKey]) -> Mapping[ScheduleKey, Schedule]:
        seen = self.inner.heads(keys)
        while self.coming:
            self.coming.pop()()
        return seen


@pytest.mark.parametrize("mode", Mode)
def test_a_schedule_that_another_just_made_is_looked_at_again(world: World, mode: Mode) -> None:
    lines = [a_line("a"), a_line("b", payload=2)]

    def first() -> None:
        for name in "ab":
            world.created(DAILY, schedule=name)
        world.clock.advance(SECOND)

    patient = world.plane
    world.plane = patient_and(world.plane_on(_Rival(world.schedules, QUIET, [first])), patient)
    became = {Mode.CREATE: "AnotherDefinition", Mode.UPSERT: "updated"}[mode]
    assert told(imported(world, *lines, mode=mode)) == ["1 a unchanged", f"2 b {became}"]


def test_a_schedule_that_another_just_edited_is_looked_at_again(world: World) -> None:
    lines = [a_line("a", payload=2)]
    world.created(DAILY, schedule="a")
    patient = world.plane

    def first() -> None:
        world.clock.advance(SECOND)
        patient.change_schedule(
            key_of("a"), seen=1, revise=lambda _: a_definition(DAILY, payload=1), author="bo"
        )

    world.plane = patient_and(world.plane_on(_Rival(world.schedules, QUIET, [first])), patient)
    (result,) = imported(world, *lines, mode=Mode.UPSERT).results
    assert result.outcome == Imported(result=ImportResult.UPDATED, version=3)
    assert world.schedules.head_rows[key_of("a")].version == 3


def patient_and(plane: ControlPlane, patient: ControlPlane) -> ControlPlane:
    """Give a control plane whose imports alone meet the rival."""
    return replace(patient, import_schedules=plane.import_schedules)


@dataclass(frozen=True, slots=True)
class _Unreadable(HostileSchedules):
    """Nothing of what is there can be read."""

    def heads(self, _: Sequence[ScheduleKey]) -> Mapping[ScheduleKey, Schedule]:
        return {}

    def head(self, key: ScheduleKey) -> Schedule | None:
        raise ValueError(f"unreadable head {key}")


def test_rows_that_cannot_be_read_refuse_their_line_alone(world: World) -> None:
    world.created(DAILY, schedule="a")
    world.clock.advance(SECOND)
    world.plane = world.plane_on(_Unreadable(world.schedules, QUIET))
    done = imported(world, a_line("a"), a_line("b"))
    assert told(done) == ["1 a DuplicateSchedule", "2 b created"]


def test_lines_side_by_side_come_to_the_same(world: World) -> None:
    lines = [a_line(f"s{n:03}", "61 * * * *" if n % 7 == 0 else DAILY) for n in range(250)]
    alone = World()
    for each in (alone, world):
        each.tenants.register(a_tenant(schedules_max=250))
    expected = told(imported(alone, *lines))
    world.plane = replace(
        world.plane, import_schedules=replace(world.plane.import_schedules, threads=8)
    )
    assert told(imported(world, *lines)) == expected
    assert world.schedules.head_rows.keys() == alone.schedules.head_rows.keys()
