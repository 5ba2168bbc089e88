"""How values are written down: readable across deployments, and refused when malformed."""

import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puntual.application import codec
from puntual.domain.breaker import Breaker
from puntual.domain.cron_grammar import EXPRESSION_LENGTH_MAX
from puntual.domain.expression import Fold, Gap, Rule, rule_of
from puntual.domain.instant import text_of
from puntual.domain.labels import label_filters_of
from puntual.domain.message import Message
from puntual.domain.occurrence import Kind, Occurrence
from puntual.domain.page import Planned
from puntual.domain.policies import (
    Completion,
    CompletionPolicy,
    Misfire,
    MisfirePolicy,
    Overlap,
    Policies,
    RetryPolicy,
    RunsBound,
)
from puntual.domain.run import RunState
from puntual.domain.share import Share
from puntual.domain.target import AwsTarget, Service, Target, WebhookTarget
from puntual.domain.target_limit import TargetLimit
from puntual.domain.tenant import Quotas
from puntual.domain.zone_names import zone_names
from tests.builders import (
    NINE,
    a_cursor,
    a_message,
    a_page,
    a_place,
    a_planned,
    a_rule,
    a_run,
    a_schedule,
    a_version,
    an_occurrence,
)

KEY = a_schedule().key
SECOND = timedelta(seconds=1)


def test_a_message_is_written_as_it_was_in_the_deployment_before() -> None:
    assert codec.body_of(a_message(), timedelta(0)) == (
        '{"t":"acme","s":"invoices","v":1,"at":"2026-11-30T09:00:00.000Z","lane":"strict"}'
    )


def test_a_message_keeps_what_it_went_through() -> None:
    manual = an_occurrence(kind=Kind.MANUAL, request_id="r-1", version=3)
    message = a_message(
        manual,
        available_at=NINE + SECOND,
        authorised_version=9,
        looks=1,
        lost_races=2,
        enqueued_at=NINE + 2 * SECOND,
    )
    text = codec.body_of(message, 9 * SECOND)
    assert json.loads(text) == {
        "t": "acme",
        "s": "invoices",
        "v": 3,
        "at": "2026-11-30T09:00:00.000Z",
        "k": "manual",
        "r": "r-1",
        "lane": "strict",
        "av": "2026-11-30T09:00:01.000Z",
        "enq": "2026-11-30T09:00:02.000Z",
        "auth": 9,
        "looks": 1,
        "lost": 2,
        "delay_ms": 9000,
    }
    assert codec.message_of_body(text) == message


@pytest.mark.parametrize(
    ("target", "written"),
    [
        (
            WebhookTarget(url="https://acme.example/hook"),
            {"url": "https://acme.example/hook", "timeout_ms": 10_000},
        ),
        (
            AwsTarget(service=Service.SQS, arn="arn:q"),
            {"service": "sqs", "arn": "arn:q", "timeout_ms": 45_000},
        ),
        (
            AwsTarget(
                service=Service.EVENTBRIDGE,
                arn="arn:b",
                role_arn="arn:r",
                source="acme",
                detail_type="Order Due",
            ),
            {
                "service": "eventbridge",
                "arn": "arn:b",
                "role_arn": "arn:r",
                "source": "acme",
                "detail_type": "Order Due",
                "timeout_ms": 45_000,
            },
        ),
    ],
)
def test_a_target_is_written_as_it_was_in_the_deployment_before(
    target: Target, written: dict[str, object]
) -> None:
    text = codec.version_text(a_version(target=target))
    assert json.loads(text)["target"] == written
    assert codec.version_of_text(text, until=None).target == target


def test_keys_that_a_later_version_adds_are_passed_over() -> None:
    document = json.loads(codec.body_of(a_message(), timedelta(0))) | {"later": [1]}
    assert codec.message_of_body(json.dumps(document)) == a_message()


def test_a_run_is_written_as_it_was_in_the_deployment_before() -> None:
    run = replace(a_run(state=RunState.DEAD, reason="HTTP 400"), round=1)
    assert json.loads(codec.run_text(run)) == {
        "v": 1,
        "at": "2026-11-30T09:00:00.000Z",
        "enq": "2026-11-30T09:00:00.000Z",
        "st": "DEAD",
        "n": 1,
        "rn": 1,
        "rd": 1,
        "why": "HTTP 400",
        "tries": [[1, "2026-11-30T09:00:01.000Z", None, ""]],
    }


