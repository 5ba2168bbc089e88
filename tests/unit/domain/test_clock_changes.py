"""Notes on clock changes: what each claims is what the engine's fires around it show."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puntual.domain.clock_changes import (
    FIRES_OF_A_CHANGE_MAX,
    ChangeKind,
    ClockChange,
    FireNoteKind,
    clock_changes_of,
    fire_notes_of,
)
from puntual.domain.expression import Fold, Gap, Rule
from puntual.domain.instant import FIRST_INSTANT, LAST_INSTANT, YEAR
from tests.builders import a_rule

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NEW_YORK = "America/New_York"
SECOND = timedelta(seconds=1)
AROUND = timedelta(hours=30)
FIRES_MAX = 10_000


def changes(rule: Rule, after: datetime = NOW, days: int = 366) -> tuple[ClockChange, ...]:
    return clock_changes_of(rule, after=after, through=after + timedelta(days=days)).changes


@pytest.mark.parametrize(
    ("rule", "what", "outcome"),
    [
        (
            a_rule("30 2 * * *", NEW_YORK),
            "02:30 on 2026-03-08 does not exist",
            "that fire is skipped",
        ),
        (
            a_rule("*/15 * * * *", NEW_YORK),
            "4 times from 02:00 to 02:45 on 2026-03-08 do not exist",
            "its pace goes on unbroken",
        ),
        (
            a_rule("*/15 * * * *", "Australia/Lord_Howe"),
            "2 times from 02:00 to 02:15 on 2026-10-04 do not exist",
            "its pace goes on unbroken",
        ),
        (
            a_rule("0,40 * * * *", "Australia/Lord_Howe"),
            "02:00 on 2026-10-04 does not exist",
            "that fire is skipped",
        ),
        (  # An hour and a half lie between the fires of 01:00 and 03:00.
            a_rule("0 * * * *", "Australia/Lord_Howe"),
            "02:00 on 2026-10-04 does not exist",
            "that fire is skipped",
        ),
        (
            a_rule("*/15 2 * * *", NEW_YORK),
            "4 times from 02:00 to 02:45 on 2026-03-08 do not exist",
            "those fires are skipped",
        ),
        (
            a_rule("30 2 * * *", NEW_YORK, gap=Gap.FIRE_AFTER),
            "02:30 on 2026-03-08 does not exist",
            "it fires at 03:00",
        ),
        (
            a_rule("0,30 2 * * *", NEW_YORK, gap=Gap.FIRE_AFTER),
            "2 times from 02:00 to 02:30 on 2026-03-08 do not exist",
            "they become one fire, at 03:00",
        ),
        (
            a_rule("30 1 * * *", NEW_YORK),
            "01:30 on 2026-11-01 comes twice",
            "it fires once, in the first pass",
        ),
        (
            a_rule("0,30 1 * * *", NEW_YORK, fold=Fold.SECOND),
            "2 times from 01:00 to 01:30 on 2026-11-01 come twice",
            "each fires once, in the second pass",
        ),
        (
            a_rule("30 1 * * *", NEW_YORK, fold=Fold.BOTH),
            "01:30 on 2026-11-01 comes twice",
            "it fires in both passes",
        ),
        (
            a_rule("cron(30 23 ? * * 2024)", "Africa/Cairo", fold=Fold.BOTH),
            "23:30 on 2024-10-31 comes twice",
            "it fires in both passes",
        ),
        (
            a_rule("at(2026-11-01T01:30:20)", NEW_YORK),
            "01:30:20 on 2026-11-01 comes twice",
            "it fires once, in the first pass",
        ),
        (
            a_rule("at(2026-03-08T02:30:00)", NEW_YORK, gap=Gap.FIRE_AFTER),
            "02:30 on 2026-03-08 does not exist",
            "it fires at 03:00",
        ),
        (
            a_rule("at(2026-03-08T02:30:00)", NEW_YORK),
            "02:30 on 2026-03-08 does not exist",
            "that fire is skipped",
        ),
        (
            a_rule("cron(0 6 * * ? 2011)", "Pacific/Apia"),
            "06:00 on 2011-12-30 does not exist",
            "that fire is skipped",
        ),
        (
            a_rule("5 23,0 * * *", "America/Nuuk"),
            "23:05 on 2026-03-28 does not exist",
            "that fire is skipped",
        ),
    ],
)
def test_a_change_is_told_in_a_sentence(rule: Rule, what: str, outcome: str) -> None:
    after = NOW if rule.expression[:4] != "cron" else datetime(2011, 6, 1, tzinfo=UTC)
    found = clock_changes_of(rule, after=after, through=after + 20 * YEAR).changes
    told = f"{what} in {rule.time_zone}: {outcome}."
    assert told in [change.sentence for change in found]


def test_a_change_over_midnight_names_both_days() -> None:
    rule = a_rule("30 23,0,1 * * *", "Antarctica/Casey")
    (change,) = changes(rule, datetime(2010, 3, 1, tzinfo=UTC), days=60)
    assert change.times == "3 times from 23:30 on 2010-03-04 to 01:30 on 2010-03-05"


def test_an_interval_skips_in_a_gap_and_keeps_its_pace_in_a_fold() -> None:
    spring, autumn = changes(a_rule("*/30 * * * *", NEW_YORK, gap=Gap.FIRE_AFTER))
    assert (spring.kind, spring.count, spring.fires) == (ChangeKind.SKIPPED, 2, ())
    assert (autumn.kind, autumn.count) == (ChangeKind.DOUBLED, 2)
    first_pass = datetime(2026, 11, 1, 5, tzinfo=UTC)
    assert autumn.fires == tuple(first_pass + step * timedelta(minutes=30) for step in range(4))


def test_the_fires_of_a_change_are_the_first_few() -> None:
    _, autumn = changes(a_rule("* * * * *", NEW_YORK))
    assert autumn.count == 60
    assert len(autumn.fires) == FIRES_OF_A_CHANGE_MAX


def test_a_rate_counts_elapsed_time_and_has_no_notes() -> None:
    rule = a_rule("rate(1 hour)", NEW_YORK)
    assert changes(rule) == ()
    assert fire_notes_of(rule, datetime(2026, 11, 1, 5, tzinfo=UTC)) == ()


def test_what_comes_before_the_first_fire_is_passed_over() -> None:
    start_at = datetime(2170, 1, 1, tzinfo=UTC)
    rule, through = a_rule("30 2 * * *", "Europe/Berlin"), start_at + timedelta(days=366)
    found = clock_changes_of(replace(rule, start_at=start_at), after=NOW, through=through)
    assert [change.instant.year for change in found.changes] == [2170, 2170]
    assert found.through == through


def test_a_change_is_listed_until_its_second_pass_is_over() -> None:
    rule, back = a_rule("30 1 * * *", NEW_YORK), datetime(2026, 11, 1, 6, tzinfo=UTC)
    over = back + timedelta(hours=1)
    assert [change.instant for change in changes(rule, over - SECOND, days=9)] == [back]
    assert changes(rule, over, days=9) == ()
    ahead = datetime(2026, 3, 8, 7, tzinfo=UTC)
    gap = a_rule("30 2 * * *", NEW_YORK, gap=Gap.FIRE_AFTER)
    assert [change.instant for change in changes(gap, ahead - SECOND, days=9)] == [ahead]
    assert changes(gap, ahead, days=9) == ()


def test_a_change_outside_the_bounds_touches_nothing() -> None:
    ahead, back = datetime(2026, 3, 8, 7, tzinfo=UTC), datetime(2026, 11, 1, 6, tzinfo=UTC)
    daily = a_rule("30 1,2 * * *", NEW_YORK)
    assert [change.instant for change in changes(daily)] == [ahead, back]
    assert changes(replace(daily, end_at=ahead - SECOND)) == ()
    assert [change.instant for change in changes(replace(daily, start_at=ahead + SECOND))] == [back]
    first_pass = back - timedelta(minutes=30)
    second_pass = back + timedelta(minutes=30)
    for start_at, end_at, told in (
        (first_pass, second_pass, [back]),
        (first_pass + SECOND, back + timedelta(days=9), []),
        (ahead + SECOND, second_pass - SECOND, []),
    ):
        found = changes(replace(daily, start_at=start_at, end_at=end_at), after=ahead)
        assert [change.instant for change in found] == told


def test_a_search_that_ends_early_says_how_far_it_reached() -> None:
    rule, start = a_rule("30 2 * * *", NEW_YORK), datetime(1970, 1, 1, tzinfo=UTC)
    found = clock_changes_of(rule, after=start, through=LAST_INSTANT)
    assert found.through < LAST_INSTANT
    assert found.through > start + 100 * YEAR
    assert found.changes[-1].instant <= found.through
    again = clock_changes_of(rule, after=found.through, through=found.through + YEAR)
    last, first = found.changes[-1].instant, again.changes[0].instant
    assert first.year == last.year + 1, "nothing is left out between the two"


def test_a_rare_rule_is_looked_at_through_its_whole_life() -> None:
    rule = a_rule("30 23 29 2 *", "Asia/Almaty", fold=Fold.BOTH)
    found = clock_changes_of(rule, after=FIRST_INSTANT, through=LAST_INSTANT)
    assert found.through == LAST_INSTANT
    assert [change.first for change in found.changes] == [datetime(2024, 2, 29, 23, 30)]  # noqa: DTZ001 a wall


def test_a_change_at_the_very_end_of_what_was_asked_for_is_told() -> None:
    rule, back = a_rule("30 23 29 2 *", "Asia/Almaty"), datetime(2024, 2, 29, 18, tzinfo=UTC)
    found = clock_changes_of(rule, after=back - YEAR, through=back)
    assert [change.instant for change in found.changes] == [back]
    assert clock_changes_of(rule, after=back - YEAR, through=back - SECOND).changes == ()


def test_a_change_beside_the_edge_of_a_period_is_told_once() -> None:
    rule = a_rule("30 23 * * *", "America/Santiago")
    back = datetime(1973, 3, 11, 3, tzinfo=UTC)
    assert [change.instant for change in changes(rule, back - timedelta(days=9), days=99)] == [back]


ZONES = {
    NEW_YORK: (2018, 2034),
    "Europe/Dublin": (2018, 2034),
    "Australia/Lord_Howe": (2018, 2034),
    "Antarctica/Troll": (2018, 2034),
    "Africa/Casablanca": (2018, 2034),
    "Africa/Cairo": (2018, 2034),
    "America/Havana": (2018, 2034),
    "America/Nuuk": (2022, 2030),
    "America/Scoresbysund": (2022, 2030),
    "America/Sao_Paulo": (2014, 2020),
    "America/Santiago": (1971, 1976),  # a change beside the edge of a period of the zone's history
    "Asia/Almaty": (2020, 2028),
    "Asia/Kathmandu": (1980, 1990),
    "Pacific/Apia": (2009, 2022),
    "Pacific/Kwajalein": (1965, 1997),
    "UTC": (2020, 2026),
}
EXPRESSIONS = (
    "30 2 * * *",
    "30 1,2 * * 0",
    "*/20 1-3 * * *",
    "0 0 * * *",
    "15 23 L * *",
    "*/7 0-4 * * *",
    "0 */2 * * *",
    "30 0-23 29 2 *",
    "0 3 * * 2#5",
    "0 0 13 * 5",
    "cron(45 1,2 ? 3,4,10,11 SUN 2018-2034/2)",
    "* * * * *",
    "*/15 * * * *",
    "0 * * * 0",
)


@cache
def transitions(zone: str) -> list[datetime]:
    """The instants at which a zone's offset changes, found by looking at it every six hours."""
    first, last = ZONES[zone]
    start, steps = datetime(first, 1, 1, tzinfo=UTC), (last + 2 - first) * 366 * 4
    looks = [start + step * timedelta(hours=6) for step in range(steps)]
    found = []
    for sooner, later in pairwise(looks):
        low, high = sooner, later
        if offset(zone, low) == offset(zone, high):
            continue
        while high - low > SECOND:
            middle = (low + (high - low) / 2).replace(microsecond=0)
            if offset(zone, middle) == offset(zone, sooner):
                low = middle
            else:
                high = middle
        found.append(high)
    return found


