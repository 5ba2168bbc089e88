"""How values are written down: table rows, pages and messages as compact JSON, and back.

Rows live for months and messages for days, so what was written must stay readable: new keys are
optional, known ones keep their meaning. Instants are text in milliseconds, durations whole
milliseconds. Reading trusts its own writing; what is malformed raises `ValueError`.

Short keys, since the ledger pays by the kilobyte: `t` tenant, `s` schedule, `v` version, `at`
scheduled_for, `k` kind and `r` request id (both absent for regular ones), `av` available_at
(absent where it is `at`), `enq` enqueued_at, `auth` authorised_version.
"""

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import accumulate, groupby, pairwise
from typing import Any

from puntual.domain.agenda import Cursor, Recovery
from puntual.domain.breaker import Breaker
from puntual.domain.expression import Fold, Gap, Rule
from puntual.domain.instant import EPOCH, FIRST_INSTANT, MILLISECOND, SECOND, instant_of, text_of
from puntual.domain.labels import LabelFilter, Labels
from puntual.domain.lane import Lane
from puntual.domain.message import Message
from puntual.domain.occurrence import Kind, Occurrence, RunKey
from puntual.domain.page import Page, Planned
from puntual.domain.policies import (
    CATCH_UP_LIMIT_DEFAULT,
    Completion,
    CompletionPolicy,
    Misfire,
    MisfirePolicy,
    Overlap,
    Policies,
    RetryPolicy,
    RunsBound,
)
from puntual.domain.run import Attempt, Note, Run, RunState, Span
from puntual.domain.run_request import OwnedFire, RunRequest, Survey
from puntual.domain.schedule import Schedule, ScheduleKey, ScheduleState, ScheduleVersion
from puntual.domain.share import Share
from puntual.domain.slot import Place
from puntual.domain.target import AwsTarget, Service, Target, WebhookTarget
from puntual.domain.target_limit import TargetLimit
from puntual.domain.tenant import DEFAULT_QUOTAS, Quotas, ScheduleId, TenantId
from puntual.domain.zone_releases import ReleasesInUse
from puntual.domain.zone_rules import ZoneRules

type Document = dict[str, Any]
"""What JSON holds; each reader below judges the types that it takes from it."""

RECOVERY_PREFIX = "r#"
"""Sorts behind every regular cursor, whose text begins with a year."""

SPREAD_DIGITS = 8
"""Hexadecimal digits of the hash that a schedule's place among its tenant's begins with."""

DEAD_LETTER_PARTS = 8
"""Partitions of one tenant's dead letters: each takes a thousand writes a second, and beyond them
the index would hold up the ledger's own writes."""

PAGE_BYTES_MAX = 4 * 1024 * 1024
"""An unpacked page is some 30 KB; beyond this a row was not written by us."""

RULES_BYTES_MAX = 4 * 1024 * 1024
"""The data of all zones are some 200 KB."""


_CIVIL_POLICIES = {gap[0] + fold[0]: (gap, fold) for gap in Gap for fold in Fold}


# --- keys of rows -----------------------------------------------------------------------------


def schedule_key_text(key: ScheduleKey) -> str:
    """Give the partition of a schedule's rows; ids hold no '#', so it splits again."""
    return f"{key.tenant}#{key.schedule}"


def schedule_key_of(text: str) -> ScheduleKey:
    tenant, schedule = text.split("#")
    return ScheduleKey(tenant=TenantId(tenant), schedule=ScheduleId(schedule))


def bucket_text(bucket: datetime, shard: int) -> str:
    """Give the agenda's partition: `2026-11-30T09:00Z#7`."""
    return f"{minute_text(bucket)}#{shard}"


def minute_text(bucket: datetime) -> str:
    return f"{text_of(bucket)[:16]}Z"


def cursor_text(cursor: Cursor) -> str:
    """Give a cursor's place in its bucket, in the order of time; recoveries come last.

    Of a recovery, it is the end of its range, whichever slice comes next: so two of one range
    that meet in a minute are one.
    """
    owner = f"{cursor.tenant}#{cursor.schedule}#{cursor.version}"
    if cursor.recovery is not None:
        return f"{RECOVERY_PREFIX}{text_of(cursor.recovery.last)}#{owner}"
    return f"{text_of(cursor.available_at)}#{owner}"