def test_a_head_states_every_policy_so_that_defaults_may_change() -> None:
    head = json.loads(codec.head_text(a_schedule()))
    assert head["policies"] == {
        "misfire": "fire_once",
        "misfire_after_ms": 60_000,
        "max_lateness_ms": None,
        "limit": 100,
        "max_attempts": 5,
        "retry_base_ms": 10_000,
        "retry_cap_ms": 1_800_000,
        "retry_deadline_ms": None,
        "window_ms": 0,
        "overlap": "allow",
        "completion": "response",
        "heartbeat_ms": 120_000,
        "max_duration_ms": 7_200_000,
    }


@pytest.mark.parametrize("end_at", [None, NINE])
def test_a_head_keeps_how_many_runs_it_was_given(end_at: datetime | None) -> None:
    runs = RunsBound(max_runs=3, end_at=end_at)
    head = a_schedule(a_version(policies=Policies(runs=runs)))
    assert codec.head_of_text(codec.head_text(head), state=head.state) == head


def test_a_head_without_such_a_bound_is_written_as_before() -> None:
    assert "max_runs" not in codec.head_text(a_schedule())


def test_a_request_that_says_nothing_is_refused() -> None:
    for packed in (b"", zlib.compress(b"{}"), zlib.compress(b"[]")):
        with pytest.raises(ValueError, match="request"):
            codec.request_of_packed(packed, key=KEY, request_id="r-1")


LABELED = (("env", ""), ("team", "a = b"), ("x/y", "ñ"))


def test_labels_are_written_so_that_each_can_be_looked_for() -> None:
    text = codec.labels_text(LABELED)
    assert text == "\nenv=\nteam=a = b\nx/y=ñ\n"
    assert codec.labels_of_text(text) == LABELED
    assert codec.labels_text(()) == ""
    for asked in ("env", "env=", "team", "team=a = b", "x/y=ñ"):
        (label,) = label_filters_of([asked])
        assert codec.label_filter_text(label) in text
    for asked in ("env=x", "te", "am", "team=a", "b"):
        (label,) = label_filters_of([asked])
        assert codec.label_filter_text(label) not in text


@pytest.mark.parametrize("text", ["\nteam\n", "team"])
def test_what_are_no_labels_is_unreadable(text: str) -> None:
    with pytest.raises(ValueError, match="unreadable labels"):
        codec.labels_of_text(text)


def test_a_version_without_labels_is_written_as_it_was_in_the_deployment_before() -> None:
    text = codec.version_text(a_version())
    assert "labels" not in json.loads(text)
    assert codec.version_of_text(text, until=None).labels == ()
    assert codec.head_of_text(codec.head_text(a_schedule()), state="ACTIVE").labels == ()


def test_a_version_keeps_its_labels() -> None:
    version = replace(a_version(), labels=LABELED)
    assert codec.version_of_text(codec.version_text(version), until=None) == version


def test_a_head_of_the_deployment_before_allows_overlaps() -> None:
    document = json.loads(codec.head_text(a_schedule()))
    del document["policies"]["overlap"]
    del document["policies"]["limit"]
    assert codec.head_of_text(json.dumps(document), state="ACTIVE") == a_schedule()


def test_a_version_of_the_deployment_before_ends_by_its_answer() -> None:
    document = json.loads(codec.version_text(a_version()))
    for name in ("completion", "heartbeat_ms", "max_duration_ms"):
        del document["policies"][name]
    assert codec.version_of_text(json.dumps(document), until=None) == a_version()


def test_heads_and_versions_keep_how_runs_are_completed() -> None:
    completion = CompletionPolicy(
        policy=Completion.CALLBACK,
        heartbeat=timedelta(seconds=90),
        max_duration=timedelta(hours=24),
    )
    version = a_version(policies=Policies(completion=completion))
    assert codec.version_of_text(codec.version_text(version), until=None) == version
    head = a_schedule(version)
    assert codec.head_of_text(codec.head_text(head), state="ACTIVE") == head


@pytest.mark.parametrize("overlap", Overlap)
def test_heads_and_versions_keep_the_overlap(overlap: Overlap) -> None:
    version = a_version(policies=Policies(overlap=overlap))
    assert codec.version_of_text(codec.version_text(version), until=None) == version
    head = a_schedule(version)
    assert codec.head_of_text(codec.head_text(head), state="ACTIVE") == head


