"""Import a file of schedules, line by line, as far as time, quota and answer reach."""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import batched

from puntual.application.import_schedule import (
    Imported,
    ImportResult,
    ImportSchedule,
    Mode,
    Standing,
    standing_of,
)
from puntual.application.ports import Clock, Schedules, Tenants
from puntual.domain.definition import Definition
from puntual.domain.errors import Conflict, Rejected, Unavailable
from puntual.domain.ndjson import Line, lines_of
from puntual.domain.page_token import ForeignPageToken, page_token, position_of
from puntual.domain.schedule import ScheduleKey
from puntual.domain.tenant import ScheduleId, ScheduleQuotaReached, Tenant, TenantId, UnknownTenant

CONTENT_BYTES_MAX = 5_000_000
LINES_MAX = 50_000
"""The shortest line that can be a schedule has some 80 bytes."""

LINE_BYTES_MAX = 256 * 1024
"""Room for a payload of 64 KB of which each character is written as an escape."""

CHUNK = 100
"""Lines that are looked up at once; between chunks an import looks at its answer's size."""

RESULTS_BYTES_MAX = 3_000_000
"""After it comes one chunk more; an answer may have 6 MB."""

IMPORT_SECONDS_MAX = 20
"""After it the lines that were begun are ended; API Gateway waits for 29 seconds."""

_NUMBER = re.compile(r"[0-9]{1,7}", re.ASCII)


class Stop(StrEnum):
    """Why an import ended before its file."""

    TIME = "time"
    ANSWER = "answer"
    QUOTA = "quota"
    UNAVAILABLE = "unavailable"


class FileTooLarge(Rejected):
    """The file is more than one call takes."""