def offset(zone: str, instant: datetime) -> timedelta:
    found = instant.astimezone(ZoneInfo(zone)).utcoffset()
    assert found is not None
    return found


@st.composite
def rules(draw: st.DrawFn) -> tuple[Rule, datetime]:
    """A rule and an instant, now and then bounded close to a change of its clocks."""
    zone = draw(st.sampled_from([*ZONES]))
    first, last = ZONES[zone]
    within = st.datetimes(
        min_value=datetime(first, 2, 1),  # noqa: DTZ001 Hypothesis adds the zone
        max_value=datetime(last - 2, 1, 1),  # noqa: DTZ001
        timezones=st.just(UTC),
    )
    # What comes within a year of an instant must have been looked for.
    known = [each for each in transitions(zone) if first < each.year < last]
    near = st.builds(
        lambda instant, minutes: instant + timedelta(minutes=minutes),
        st.sampled_from(known or [NOW]),
        st.integers(-180, 180),
    )
    start_at = draw(st.none() | near)
    end_at = draw(st.none() | near)
    if start_at is not None and end_at is not None and end_at < start_at:
        start_at, end_at = end_at, start_at
    rule = a_rule(
        draw(st.sampled_from(EXPRESSIONS)),
        zone,
        gap=draw(st.sampled_from(Gap)),
        fold=draw(st.sampled_from(Fold)),
        start_at=start_at,
        end_at=end_at,
    )
    return rule, draw(within | near)


