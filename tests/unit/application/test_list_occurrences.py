"""Occurrences: rows, spans and notes of the ledger, and the fires that have no row yet."""

import json
from datetime import datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from puntual.application.list_occurrences import ListedOccurrences
from puntual.application.show_occurrence import run_key_of
from puntual.domain.errors import Rejected
from puntual.domain.instant import text_of
from puntual.domain.occurrence import UnknownOccurrence, ref_of
from puntual.domain.page_token import ForeignPageToken
from puntual.domain.policies import Policies
from puntual.domain.run import Note, Run, RunState, Span
from puntual.domain.schedule import UnknownSchedule
from puntual.domain.timeline import Entry, Fire, OccurrenceState, run_of, state_of
from tests.builders import NINE, a_forged_page_token, a_note, a_run, a_span, an_occurrence
from tests.control_plane_world import KEY, RETENTION, World, a_definition

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def listed(
    world: World,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    state: OccurrenceState | None = None,
    limit: int = 100,
    token: str | None = None,
) -> ListedOccurrences:
    return world.plane.list_occurrences(
        KEY, start=start, end=end, state=state, limit=limit, token=token
    )


def all_listed(world: World, *, limit: int, **filters: object) -> list[Entry]:
    entries: list[Entry] = []
    token = None
    for _ in range(2_000):
        page = listed(world, limit=limit, token=token, **filters)  # type: ignore[arg-type]
        entries.extend(page.entries)
        token = page.page_token
        if token is None:
            return entries
    raise AssertionError("paging does not end")


def times(entries: object) -> list[str]:
    return [run_of(entry)[11:16] for entry in entries]  # type: ignore[attr-defined]


def a_done(minute: int, *, version: int = 1, state: RunState = RunState.SUCCEEDED) -> Run:
    fire = NINE + minute * MINUTE
    return a_run(
        an_occurrence(scheduled_for=fire, version=version), state=state, write_id=f"w{minute}"
    )


def edited(world: World, expression: str, *, seen: int) -> None:
    definition = a_definition(expression)
    world.plane.change_schedule(KEY, seen=seen, revise=lambda _: definition, author="bo")


def test_what_is_to_come_is_scheduled_and_what_is_due_is_enqueued(world: World) -> None:
    world.created("*/10 * * * *")
    world.clock.advance(25 * MINUTE)
    page = listed(world)
    states = [state_of(entry, page.as_of) for entry in page.entries]
    assert times(page.entries) == [
        "09:00", "09:10", "09:20", "09:30", "09:40", "09:50", "10:00", "10:10", "10:20",
    ]  # fmt: skip
    assert states == [OccurrenceState.ENQUEUED] * 3 + [OccurrenceState.SCHEDULED] * 6
    assert page.page_token is None
    assert (page.start, page.end) == (page.as_of - 24 * HOUR, page.as_of + HOUR)


def test_a_row_stands_in_the_place_of_its_fire(world: World) -> None:
    world.created("*/10 * * * *")
    world.clock.advance(25 * MINUTE)
    world.put(a_done(10), a_done(20, state=RunState.RUNNING))
    page = listed(world, end=NINE + 25 * MINUTE)
    assert times(page.entries) == ["09:00", "09:10", "09:20"]
    assert [type(entry) for entry in page.entries] == [Fire, Run, Run]


def test_a_span_is_one_entry_and_stands_for_the_fires_in_it(world: World) -> None:
    world.created("* * * * *")
    world.clock.advance(10 * MINUTE)
    world.put(a_done(4), a_span(NINE + MINUTE, NINE + 7 * MINUTE))
    page = listed(world, end=NINE + 9 * MINUTE)
    assert times(page.entries) == ["09:00", "09:04", "09:07", "09:08", "09:09"]
    assert isinstance(page.entries[2], Span)