@pytest.mark.parametrize(
    "occurrence", [an_occurrence(), an_occurrence(kind=Kind.MANUAL, request_id="r-1", version=3)]
)
def test_a_place_is_read_as_it_was_written(occurrence: Occurrence) -> None:
    place = a_place(occurrence, judged_version=7)
    assert codec.place_of_text(codec.place_text(place), key=KEY) == place


def test_a_run_that_was_asked_to_end_says_so() -> None:
    asked = replace(a_run(), cancel_requested=True)
    text = codec.run_text(asked)
    assert codec.run_of_text(text, key=KEY, write_id=asked.write_id) == asked
    assert "cr" not in json.loads(codec.run_text(a_run()))


def test_keys_sort_as_time_does() -> None:
    cursor = a_cursor(NINE + SECOND, version=a_version(version=12))
    assert codec.bucket_text(cursor.bucket, 7) == "2026-11-30T09:00Z#7"
    assert codec.cursor_text(cursor) == "2026-11-30T09:00:01.000Z#acme#invoices#12"
    assert codec.page_key_text(a_page()) == f"2026-11-30T09:00Z#{a_page().id}"


@given(
    st.lists(
        st.builds(
            lambda version, seconds, authorised, flexible: replace(
                a_planned(
                    an_occurrence(version=version),
                    authorised_version=authorised,
                    flexible=flexible,
                ),
                available_at=NINE + timedelta(seconds=seconds),
            ),
            st.integers(1, 10**6),
            st.integers(0, 86_399),
            st.none() | st.integers(0, 10**6),
            st.booleans(),
        ),
        min_size=1,
        max_size=100,
    )
)
def test_a_page_is_read_as_it_was_packed(planned: list[Planned]) -> None:
    page = replace(a_page(), planned=tuple(planned))
    assert codec.page_of_packed(codec.packed_page(page)) == page


@pytest.mark.parametrize(
    "text",
    ["", "nothing", "[]", "7", "null", "{}", '{"t":1}', codec.body_of(a_message(), SECOND)[:-9]],
)
def test_what_is_no_message_is_refused_as_such(text: str) -> None:
    with pytest.raises(ValueError, match="unreadable message"):
        codec.message_of_body(text)


@pytest.mark.parametrize(
    ("key", "value"),
    [("at", "tomorrow"), ("at", "2026-11-30T09:00:00"), ("at", 7), ("lane", "slow"), ("k", "x")],
)
def test_a_message_with_a_value_that_is_none_is_refused(key: str, value: object) -> None:
    document = json.loads(codec.body_of(a_message(), timedelta(0))) | {key: value}
    with pytest.raises(ValueError, match="unreadable message"):
        codec.message_of_body(json.dumps(document))


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"junk",
        zlib.compress(b"{}"),
        zlib.compress(b"\xff"),
        codec.packed_page(a_page())[:-3],
        zlib.compress(b" " * (codec.PAGE_BYTES_MAX + 1)),
    ],
)
def test_what_is_no_page_is_refused_as_such(packed: bytes) -> None:
    with pytest.raises(ValueError, match="unreadable page"):
        codec.page_of_packed(packed)


@pytest.mark.parametrize(
    ("what", "read"),
    [
        ("run", lambda text: codec.run_of_text(text, key=KEY, write_id="w")),
        ("span", lambda text: codec.span_of_text(text, key=KEY)),
        ("note", lambda text: codec.note_of_text(text, key=KEY)),
        ("head", lambda text: codec.head_of_text(text, state="ACTIVE")),
        ("version", lambda text: codec.version_of_text(text, until=None)),
    ],
)
def test_rows_that_nobody_of_us_wrote_are_refused(what: str, read: Callable[[str], object]) -> None:
    for text in ("{", "{}", "[]"):
        with pytest.raises(ValueError, match=f"unreadable {what}"):
            read(text)


@pytest.mark.parametrize("text", ["{", "[]", '{"smallest_interval_ms":"x"}'])
def test_quotas_that_nobody_of_us_wrote_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="unreadable quotas"):
        codec.quotas_of_text(text, schedules_max=1)


def test_quotas_are_read_as_they_were_written_and_new_ones_have_defaults() -> None:
    quotas = Quotas(schedules_max=3, running_max=5, smallest_interval=timedelta(hours=1), weight=9)
    assert codec.quotas_of_text(codec.quotas_text(quotas), schedules_max=3) == quotas
    assert codec.quotas_of_text("{}", schedules_max=3) == Quotas(schedules_max=3)