def owed_walls(rule: Rule, instant: datetime) -> list[datetime]:
    """The times of a rule that a change at `instant` takes away or shows twice, as if in UTC."""
    before, after = offset(rule.time_zone, instant - SECOND), offset(rule.time_zone, instant)
    low, high = sorted([instant + before, instant + after])
    named = replace(rule, time_zone="UTC", start_at=None, end_at=None)
    walls = named.fires_between(low - SECOND, high - SECOND, limit=FIRES_MAX)
    first, last = rule.start_at or FIRST_INSTANT, rule.end_at or LAST_INSTANT
    if after > before:
        return list(walls) if first <= instant <= last else []
    return [wall for wall in walls if first <= wall - before and wall - after <= last]


@given(rules())
def test_every_change_that_touches_a_rule_has_its_note_and_no_other(
    given_rule: tuple[Rule, datetime],
) -> None:
    rule, after = given_rule
    through = after + YEAR
    found = clock_changes_of(rule, after=after, through=through)
    assert found.through == through
    expected = []
    for instant in transitions(rule.time_zone):
        length = offset(rule.time_zone, instant - SECOND) - offset(rule.time_zone, instant)
        under_way = instant + max(length, timedelta(0)) > after
        if under_way and instant <= through and owed_walls(rule, instant):
            expected.append(instant)
    assert [change.instant for change in found.changes] == expected