@pytest.mark.parametrize("limit", [1, 2, 3, 50])
def test_a_span_that_ends_behind_a_page_stands_for_fires_in_it(world: World, limit: int) -> None:
    world.created("* * * * *")
    world.clock.advance(2 * HOUR)
    world.put(a_done(4), a_span(NINE + MINUTE, NINE + 90 * MINUTE))
    entries = all_listed(world, limit=limit, end=NINE + 91 * MINUTE)
    assert times(entries) == ["09:00", "09:04", "10:30", "10:31"]


@pytest.mark.parametrize("limit", [1, 2, 50])
def test_a_span_that_ends_behind_the_range_is_shown_at_its_end(world: World, limit: int) -> None:
    world.created("* * * * *")
    world.clock.advance(2 * HOUR)
    world.put(a_span(NINE + MINUTE, NINE + 90 * MINUTE))
    entries = all_listed(world, limit=limit, end=NINE + 30 * MINUTE)
    assert times(entries) == ["09:00", "10:30"]


def test_each_version_owns_its_time(world: World) -> None:
    world.created("*/10 * * * *")
    world.clock.advance(15 * MINUTE)
    edited(world, "*/20 * * * *", seen=1)
    world.clock.advance(30 * MINUTE)
    world.plane.pause_schedule(KEY, author="bo")
    world.clock.advance(30 * MINUTE)
    world.plane.resume_schedule(KEY, author="bo")
    page = listed(world, end=NINE + 105 * MINUTE)
    versions = [entry.occurrence.version for entry in page.entries if isinstance(entry, Fire)]
    assert times(page.entries) == ["09:00", "09:10", "09:20", "09:40", "10:20", "10:40"]
    assert versions == [1, 1, 2, 2, 4, 4]
    assert [entry.voided for entry in page.entries if isinstance(entry, Fire)] == [True] * 4 + [
        False
    ] * 2


def test_the_owner_of_a_start_is_found_among_many_versions(world: World) -> None:
    world.created("*/10 * * * *")
    for seen in range(1, 40):
        world.clock.advance(10 * MINUTE)
        edited(world, "*/10 * * * *", seen=seen)
    entries = all_listed(world, limit=7, start=NINE + 95 * MINUTE, end=NINE + 305 * MINUTE)
    assert times(entries) == times(
        [a_note(an_occurrence(scheduled_for=NINE + n * 10 * MINUTE)) for n in range(10, 31)]
    )
    assert [e.occurrence.version for e in entries if isinstance(e, Fire)] == list(range(11, 32))


def test_a_note_shows_where_nothing_else_does(world: World) -> None:
    world.created("*/10 * * * *")
    world.clock.advance(5 * MINUTE)
    world.plane.pause_schedule(KEY, author="bo")
    world.clock.advance(10 * MINUTE)
    note = a_note(an_occurrence(scheduled_for=NINE + 10 * MINUTE))
    world.put(note)
    page = listed(world, start=NINE + MINUTE)
    assert page.entries == (note,)
    assert state_of(note, page.as_of) is OccurrenceState.CANCELED
    world.put(a_done(10, version=3))
    for limit in (1, 2, 50):
        assert all_listed(world, limit=limit, start=NINE + MINUTE) == [a_done(10, version=3)]


def test_a_state_is_asked_for(world: World) -> None:
    world.created("* * * * *")
    world.clock.advance(10 * MINUTE)
    world.put(*(a_done(n) for n in range(8)), a_done(8, state=RunState.DEAD))
    dead = all_listed(world, limit=3, state=OccurrenceState.DEAD)
    assert times(dead) == ["09:08"]
    enqueued = all_listed(world, limit=3, state=OccurrenceState.ENQUEUED)
    assert times(enqueued) == ["09:09", "09:10"]


def test_nothing_is_derived_that_is_older_than_the_ledger_keeps(world: World) -> None:
    world.created("0 * * * *")
    world.clock.advance(RETENTION + timedelta(days=5))
    page = listed(world, start=NINE, end=NINE + timedelta(days=6))
    first = page.entries[0]
    assert isinstance(first, Fire)
    assert first.occurrence.scheduled_for > NINE + timedelta(days=5)