def recovery_cursor_of(text: str, *, bucket: str, scheduled_for: str, left: int) -> Cursor:
    """Read a recovery cursor; `bucket` is the agenda's partition that it stands in."""
    _, last, tenant, schedule, version = text.split("#")
    return Cursor(
        tenant=TenantId(tenant),
        schedule=ScheduleId(schedule),
        version=int(version),
        scheduled_for=instant_of(scheduled_for),
        available_at=instant_of(bucket.split("#", maxsplit=1)[0]),
        recovery=Recovery(last=instant_of(last), left=left),
    )


def behind_text(cursor: Cursor) -> str:
    """Give a place behind all cursors of a tenant at one instant, and before any other's."""
    # "$" comes right after "#" and before all that an id may hold.
    return f"{text_of(cursor.available_at)}#{cursor.tenant}$"


def cursor_of(text: str, *, scheduled_for: str) -> Cursor:
    available_at, tenant, schedule, version = text.split("#")
    return Cursor(
        tenant=TenantId(tenant),
        schedule=ScheduleId(schedule),
        version=int(version),
        scheduled_for=instant_of(scheduled_for),
        available_at=instant_of(available_at),
    )


def page_key_text(page: Page) -> str:
    """Give a page's place among its shard's, in the order of buckets."""
    return f"{minute_text(page.bucket)}#{page.id}"


def dead_letter_text(run: Run) -> str:
    """Give a dead letter's place among its tenant's, in the order of their deaths."""
    assert run.died_at is not None
    key = run.occurrence.key
    return f"{text_of(run.died_at)}#{key.schedule}#{key.run}"


def dead_letters_text(tenant: TenantId, part: int) -> str:
    """Give one of the partitions that hold a tenant's dead letters."""
    return f"{tenant}#{part}"


def dead_letters_part(key: RunKey) -> int:
    """Spread a tenant's dead letters, for many may die in the same second."""
    digest = hashlib.blake2b(f"{key.schedule}#{key.run}".encode(), digest_size=2).digest()
    return int.from_bytes(digest) % DEAD_LETTER_PARTS