@given(rules())
def test_what_a_note_claims_is_what_the_engine_fires(given_rule: tuple[Rule, datetime]) -> None:
    rule, after = given_rule
    for change in clock_changes_of(rule, after=after, through=after + YEAR).changes:
        instant = change.instant
        before, offset_after = change.offset_before, change.offset_after
        assert before == offset(rule.time_zone, instant - SECOND)
        assert offset_after == offset(rule.time_zone, instant)
        walls = owed_walls(rule, instant)
        assert [change.first, change.last] == [
            each.replace(tzinfo=None) for each in (walls[0], walls[-1])
        ]
        assert change.count == len(walls)
        fires = set(rule.fires_between(instant - AROUND, instant + AROUND, limit=FIRES_MAX))
        check_claim(rule, change, walls, fires)


def check_claim(
    rule: Rule, change: ClockChange, walls: list[datetime], fires: set[datetime]
) -> None:
    instant, before, after = change.instant, change.offset_before, change.offset_after
    named_at_end = bool(owed_at(rule, instant + after))
    first_passes = [wall - before for wall in walls]
    second_passes = [wall - after for wall in walls]
    match change.kind:
        case ChangeKind.SKIPPED:
            assert before < after
            assert change.fires == ()
            assert (instant in fires) == named_at_end
        case ChangeKind.SHIFTED:
            assert before < after
            assert change.fires == (instant,)
            assert instant in fires
            assert rule.gap is Gap.FIRE_AFTER
        case ChangeKind.COLLAPSED:
            assert before > after
            fired = [each for each in (*first_passes, *second_passes) if each in fires]
            assert fired in (first_passes, second_passes)
            assert change.fires == tuple(fired)[:FIRES_OF_A_CHANGE_MAX]
            assert ("first" in change.sentence) == (fired == first_passes)
        case ChangeKind.DOUBLED:
            assert before > after
            both = (*first_passes, *second_passes)
            assert fires >= set(both)
            assert change.fires == both[:FIRES_OF_A_CHANGE_MAX]