def test_a_window_delays_when_an_occurrence_is_due(world: World) -> None:
    world.created("*/10 * * * *", policies=Policies(window=timedelta(minutes=5)))
    world.clock.advance(10 * MINUTE)
    page = listed(world, end=NINE + 10 * MINUTE)
    last = page.entries[-1]
    assert isinstance(last, Fire)
    due = last.available_at <= page.as_of
    expected = OccurrenceState.ENQUEUED if due else OccurrenceState.SCHEDULED
    assert state_of(last, page.as_of) is expected


def test_a_month_of_a_minutely_schedule_is_paged_and_never_computed_whole(world: World) -> None:
    world.created("* * * * *")
    world.clock.advance(timedelta(days=30))
    world.put(a_span(NINE, NINE + timedelta(days=30) - 20 * MINUTE))
    page = listed(world, start=NINE, end=NINE + timedelta(days=30), limit=100)
    assert page.page_token is not None
    entries = all_listed(world, limit=100, start=NINE, end=NINE + timedelta(days=30))
    assert len([entry for entry in entries if isinstance(entry, Span)]) == 31
    assert times(entries)[-20:] == [f"08:{n}" for n in range(41, 60)] + ["09:00"]


@settings(max_examples=100, deadline=None)
@example(limit=2, done={21}, notes={20, 21}, spans=[(0, 21)], edit=1)
@example(limit=1, done=set(), notes={1}, spans=[(0, 1)], edit=2)
@given(
    limit=st.integers(1, 7),
    done=st.sets(st.integers(0, 40)),
    notes=st.sets(st.integers(0, 40)),
    spans=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=3),
    edit=st.integers(1, 39),
)
def test_pages_of_any_size_show_the_same_as_one(
    limit: int,
    done: set[int],
    notes: set[int],
    spans: list[tuple[int, int]],
    edit: int,
) -> None:
    world = World()
    world.created("* * * * *")
    world.clock.advance(edit * MINUTE)
    edited(world, "*/2 * * * *", seen=1)
    world.clock.advance(60 * MINUTE - edit * MINUTE)
    world.put(*(a_done(n) for n in done))
    world.put(*(a_note(an_occurrence(scheduled_for=NINE + n * MINUTE, version=9)) for n in notes))
    world.put(
        *(
            a_span(NINE + min(pair) * MINUTE, NINE + max(pair) * MINUTE, version=1 + number % 2)
            for number, pair in enumerate(spans)
        )
    )
    whole = listed(world, start=NINE, end=NINE + 35 * MINUTE, limit=1_000)
    paged = all_listed(world, limit=limit, start=NINE, end=NINE + 35 * MINUTE)
    assert whole.page_token is None
    assert paged == list(whole.entries)
    shown = [run_of(entry) for entry in paged]
    assert len(shown) == len(set(shown))
    assert {text_of(NINE + n * MINUTE) for n in done if n <= 35} <= set(shown)


@pytest.mark.parametrize("token", ["", "x", "AAAA", "é", "a" * 2_000])
def test_a_bad_page_token_is_refused(world: World, token: str) -> None:
    world.created()
    with pytest.raises(Rejected) as caught:
        listed(world, token=token)
    assert caught.value.field == "page_token"


LISTING = ("occurrences", "acme", "invoices", "", "", "")
FROM, TO = "2026-11-30T08:00:00.000Z", "2026-11-30T10:00:00.000Z"


def forged(*position: object) -> str:
    return a_forged_page_token(json.dumps(position).encode(), listing=LISTING)


def test_a_forged_page_token_that_says_what_ours_do_only_skips(world: World) -> None:
    world.created("*/10 * * * *")
    page = listed(world, token=forged(FROM, TO, "2026-11-30T09:30:00.000Z~", ""))
    assert times(page.entries) == ["09:40", "09:50", "10:00"]