def spread_text(head: Schedule) -> str:
    """Give an active schedule's place among its tenant's: a hash of its id, and then its rule.

    So whoever reads some of them in this order has read a fair sample of the rules.
    """
    digest = hashlib.blake2b(head.schedule.encode(), digest_size=SPREAD_DIGITS // 2).hexdigest()
    return f"{digest}#{rule_text(head.rule)}"


# --- schedules --------------------------------------------------------------------------------


def head_text(head: Schedule) -> str:
    """Write a head but for its state and labels, which its row holds beside it."""
    return _text(
        {
            "tenant": head.tenant,
            "schedule": head.schedule,
            "version": head.version,
            "rule": _rule_document(head.rule),
            "policies": _policies_document(head.policies),
            "created_at": text_of(head.created_at),
            "effective_from": text_of(head.effective_from),
            "min_valid_version": head.min_valid_version,
        }
    )


def head_of_text(text: str, *, state: str, labels: str = "") -> Schedule:
    with _readable("head"):
        read = _document(text)
        return Schedule(
            tenant=TenantId(read["tenant"]),
            schedule=ScheduleId(read["schedule"]),
            version=read["version"],
            state=ScheduleState(state),
            rule=_rule_of(read["rule"]),
            policies=_policies_of(read["policies"]),
            created_at=instant_of(read["created_at"]),
            effective_from=instant_of(read["effective_from"]),
            min_valid_version=read["min_valid_version"],
            labels=labels_of_text(labels),
        )


def time_zone_text(name: str) -> str:
    """Give what stands in the text of a head in this zone: a part to look for, no proof."""
    return f'"time_zone":{json.dumps(name)}'


def rule_text(rule: Rule) -> str:
    """Write all that a rule's fires depend on, and nothing else: equal texts fire together.

    The expression comes last, since it alone may hold a '#'.
    """
    instants = (rule.anchor if rule.is_paced else None, rule.start_at, rule.end_at)
    texts = ("" if instant is None else text_of(instant) for instant in instants)
    policies = rule.gap[0] + rule.fold[0]
    return "#".join((rule.time_zone, policies, *texts, rule.expression))


def rule_of_text(text: str) -> Rule:
    """Read a rule of the same fires; raises `ValueError` for what `rule_text` does not write."""
    with _readable("rule"):
        time_zone, policies, anchor, start_at, end_at, expression = text.split("#", 5)
        gap, fold = _CIVIL_POLICIES[policies]
        return Rule(
            expression=expression,
            time_zone=time_zone,
            gap=gap,
            fold=fold,
            anchor=instant_of(anchor) if anchor else FIRST_INSTANT,
            start_at=instant_of(start_at) if start_at else None,
            end_at=instant_of(end_at) if end_at else None,
        )


def version_text(version: ScheduleVersion) -> str:
    """Write a version but for its end, which its row holds beside it."""
    return _text(
        {
            "tenant": version.tenant,
            "schedule": version.schedule,
            "version": version.version,
            "state": version.state,
            "rule": _rule_document(version.rule),
            "policies": _policies_document(version.policies),
            "target": _target_document(version.target),
            "payload": version.payload,
            "effective_from": text_of(version.effective_from),
            "author": version.author,
            "tzdata": version.tzdata,
            "request": version.request,
        }
        | _labels_document(version.labels)
    )


def version_of_text(text: str, *, until: str | None) -> ScheduleVersion:
    with _readable("version"):
        read = _document(text)
        return ScheduleVersion(
            tenant=TenantId(read["tenant"]),
            schedule=ScheduleId(read["schedule"]),
            version=read["version"],
            state=ScheduleState(read["state"]),
            rule=_rule_of(read["rule"]),
            policies=_policies_of(read["policies"]),
            target=_target_of(read["target"]),
            payload=read["payload"],
            labels=tuple(read.get("labels", {}).items()),
            effective_from=instant_of(read["effective_from"]),
            until=_instant_or_none(until),
            author=read["author"],
            tzdata=read["tzdata"],
            request=read["request"],
        )


def _labels_document(labels: Labels) -> Document:
    return {"labels": dict(labels)} if labels else {}


def labels_text(labels: Labels) -> str:
    """Write each label on a line of its own, between line ends, which none of them holds.

    So each, and the key of each, is a part to look for. Nothing where there are none.
    """
    return "".join(f"\n{key}={value}" for key, value in labels) + "\n" if labels else ""


def labels_of_text(text: str) -> Labels:
    with _readable("labels"):
        pairs = (line.split("=", 1) for line in text.strip("\n").split("\n") if line)
        return tuple((key, value) for key, value in pairs)


def label_filter_text(label: LabelFilter) -> str:
    """Give what stands in the text of the labels that a filter takes, and of no others."""
    return f"\n{label.key}=" if label.value is None else f"\n{label.text}\n"


def _rule_document(rule: Rule) -> Document:
    document: Document = {
        "expression": rule.expression,
        "time_zone": rule.time_zone,
        "gap": rule.gap,
        "fold": rule.fold,
        "anchor": text_of(rule.anchor),
    }
    if rule.start_at is not None:
        document["start_at"] = text_of(rule.start_at)
    if rule.end_at is not None:
        document["end_at"] = text_of(rule.end_at)
    return document


def _rule_of(read: Document) -> Rule:
    return Rule(
        expression=read["expression"],
        time_zone=read["time_zone"],
        gap=Gap(read["gap"]),
        fold=Fold(read["fold"]),
        anchor=instant_of(read["anchor"]),
        start_at=_instant_or_none(read.get("start_at")),
        end_at=_instant_or_none(read.get("end_at")),
    )


def _policies_document(policies: Policies) -> Document:
    """Write every value, defaults too: a later default must not change an older schedule."""
    misfire, retry, completion = policies.misfire, policies.retry, policies.completion
    late = misfire.max_lateness
    return {
        "misfire": misfire.policy,
        "misfire_after_ms": _milliseconds(misfire.after),
        "max_lateness_ms": None if late is None else _milliseconds(late),
        "limit": misfire.limit,
        "max_attempts": retry.max_attempts,
        "retry_base_ms": _milliseconds(retry.base),
        "retry_cap_ms": _milliseconds(retry.cap),
        "retry_deadline_ms": None if retry.deadline is None else _milliseconds(retry.deadline),
        "window_ms": _milliseconds(policies.window),
        "overlap": policies.overlap,
        "completion": completion.policy,
        "heartbeat_ms": _milliseconds(completion.heartbeat),
        "max_duration_ms": _milliseconds(completion.max_duration),
    } | _runs_document(policies.runs)


def _runs_document(runs: RunsBound | None) -> Document:
    if runs is None:
        return {}
    end_at = None if runs.end_at is None else text_of(runs.end_at)
    return {"max_runs": runs.max_runs, "asked_end_at": end_at}


def _runs_of(read: Document) -> RunsBound | None:
    if "max_runs" not in read:
        return None
    return RunsBound(max_runs=read["max_runs"], end_at=_instant_or_none(read.get("asked_end_at")))


def _policies_of(read: Document) -> Policies:
    late, deadline = read["max_lateness_ms"], read.get("retry_deadline_ms")
    return Policies(
        misfire=MisfirePolicy(
            policy=Misfire(read["misfire"]),
            after=_duration_of(read["misfire_after_ms"]),
            max_lateness=None if late is None else _duration_of(late),
            limit=read.get("limit", CATCH_UP_LIMIT_DEFAULT),
        ),
        retry=RetryPolicy(
            max_attempts=read["max_attempts"],
            base=_duration_of(read["retry_base_ms"]),
            cap=_duration_of(read["retry_cap_ms"]),
            deadline=None if deadline is None else _duration_of(deadline),
        ),
        window=_duration_of(read["window_ms"]),
        overlap=Overlap(read.get("overlap", Overlap.ALLOW)),
        runs=_runs_of(read),
        completion=_completion_of(read),
    )


def _completion_of(read: Document) -> CompletionPolicy:
    if "completion" not in read:
        return CompletionPolicy()
    return CompletionPolicy(
        policy=Completion(read["completion"]),
        heartbeat=_duration_of(read["heartbeat_ms"]),
        max_duration=_duration_of(read["max_duration_ms"]),
    )


def _target_document(target: Target) -> Document:
    match target:
        case WebhookTarget():
            where: Document = {"url": target.url}
        case AwsTarget():
            where = {"service": target.service, "arn": target.arn}
            if target.role_arn is not None:
                where["role_arn"] = target.role_arn
            if target.source:
                where |= {"source": target.source, "detail_type": target.detail_type}
    return where | {"timeout_ms": _milliseconds(target.timeout)}


def _target_of(read: Document) -> Target:
    timeout = _duration_of(read["timeout_ms"])
    if "service" in read:
        return AwsTarget(
            service=Service(read["service"]),
            arn=read["arn"],
            role_arn=read.get("role_arn"),
            source=read.get("source", ""),
            detail_type=read.get("detail_type", ""),
            timeout=timeout,
        )
    return WebhookTarget(url=read["url"], timeout=timeout)


# --- pages and messages -----------------------------------------------------------------------


def packed_page(page: Page) -> bytes:
    """Write a page, compressed: its write units go by size."""
    document = {
        "shard": page.shard,
        "bucket": text_of(page.bucket),
        "written_at": text_of(page.written_at),
        "planned": [_planned_document(planned) for planned in page.planned],
    }
    return zlib.compress(_text(document).encode())


def page_of_packed(packed: bytes) -> Page:
    """Read what `packed_page` wrote; raises `ValueError` for anything else."""
    with _readable("page"):
        read = _document(_unpacked(packed, PAGE_BYTES_MAX).decode())
        return Page(
            shard=read["shard"],
            bucket=instant_of(read["bucket"]),
            planned=tuple(_planned_of(planned) for planned in read["planned"]),
            written_at=instant_of(read["written_at"]),
        )


def body_of(message: Message, delay: timedelta) -> str:
    """Write a message for its lane.

    The delay goes with it: the queue tells a receiver when a message was sent, not how long it
    was held, and only both together tell when it became visible.
    """
    occurrence = message.occurrence
    document = _occurrence_document(occurrence) | {"lane": message.lane}
    document |= _common_document(
        occurrence, message.available_at, message.enqueued_at, message.authorised_version
    )
    document |= _stated(
        looks=message.looks,
        lost=message.lost_races,
        rd=message.round,
        hu=_text_or_none(message.held_until),
        hb=message.held_by,
        holds=message.holds,
        tokens=message.tokens,
        bs=_text_or_none(message.blocked_since),
        cu=message.caught_up,
        since=_text_or_none(message.backlog_since),
        delay_ms=_milliseconds(delay),
    )
    return _text(document)


def _stated(**fields: object) -> Document:
    """Give the fields that say anything; the others are read as they are where they are absent."""
    return {name: value for name, value in fields.items() if value}


def message_of_body(text: str, *, sent_at: datetime | None = None) -> Message:
    """Read what `body_of` wrote; raises `ValueError` for anything else.

    Given when the queue took it, the message remembers since when it is visible.
    """
    with _readable("message"):
        read = _document(text)
        occurrence = _occurrence_of(read, _key_of(read))
        message = Message(
            occurrence=occurrence,
            available_at=_available_at_of(read, occurrence),
            lane=Lane(read["lane"]),
            authorised_version=read.get("auth"),
            looks=read.get("looks", 0),
            lost_races=read.get("lost", 0),
            enqueued_at=_instant_or_none(read.get("enq")),
            round=read.get("rd", 0),
            held_until=_instant_or_none(read.get("hu")),
            held_by=read.get("hb", ""),
            holds=read.get("holds", 0),
            tokens=tuple(read.get("tokens", ())),
            blocked_since=_instant_or_none(read.get("bs")),
            caught_up=read.get("cu", False),
            backlog_since=_instant_or_none(read.get("since")),
        )
        if sent_at is None:
            return message
        return message.enqueued(sent_at + _duration_of(read.get("delay_ms", 0)))


def _planned_document(planned: Planned) -> Document:
    document = _occurrence_document(planned.occurrence)
    document |= _common_document(
        planned.occurrence, planned.available_at, None, planned.authorised_version
    )
    document["misfire_after_ms"] = _milliseconds(planned.misfire_after)
    if planned.flexible:
        document["flexible"] = True
    if planned.round:
        document["rd"] = planned.round
    if planned.caught_up_at is not None:
        document["cu_at"] = text_of(planned.caught_up_at)
    return document


def _planned_of(read: Document) -> Planned:
    occurrence = _occurrence_of(read, _key_of(read))
    return Planned(
        occurrence=occurrence,
        available_at=_available_at_of(read, occurrence),
        misfire_after=_duration_of(read["misfire_after_ms"]),
        flexible=read.get("flexible", False),
        authorised_version=read.get("auth"),
        round=read.get("rd", 0),
        caught_up_at=_instant_or_none(read.get("cu_at")),
    )


def _occurrence_document(occurrence: Occurrence) -> Document:
    key = {"t": occurrence.tenant, "s": occurrence.schedule}
    return key | _keyless_document(occurrence)


def _keyless_document(occurrence: Occurrence) -> Document:
    document: Document = {"v": occurrence.version, "at": text_of(occurrence.scheduled_for)}
    if not occurrence.is_regular:
        document |= {"k": occurrence.kind, "r": occurrence.request_id}
    return document


def _occurrence_of(read: Document, key: ScheduleKey) -> Occurrence:
    return Occurrence(
        tenant=key.tenant,
        schedule=key.schedule,
        version=read["v"],
        scheduled_for=instant_of(read["at"]),
        kind=Kind(read.get("k", Kind.REGULAR)),
        request_id=read.get("r", ""),
    )


def _key_of(read: Document) -> ScheduleKey:
    return ScheduleKey(tenant=TenantId(read["t"]), schedule=ScheduleId(read["s"]))


def _common_document(
    occurrence: Occurrence,
    available_at: datetime,
    enqueued_at: datetime | None,
    authorised_version: int | None,
) -> Document:
    document: Document = {}
    if available_at != occurrence.scheduled_for:
        document["av"] = text_of(available_at)
    if enqueued_at is not None:
        document["enq"] = text_of(enqueued_at)
    if authorised_version is not None:
        document["auth"] = authorised_version
    return document


def _available_at_of(read: Document, occurrence: Occurrence) -> datetime:
    return instant_of(read["av"]) if "av" in read else occurrence.scheduled_for


# --- the ledger -------------------------------------------------------------------------------


def run_text(run: Run) -> str:
    """Write a run but for its schedule's key and its write id, which its row holds beside it.

    Keys: `st` state, `n` attempt, `rd` round, `rn` attempt in the round, `le` lease_until, `nb`
    not_before, `cr` cancel_requested, `hu` held_until, `hb` held_by, `cu` caught_up, `why` reason,
    `da` died_at, `rq` requests; `tries` with their number, start, end, result and, behind the first
    round, round.
    """
    document = _keyless_document(run.occurrence)
    document |= _common_document(
        run.occurrence, run.available_at, run.enqueued_at, run.authorised_version
    )
    document |= {"st": run.state, "n": run.attempt, "rn": run.round_attempt}
    document |= _stated(
        rd=run.round,
        le=_text_or_none(run.lease_until),
        nb=_text_or_none(run.not_before),
        cr=run.cancel_requested,
        hu=_text_or_none(run.held_until),
        hb=run.held_by,
        cu=run.caught_up,
        why=run.reason,
        tries=[_attempt_list(attempt) for attempt in run.attempts],
        da=_text_or_none(run.died_at),
        rq=run.requests,
    )
    return _text(document)


def run_of_text(text: str, *, key: ScheduleKey, write_id: str) -> Run:
    with _readable("run"):
        read = _document(text)
        occurrence = _occurrence_of(read, key)
        return Run(
            occurrence=occurrence,
            state=RunState(read["st"]),
            available_at=_available_at_of(read, occurrence),
            enqueued_at=_instant_or_none(read.get("enq")),
            attempt=read["n"],
            round=read.get("rd", 0),
            round_attempt=read["rn"],
            lease_until=_instant_or_none(read.get("le")),
            not_before=_instant_or_none(read.get("nb")),
            authorised_version=read.get("auth"),
            cancel_requested=read.get("cr", False),
            held_until=_instant_or_none(read.get("hu")),
            held_by=read.get("hb", ""),
            caught_up=read.get("cu", False),
            reason=read.get("why", ""),
            attempts=tuple(_attempt_of(attempt) for attempt in read.get("tries", ())),
            died_at=_instant_or_none(read.get("da")),
            requests=tuple(read.get("rq", ())),
            write_id=write_id,
        )


def span_text(span: Span) -> str:
    return _text(
        {
            "v": span.version,
            "st": span.state,
            "first": text_of(span.first),
            "last": text_of(span.last),
            "why": span.reason,
        }
    )


def span_of_text(text: str, *, key: ScheduleKey) -> Span:
    with _readable("span"):
        read = _document(text)
        return Span(
            tenant=key.tenant,
            schedule=key.schedule,
            version=read["v"],
            state=RunState(read["st"]),
            first=instant_of(read["first"]),
            last=instant_of(read["last"]),
            reason=read["why"],
        )


def note_text(note: Note) -> str:
    document = _keyless_document(note.occurrence)
    return _text(document | {"why": note.reason, "noted_at": text_of(note.noted_at)})


def note_of_text(text: str, *, key: ScheduleKey) -> Note:
    with _readable("note"):
        read = _document(text)
        return Note(
            occurrence=_occurrence_of(read, key),
            reason=read["why"],
            noted_at=instant_of(read["noted_at"]),
        )


def place_text(place: Place) -> str:
    """Write an occurrence in a slot but for its schedule's key; `jv` is the judged version."""
    return _text(_keyless_document(place.occurrence) | {"jv": place.judged_version})


def place_of_text(text: str, *, key: ScheduleKey) -> Place:
    with _readable("place"):
        read = _document(text)
        return Place(occurrence=_occurrence_of(read, key), judged_version=read["jv"])


def packed_request(request: RunRequest) -> bytes:
    """Write a request but for its schedule's key and its id, compressed: it may have 1,000 fires.

    `fires` are seconds since the one before them, in groups of one version.
    """
    survey = request.survey
    document: Document = {
        "fp": request.fingerprint,
        "k": request.kind,
        "auth": request.authorised_version,
        "asked_at": text_of(request.asked_at),
        "from": text_of(request.available_from),
        "per_minute": request.per_minute,
        "fires": [
            [version, text_of(times[0]), [(b - a) // SECOND for a, b in pairwise(times)]]
            for version, times in _by_version(request.fires)
        ],
    }
    if survey is not None:
        rest_from = None if survey.rest_from is None else text_of(survey.rest_from)
        document["survey"] = [survey.looked_at, survey.ran, survey.pending, rest_from]
    return zlib.compress(_text(document).encode())


def request_of_packed(packed: bytes, *, key: ScheduleKey, request_id: str) -> RunRequest:
    """Read what `packed_request` wrote; raises `ValueError` for anything else."""
    with _readable("request"):
        read = _document(_unpacked(packed, PAGE_BYTES_MAX).decode())
        return RunRequest(
            tenant=key.tenant,
            schedule=key.schedule,
            id=request_id,
            fingerprint=read["fp"],
            kind=Kind(read["k"]),
            authorised_version=read["auth"],
            asked_at=instant_of(read["asked_at"]),
            fires=tuple(_fires_of(read["fires"])),
            available_from=instant_of(read["from"]),
            per_minute=read["per_minute"],
            survey=_survey_of(read["survey"]) if "survey" in read else None,
        )


def _by_version(fires: Sequence[OwnedFire]) -> Iterator[tuple[int, list[datetime]]]:
    for version, group in groupby(fires, key=lambda fire: fire.version):
        yield version, [fire.scheduled_for for fire in group]


def _fires_of(groups: list[Any]) -> Iterator[OwnedFire]:
    for version, first, steps in groups:
        for seconds in accumulate((0, *steps)):
            yield OwnedFire(version, instant_of(first) + seconds * SECOND)


def _survey_of(read: list[Any]) -> Survey:
    looked_at, ran, pending, rest_from = read
    return Survey(
        looked_at=looked_at, ran=ran, pending=pending, rest_from=_instant_or_none(rest_from)
    )


def _attempt_list(attempt: Attempt) -> list[int | str | None]:
    finished_at = attempt.finished_at
    written: list[int | str | None] = [
        attempt.number,
        text_of(attempt.started_at),
        None if finished_at is None else text_of(finished_at),
        attempt.result,
    ]
    return [*written, attempt.round] if attempt.round else written


def _attempt_of(read: list[Any]) -> Attempt:
    number, started_at, finished_at, result, *round_ = read
    return Attempt(
        number=number,
        started_at=instant_of(started_at),
        finished_at=_instant_or_none(finished_at),
        result=result,
        round=round_[0] if round_ else 0,
    )


# --- tenants ----------------------------------------------------------------------------------


def quotas_text(quotas: Quotas) -> str:
    """Give what a registration holds of quotas beside `schedules_max`, which is its own column."""
    return _text(
        {
            "fires_per_minute_max": quotas.fires_per_minute_max,
            "running_max": quotas.running_max,
            "catch_ups_per_minute": quotas.catch_ups_per_minute,
            "retries_per_minute": quotas.retries_per_minute,
            "smallest_interval_ms": _milliseconds(quotas.smallest_interval),
            "weight": quotas.weight,
        }
    )


def quotas_of_text(text: str, *, schedules_max: int) -> Quotas:
    """Read quotas; a registration of before they were written holds an empty document."""
    with _readable("quotas"):
        read = _document(text)
        least = read.get("smallest_interval_ms")
        return Quotas(
            schedules_max=schedules_max,
            fires_per_minute_max=read.get("fires_per_minute_max"),
            running_max=read.get("running_max"),
            catch_ups_per_minute=read.get(
                "catch_ups_per_minute", DEFAULT_QUOTAS.catch_ups_per_minute
            ),
            retries_per_minute=read.get("retries_per_minute", DEFAULT_QUOTAS.retries_per_minute),
            smallest_interval=(
                DEFAULT_QUOTAS.smallest_interval if least is None else _duration_of(least)
            ),
            weight=read.get("weight", DEFAULT_QUOTAS.weight),
        )


def target_limits_text(limits: tuple[TargetLimit, ...]) -> str:
    """Write limits of targets, each as `t` target, `r` per_minute and `n` running."""
    return _text(
        {"limits": [{"t": each.target, "r": each.per_minute, "n": each.running} for each in limits]}
    )


def target_limits_of_text(text: str) -> tuple[TargetLimit, ...]:
    """Read limits; a registration of before they were written holds an empty document."""
    with _readable("target limits"):
        return tuple(
            TargetLimit(target=read["t"], per_minute=read["r"], running=read["n"])
            for read in _document(text).get("limits", ())
        )


def holders_text(holders: Mapping[str, Share]) -> str:
    """Write who holds how many of a limit until when, in milliseconds since 1970."""
    return _text(
        {
            holder: [share.count, (share.until - EPOCH) // MILLISECOND]
            for holder, share in holders.items()
        }
    )


def holders_of_text(text: str) -> dict[str, Share]:
    with _readable("shares"):
        return {
            holder: Share(count, EPOCH + _duration_of(until))
            for holder, (count, until) in _document(text).items()
        }


def breakers_text(by_target: Mapping[str, Breaker]) -> str:
    """Write open breakers, each as `u` until, `n` how often opened, `p` probe_until."""
    return _text(
        {
            target: {
                "u": text_of(breaker.until),
                "n": breaker.opened,
                "p": None if breaker.probe_until is None else text_of(breaker.probe_until),
            }
            for target, breaker in by_target.items()
        }
    )


def breakers_of_text(text: str) -> dict[str, Breaker]:
    with _readable("breakers"):
        return {
            target: Breaker(
                until=instant_of(read["u"]),
                opened=read["n"],
                probe_until=_instant_or_none(read["p"]),
            )
            for target, read in _document(text).items()
        }


# --- zone data --------------------------------------------------------------------------------


def in_use_text(in_use: ReleasesInUse) -> str:
    """Write what is in use; the same value gives the same text, which conditions compare."""
    document: Document = {"current": in_use.current, "since": text_of(in_use.since)}
    return _text(document | {"former": sorted(in_use.former)})


def in_use_of_text(text: str) -> ReleasesInUse:
    with _readable("releases in use"):
        read = _document(text)
        return ReleasesInUse(
            current=read["current"],
            since=instant_of(read["since"]),
            former=frozenset(read["former"]),
        )


def packed_rules(rules: ZoneRules) -> bytes:
    """Write a release's data: a line of names and places, then the data once each, compressed."""
    places: dict[bytes, tuple[int, int]] = {}
    size = 0
    for data in rules.data.values():
        if data not in places:
            places[data] = (size, len(data))
            size += len(data)
    names = {name: places[data] for name, data in rules.data.items()}
    return zlib.compress(_text(names).encode() + b"\n" + b"".join(places))


def rules_of_packed(packed: bytes, *, release: str) -> ZoneRules:
    """Read what `packed_rules` wrote; raises `ValueError` for anything else."""
    with _readable("zone rules"):
        names, data = _unpacked(packed, RULES_BYTES_MAX).split(b"\n", maxsplit=1)
        places = _document(names.decode()).items()
        return ZoneRules(
            release=release,
            data={name: data[start : start + length] for name, (start, length) in places},
        )


# --- JSON -------------------------------------------------------------------------------------


def _unpacked(packed: bytes, bytes_max: int) -> bytes:
    unpacking = zlib.decompressobj()
    data = unpacking.decompress(packed, bytes_max)
    if not unpacking.eof:
        raise ValueError("it is cut short or too long")
    return data


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"))


def _document(text: str) -> Document:
    read = json.loads(text)
    if not isinstance(read, dict):
        raise TypeError("not an object")
    return read


@contextmanager
def _readable(what: str) -> Iterator[None]:
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError, zlib.error) as error:
        raise ValueError(f"unreadable {what}: {type(error).__name__}") from error


def _milliseconds(duration: timedelta) -> int:
    return duration // MILLISECOND


def _duration_of(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


def _text_or_none(instant: datetime | None) -> str | None:
    return None if instant is None else text_of(instant)


def _instant_or_none(text: str | None) -> datetime | None:
    return None if text is None else instant_of(text)