def owed_at(rule: Rule, wall: datetime) -> tuple[datetime, ...]:
    named = replace(rule, time_zone="UTC", start_at=None, end_at=None)
    return named.fires_between(wall - SECOND, wall, limit=1)


@given(rules())
def test_a_fire_is_noted_as_the_zones_own_clock_has_it(given_rule: tuple[Rule, datetime]) -> None:
    rule, after = given_rule
    for instant in transitions(rule.time_zone):
        if not after < instant <= after + YEAR:
            continue
        for fire in rule.fires_between(instant - AROUND, instant + AROUND, limit=FIRES_MAX)[::7]:
            local = fire.astimezone(ZoneInfo(rule.time_zone))
            kinds = {note.kind for note in fire_notes_of(rule, fire)}
            twice = local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
            assert (FireNoteKind.FIRST in kinds) == (twice and local.fold == 0)
            assert (FireNoteKind.SECOND in kinds) == (twice and local.fold == 1)


@given(rules())
def test_a_fire_is_noted_as_shifted_where_a_note_says_that_it_was(
    given_rule: tuple[Rule, datetime],
) -> None:
    rule, after = given_rule
    rule = replace(rule, gap=Gap.FIRE_AFTER)
    for change in clock_changes_of(rule, after=after, through=after + YEAR).changes:
        for fire in change.fires:
            kinds = {note.kind for note in fire_notes_of(rule, fire)}
            assert (FireNoteKind.SHIFTED in kinds) == (change.kind is ChangeKind.SHIFTED)
            assert (FireNoteKind.SECOND in kinds) == (
                fire >= change.instant and change.kind is not ChangeKind.SHIFTED
            )


def test_a_fire_at_the_end_of_a_gap_says_for_what_it_stands() -> None:
    end = datetime(2026, 3, 8, 7, tzinfo=UTC)
    late = a_rule("30 2 * * *", NEW_YORK, gap=Gap.FIRE_AFTER)
    merged = a_rule("0 2,3 * * *", NEW_YORK, gap=Gap.FIRE_AFTER)
    (note,) = fire_notes_of(late, end)
    assert note.sentence == "It stands for 02:30 on 2026-03-08, which the clocks jump over."
    (note,) = fire_notes_of(merged, end)
    assert note.sentence == "It also stands for 02:00 on 2026-03-08, which the clocks jump over."
    assert fire_notes_of(late, end + timedelta(days=1)) == ()
    (note,) = fire_notes_of(
        a_rule("30 1 * * *", NEW_YORK), datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    )
    assert note.sentence == (
        "01:30 on 2026-11-01 comes twice in America/New_York: this is the first pass."
    )