@pytest.mark.parametrize(
    "position",
    [
        (),
        (FROM, TO, ""),
        (FROM, TO, "", "", ""),
        (FROM, TO, "", 7),
        ("", TO, "", ""),
        (FROM, "later", "", ""),
        (TO, FROM, "", ""),
        (TO, FROM, "2026-11-30T09:30:00.000Z", ""),
        ("0001-01-01T00:00:00.000Z", TO, "", ""),
        (FROM, "9999-12-31T23:59:59.999Z", "", ""),
        (FROM, "2026-11-30T10:00Z", "", ""),
        (FROM, TO, "x", ""),
        (FROM, TO, "9999-12-31T23:59:59.999Z", ""),
        (FROM, TO, "2026-11-30T10:00:00.001Z", ""),
        (FROM, TO, "2026-11-30T09:30:00+00:00", ""),
        (FROM, TO, "2026-11-30T09:30:00.000Z#\ud800", ""),
    ],
)
def test_a_forged_page_token_that_is_not_like_ours_is_refused(
    world: World, position: tuple[object, ...]
) -> None:
    world.created()
    with pytest.raises(ForeignPageToken):
        listed(world, token=forged(*position))


def test_a_page_token_is_for_one_listing(world: World) -> None:
    world.created("* * * * *")
    token = listed(world, limit=1).page_token
    assert token is not None
    assert listed(world, limit=5, token=token).entries
    with pytest.raises(Rejected):
        listed(world, token=token, state=OccurrenceState.DEAD)
    with pytest.raises(Rejected):
        listed(world, token=token[:-2] + "AA")


def test_a_range_that_ends_before_it_begins_is_refused(world: World) -> None:
    world.created()
    with pytest.raises(Rejected) as caught:
        listed(world, start=NINE, end=NINE - MINUTE)
    assert caught.value.field == "to"


def test_an_unknown_schedule_has_no_occurrences(world: World) -> None:
    with pytest.raises(UnknownSchedule):
        listed(world)
    with pytest.raises(UnknownSchedule):
        world.plane.show_occurrence(KEY, text_of(NINE))


def test_every_ref_of_a_listing_shows_its_entry(world: World) -> None:
    world.created("*/10 * * * *")
    world.clock.advance(25 * MINUTE)
    world.put(a_done(10), a_note(an_occurrence(scheduled_for=NINE + 15 * MINUTE)))
    for entry in listed(world).entries:
        shown = world.plane.show_occurrence(KEY, ref_of(run_of(entry)))
        assert shown.entry == entry


def test_a_time_inside_a_span_shows_the_span(world: World) -> None:
    world.created("* * * * *")
    world.clock.advance(25 * MINUTE)
    span = a_span(NINE + MINUTE, NINE + 7 * MINUTE)
    world.put(span)
    assert world.plane.show_occurrence(KEY, text_of(NINE + 3 * MINUTE)).entry == span


@pytest.mark.parametrize(
    "ref", ["", "x", "2026-13-45T00:00:00.000Z", "2026-11-30T09:00:00+00:00", "~v1"]
)
def test_a_ref_that_is_none_is_refused(world: World, ref: str) -> None:
    world.created()
    with pytest.raises(Rejected) as caught:
        world.plane.show_occurrence(KEY, ref)
    assert caught.value.field == "occurrence"


@pytest.mark.parametrize("ref", ["2026-11-30T09:00:01Z", "2026-11-30T09:05:00.000Z~v7"])
def test_a_ref_of_nothing_is_unknown(world: World, ref: str) -> None:
    world.created()
    with pytest.raises(UnknownOccurrence):
        world.plane.show_occurrence(KEY, ref)


def test_a_ref_may_leave_milliseconds_out() -> None:
    assert run_key_of("2026-11-30T09:00:00Z") == (NINE, text_of(NINE))
    assert run_key_of("2026-11-30T09:00:00.000Z~v2")[1] == f"{text_of(NINE)}#v2"


def test_a_note_has_its_own_ref() -> None:
    note: Note = a_note()
    assert ref_of(run_of(note)) == "2026-11-30T09:00:00.000Z~v1"