class ForeignResumeToken(Rejected):
    """The token is none that the import of this content gave."""

    def __init__(self, token: str) -> None:
        allowed = "the resume token of the last answer to this content, mode and dry_run"
        super().__init__("resume", token, allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a line asks for."""

    schedule: ScheduleId
    definition: Definition


@dataclass(frozen=True, slots=True, kw_only=True)
class LineResult:
    """What became of a line, or why it was refused; `named` is the id in it, if it has one."""

    line: int
    named: str | None
    outcome: Imported | Rejected | Conflict


Read = Callable[[bytes], Asked]
"""Reads a line; raises `Rejected`."""

Weigh = Callable[[LineResult], int]
"""Gives the bytes that a result takes in the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSchedules:
    """The results of some lines, in their order; `resume` says where the others are."""

    results: tuple[LineResult, ...]
    stopped: Stop | None
    resume: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOrder:
    """What is the same for all lines of a call."""

    mode: Mode
    dry_run: bool
    author: str
    within: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """A line, and what it asks for or why that is refused at once."""

    line: Line
    asked: Asked | Rejected


@dataclass(slots=True, kw_only=True)
class _Course:
    """A call under way. `over` once no other line is to be begun, and why."""

    import_schedule: ImportSchedule
    schedules: Schedules
    clock: Clock
    tenant: Tenant
    order: ImportOrder
    deadline: datetime
    created: int
    """By a dry run: what it would have created, its former calls included."""

    begun: bool = False
    over: Stop | None = None

    def found(self, tasks: tuple[_Task, ...]) -> Mapping[ScheduleKey, Standing]:
        """Read what stands of the schedules that a chunk asks for."""
        asked = (task.asked for task in tasks if isinstance(task.asked, Asked))
        keys = [ScheduleKey(tenant=self.tenant.tenant, schedule=each.schedule) for each in asked]
        return standing_of(self.schedules, keys)

    def outcome(
        self, task: _Task, found: Mapping[ScheduleKey, Standing]
    ) -> Imported | Rejected | Conflict | None:
        """Do a line; None where it is left, since the call is over."""
        if self.begun and self.over is None and self.clock.now() >= self.deadline:
            self.over = Stop.TIME
        if self.over is not None:
            return None
        self.begun = True
        if isinstance(task.asked, Rejected):
            return task.asked
        try:
            return self._imported(task.asked, found)
        except ScheduleQuotaReached as error:
            self.over = Stop.QUOTA
            return error
        except (Rejected, Conflict) as error:
            return error
        except Unavailable:
            self.over = Stop.UNAVAILABLE
            return None

    def _imported(self, asked: Asked, found: Mapping[ScheduleKey, Standing]) -> Imported:
        key = ScheduleKey(tenant=self.tenant.tenant, schedule=asked.schedule)
        imported = self.import_schedule(
            key,
            asked.definition,
            tenant=self.tenant,
            found=found.get(key),
            mode=self.order.mode,
            author=self.order.author,
            dry_run=self.order.dry_run,
        )
        if self.order.dry_run and imported.result is ImportResult.CREATED:
            self._count()
        return imported

    def _count(self) -> None:
        most = self.tenant.quotas.schedules_max
        if self.tenant.schedules + self.created >= most:
            raise ScheduleQuotaReached(self.tenant.tenant, most)
        self.created += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSchedules:
    import_schedule: ImportSchedule
    schedules: Schedules
    tenants: Tenants
    clock: Clock
    threads: int

    def __call__(
        self,
        tenant: TenantId,
        content: bytes,
        order: ImportOrder,
        *,
        read: Read,
        weigh: Weigh,
        resume: str | None = None,
    ) -> ImportedSchedules:
        """Do the lines from the first, or from where `resume` says; at least one of them.

        A line is done or refused by itself, and what was done is found done by a repetition.
        Raises `UnknownTenant`, `FileTooLarge`, `ForeignResumeToken`, and `Unavailable` where not
        one line could be done.
        """
        lines = _lines_in(content)
        digest = hashlib.blake2b(content, digest_size=16).hexdigest()
        listing = ("import", tenant, order.mode, str(order.dry_run), digest)
        start, created = (0, 0) if resume is None else _position_of(resume, listing)
        registered = self.tenants.get(tenant)
        if registered is None:
            raise UnknownTenant(tenant)
        course = _Course(
            import_schedule=self.import_schedule,
            schedules=self.schedules,
            clock=self.clock,
            tenant=registered,
            order=order,
            deadline=self.clock.now() + order.within,
            created=created,
        )
        firsts = _firsts_of(lines)
        left = [line for line in lines if line.number >= start]
        tasks = (_Task(line=line, asked=_asked_by(line, firsts, read)) for line in left)
        results, at = self._results(tasks, course, weigh)
        return ImportedSchedules(
            results=results,
            stopped=None if at is None else course.over,
            resume=(
                None if at is None else page_token((str(at), str(course.created)), listing=listing)
            ),
        )

    def _results(
        self, tasks: Iterator[_Task], course: _Course, weigh: Weigh
    ) -> tuple[tuple[LineResult, ...], int | None]:
        """Do chunk after chunk; gives the results, and the line to go on at if it stopped."""
        results: list[LineResult] = []
        size = 0
        # A dry run counts what it would create, line after line.
        with ThreadPoolExecutor(1 if course.order.dry_run else self.threads) as pool:
            for chunk in batched(tasks, CHUNK, strict=False):
                if size > RESULTS_BYTES_MAX:
                    course.over = Stop.ANSWER
                    return tuple(results), chunk[0].line.number
                outcomes = self._outcomes(chunk, course, pool)
                for task, outcome in zip(chunk, outcomes, strict=True):
                    if outcome is None and not results:
                        raise Unavailable("an import came to no line")
                    if outcome is not None:
                        result = _result_of(task, outcome)
                        results.append(result)
                        size += weigh(result)
                    if outcome is None or isinstance(outcome, ScheduleQuotaReached):
                        return tuple(results), task.line.number
        return tuple(results), None

    def _outcomes(
        self, chunk: tuple[_Task, ...], course: _Course, pool: ThreadPoolExecutor
    ) -> list[Imported | Rejected | Conflict | None]:
        try:
            found = course.found(chunk)
        except Unavailable:
            course.over = Stop.UNAVAILABLE
            return [None] * len(chunk)
        return list(pool.map(lambda task: course.outcome(task, found), chunk))


def _lines_in(content: bytes) -> tuple[Line, ...]:
    if len(content) > CONTENT_BYTES_MAX:
        raise FileTooLarge("body", f"{len(content)} bytes", f"at most {CONTENT_BYTES_MAX} bytes")
    lines = tuple(lines_of(content))
    if len(lines) > LINES_MAX:
        raise FileTooLarge("body", f"{len(lines)} lines", f"at most {LINES_MAX} lines")
    return lines


def _firsts_of(lines: tuple[Line, ...]) -> Mapping[str, int]:
    """Give the first line of each id, whether or not it can be done."""
    firsts: dict[str, int] = {}
    for line in lines:
        if line.named is not None:
            firsts.setdefault(line.named, line.number)
    return firsts


def _asked_by(line: Line, firsts: Mapping[str, int], read: Read) -> Asked | Rejected:
    size = len(line.content)
    if size > LINE_BYTES_MAX:
        return Rejected("line", f"{size} bytes", f"at most {LINE_BYTES_MAX} bytes")
    first = line.number if line.named is None else firsts[line.named]
    if first != line.number:
        return Rejected("id", line.named, f"an id that no other line has; line {first} has it")
    try:
        return read(line.content)
    except Rejected as error:
        return error


def _result_of(task: _Task, outcome: Imported | Rejected | Conflict) -> LineResult:
    return LineResult(line=task.line.number, named=task.line.named, outcome=outcome)


def _position_of(token: str, listing: tuple[str, ...]) -> tuple[int, int]:
    """Read the line to go on at, and what a dry run counted; raises `ForeignResumeToken`."""
    try:
        position = position_of(token, listing=listing, length=2)
    except ForeignPageToken as error:
        raise ForeignResumeToken(token) from error
    if not all(_NUMBER.fullmatch(text) for text in position):
        raise ForeignResumeToken(token)
    line, created = map(int, position)
    return line, created