def test_a_message_that_was_held_keeps_by_whom_and_its_tokens() -> None:
    held = replace(
        a_message(),
        held_until=NINE + SECOND,
        held_by="held by running_max",
        holds=3,
        tokens=("fires", "target#https://acme.example"),
        blocked_since=NINE,
    )
    assert codec.message_of_body(codec.body_of(held, SECOND)) == held


def test_a_run_that_was_held_keeps_by_whom() -> None:
    run = replace(a_run(), held_until=NINE + SECOND, held_by="held by running_max")
    assert codec.run_of_text(codec.run_text(run), key=KEY, write_id=run.write_id) == run


def test_limits_of_targets_are_read_as_they_were_written() -> None:
    limits = (
        TargetLimit(target="https://acme.example", per_minute=60),
        TargetLimit(target="https://acme.example:8443", running=2),
    )
    assert codec.target_limits_of_text(codec.target_limits_text(limits)) == limits
    assert codec.target_limits_of_text("{}") == (), "registered before there were any"


def test_shares_and_breakers_are_read_as_they_were_written() -> None:
    holders = {"a1": Share(3, NINE + timedelta(milliseconds=1)), "b2": Share(1, NINE)}
    assert codec.holders_of_text(codec.holders_text(holders)) == holders
    breakers = {
        "https://acme.example": Breaker(until=NINE, opened=2, probe_until=NINE + SECOND),
        "https://b.example": Breaker(until=NINE),
    }
    assert codec.breakers_of_text(codec.breakers_text(breakers)) == breakers


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (codec.holders_of_text, "[]"),
        (codec.holders_of_text, '{"a":1}'),
        (codec.holders_of_text, '{"a":[1]}'),
        (codec.breakers_of_text, ""),
        (codec.breakers_of_text, '{"a":{"u":"soon","n":1,"p":null}}'),
        (codec.target_limits_of_text, "7"),
        (codec.target_limits_of_text, '{"limits":[{}]}'),
    ],
)
def test_what_is_none_of_the_gates_rows_is_refused_as_such(
    read: Callable[[str], object], text: str
) -> None:
    with pytest.raises(ValueError, match="unreadable"):
        read(text)


def test_a_message_that_was_parked_keeps_when_it_first_was_visible() -> None:
    parked: Message = a_message(enqueued_at=NINE)
    body = codec.body_of(parked, 60 * SECOND)
    assert codec.message_of_body(body, sent_at=NINE + 300 * SECOND).enqueued_at == NINE


LONGEST_KEY = "x" * 64
INDEX_KEY_BYTES_MAX = 1024
FULL_RULE = Rule(
    expression="0 9 * * 1#2",
    time_zone="Europe/Madrid",
    gap=Gap.FIRE_AFTER,
    fold=Fold.SECOND,
    anchor=NINE,
    start_at=NINE - SECOND / 1000,
    end_at=NINE + SECOND,
)


def test_a_rule_is_written_as_it_was_in_the_deployment_before() -> None:
    assert codec.rule_text(a_rule("0 9 * * *")) == "UTC#sa####0 9 * * *"
    assert codec.rule_text(a_rule("rate(5 minutes)")) == (
        "UTC#sa#2026-11-30T09:00:00.000Z###rate(5 minutes)"
    )
    assert codec.rule_text(FULL_RULE) == (
        "Europe/Madrid#fs##2026-11-30T08:59:59.999Z#2026-11-30T09:00:01.000Z#0 9 * * 1#2"
    )


@pytest.mark.parametrize("gap", Gap)
@pytest.mark.parametrize("fold", Fold)
@pytest.mark.parametrize(
    "expression", ["0 9 * * 1#2", " rate(5 minutes)", "at(2027-01-01T00:00:00)"]
)
def test_a_rule_that_is_read_back_fires_as_the_one_that_was_written(
    expression: str, fold: Fold, gap: Gap
) -> None:
    rule = replace(FULL_RULE, expression=expression, gap=gap, fold=fold, end_at=None)
    read = codec.rule_of_text(codec.rule_text(rule))
    assert replace(read, anchor=NINE) == rule
    assert read.fires_between(NINE, NINE + 9999 * SECOND, limit=9) == rule.fires_between(
        NINE, NINE + 9999 * SECOND, limit=9
    )


def test_rules_of_the_same_fires_are_written_alike_whenever_they_were_made() -> None:
    later = replace(a_rule("0 9 * * *"), anchor=NINE + SECOND)
    assert codec.rule_text(later) == codec.rule_text(a_rule("0 9 * * *"))
    paced = replace(a_rule(), anchor=NINE + SECOND)
    assert codec.rule_text(paced) != codec.rule_text(a_rule())


@pytest.mark.parametrize(
    "text",
    ["", "UTC#sa###0 9 * * *", "UTC#xa####0 9 * * *", "UTC#####0 9 * * *", "UTC#sa#never###x"],
)
def test_a_rule_that_was_not_written_here_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="unreadable rule"):
        codec.rule_of_text(text)


@pytest.mark.parametrize("term", ["H", "H/1", "H(0-59)", "H(10-59)/1", "H/10"])
def test_the_longest_rule_fits_into_an_index_key(term: str) -> None:
    hours = " * * * *"
    terms = (EXPRESSION_LENGTH_MAX - len(hours) + 1) // (len(term) + 1)
    rule = rule_of(
        ",".join([term] * terms) + hours,
        time_zone="America/Argentina/ComodRivadavia",
        gap=Gap.FIRE_AFTER,
        fold=Fold.SECOND,
        anchor=NINE,
        now=NINE,
        start_at=NINE,
        end_at=NINE + timedelta(days=999),
        hash_key="acme/invoices",
    )
    # As long as a zone's name and a rate's anchor could make it besides.
    spare = max(map(len, zone_names())) + len(text_of(NINE))
    text = codec.spread_text(a_schedule(a_version(schedule=LONGEST_KEY, rule=rule)))
    assert len(text.encode()) + spare < INDEX_KEY_BYTES_MAX


def test_schedules_are_spread_evenly_by_their_ids_alone() -> None:
    places = [
        int(codec.spread_text(a_schedule(a_version(schedule=f"job-{number:05d}")))[:8], 16)
        for number in range(4_000)
    ]
    below = sum(place < 2**30 for place in places)
    assert below == pytest.approx(1_000, rel=0.1)
    edited = a_version(version=2, rule=a_rule("0 9 * * *"))
    assert codec.spread_text(a_schedule(edited))[:8] == codec.spread_text(a_schedule())[:8]


def test_rounds_are_read_as_they_were_written() -> None:
    tries = (*a_run().attempts, replace(a_run().attempts[0], number=2, round=1))
    run = replace(a_run(state=RunState.DEAD), attempts=tries, round=1, died_at=NINE)
    run = replace(run, requests=("one", "two"), authorised_version=3)
    key = a_schedule().key
    assert codec.run_of_text(codec.run_text(run), key=key, write_id=run.write_id) == run
    message = replace(a_message(), round=2)
    assert codec.message_of_body(codec.body_of(message, timedelta(0))) == message
    page = a_page(replace(a_planned(), round=2))
    assert codec.page_of_packed(codec.packed_page(page)) == page


def test_a_schedule_from_before_deadlines_has_none() -> None:
    written = json.loads(codec.head_text(a_schedule()))
    del written["policies"]["retry_deadline_ms"]
    assert codec.head_of_text(json.dumps(written), state="ACTIVE") == a_schedule()


def test_a_deadline_is_read_as_it_was_written() -> None:
    retry = RetryPolicy(deadline=timedelta(seconds=90))
    head = a_schedule(a_version(policies=Policies(retry=retry)))
    assert codec.head_of_text(codec.head_text(head), state="ACTIVE") == head


def test_what_catches_up_is_kept_on_pages_messages_and_rows() -> None:
    at = NINE + timedelta(seconds=5)
    planned = replace(a_planned(), caught_up_at=at)
    page = a_page(planned)
    assert codec.page_of_packed(codec.packed_page(page)) == page
    message = replace(a_message(), held_until=at, caught_up=True, backlog_since=NINE)
    assert codec.message_of_body(codec.body_of(message, timedelta(0))) == message
    run = replace(a_run(), caught_up=True)
    assert codec.run_of_text(codec.run_text(run), key=KEY, write_id=run.write_id) == run


@pytest.mark.parametrize("limit", [1, 1_000])
def test_heads_and_versions_keep_policy_and_limit(limit: int) -> None:
    misfire = MisfirePolicy(policy=Misfire.CATCH_UP, limit=limit)
    version = a_version(policies=Policies(misfire=misfire))
    assert codec.version_of_text(codec.version_text(version), until=None) == version
    head = a_schedule(version)
    assert codec.head_of_text(codec.head_text(head), state="ACTIVE") == head
