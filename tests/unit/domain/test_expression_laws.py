"""Laws of time that hold for every rule, zone and policy."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from puntual.domain.expression import Fold, Gap, Rule
from tests.unit.domain.random_times import random_times

ZONES = (
    "UTC",
    "America/New_York",
    "Europe/Dublin",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Pacific/Apia",
    "Pacific/Kiritimati",
    "America/Havana",
    "Asia/Kathmandu",
)
FIXED_TIMES = (
    "30 2 * * *",
    "*/20 1 * * *",
    "0 0 * * 0",
    "30 1,2 * * 1-5",
    "15 23 L * *",
    "0 9 13 * 5",
    "0 0 29 2 *",
    "0 3 * * 2#5",
    "cron(45 1 31W * ? *)",
    "cron(0 0-4 ? 3,4,10,11 SUN 2020-2040/2)",
)
INTERVALS = ("* * * * *", "*/15 * * * *", "0 * * * *", "7-59/13 * * * 1-5")
ELAPSED = ("rate(7 minutes)", "rate(5 hours)", "rate(1 day)", "at(2026-11-01T01:30:00)")

INSTANTS = st.datetimes(
    min_value=datetime(1975, 1, 1),  # noqa: DTZ001 - Hypothesis adds the zone
    max_value=datetime(2060, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
TURNS = st.builds(
    # The hours around the changes of 2026 are where rules differ.
    lambda day, minutes: day + timedelta(minutes=minutes),
    st.sampled_from([datetime(2026, 3, 7, 20, tzinfo=UTC), datetime(2026, 10, 31, 20, tzinfo=UTC)]),
    st.integers(0, 1_440),
)


A_MICROSECOND = timedelta(microseconds=1)
EXPRESSIONS = st.sampled_from(FIXED_TIMES + INTERVALS + ELAPSED) | st.builds(
    lambda seed, near: random_times(Random(seed), near.replace(tzinfo=None)).text,
    st.integers(0, 2**32),
    TURNS,
)


def rules(
    expressions: st.SearchStrategy[str], *, folds: tuple[Fold, ...] = tuple(Fold)
) -> st.SearchStrategy[Rule]:
    return st.builds(
        Rule,
        expression=expressions,
        time_zone=st.sampled_from(ZONES),
        gap=st.sampled_from(Gap),
        fold=st.sampled_from(folds),
        anchor=st.just(datetime(2020, 2, 3, 4, 5, 6, 7, tzinfo=UTC)),
    )


ANY_RULE = rules(EXPRESSIONS)
ANY_TIME = INSTANTS | TURNS


@given(ANY_RULE, ANY_TIME)
def test_fires_strictly_increase(rule: Rule, start: datetime) -> None:
    fires = [start]
    while len(fires) < 6 and (fire := rule.next_fire(fires[-1])) is not None:
        assert fire > fires[-1]
        assert fire.utcoffset() == timedelta(0)
        fires.append(fire)


@given(ANY_RULE, ANY_TIME, st.integers(0, 200), st.integers(0, 8))
def test_the_fires_between_two_instants_are_those_of_a_walk(
    rule: Rule, start: datetime, hours: int, limit: int
) -> None:
    end, after = start + timedelta(hours=hours), start
    walk: list[datetime] = []
    while len(walk) < limit and (fire := rule.next_fire(after)) is not None and fire <= end:
        walk.append(fire)
        after = fire
    assert rule.fires_between(start, end, limit=limit) == tuple(walk)


@given(ANY_RULE, ANY_TIME)
def test_the_last_fire_before_the_instant_after_a_fire_is_that_fire(
    rule: Rule, start: datetime
) -> None:
    fire = rule.next_fire(start)
    if fire is None:
        return
    assert rule.last_fire(fire) == fire
    following = rule.next_fire(fire)
    if following is not None:
        assert rule.last_fire(following - A_MICROSECOND) == fire


@given(ANY_RULE, ANY_TIME)
def test_nothing_fires_between_the_last_and_the_next_fire(rule: Rule, instant: datetime) -> None:
    last = rule.last_fire(instant)
    if last is not None:
        assert last <= instant
        assert rule.next_fire(last) == rule.next_fire(instant)
        assert rule.next_fire(last - A_MICROSECOND) == last


@given(ANY_RULE, ANY_TIME, st.floats(0, 1))
def test_the_next_fire_is_the_same_from_every_instant_before_it(
    rule: Rule, start: datetime, share: float
) -> None:
    fire = rule.next_fire(start)
    if fire is not None:
        latest = fire - A_MICROSECOND
        assert rule.next_fire(latest) == fire
        assert rule.next_fire(min(start + (latest - start) * share, latest)) == fire


@given(ANY_RULE, ANY_TIME, st.integers(0, 200), st.integers(0, 8), st.integers(0, 8))
def test_more_fires_begin_with_the_fewer(
    rule: Rule, start: datetime, hours: int, limit: int, more: int
) -> None:
    end = start + timedelta(hours=hours)
    fewer = rule.fires_between(start, end, limit=limit)
    assert rule.fires_between(start, end, limit=limit + more)[: len(fewer)] == fewer
    later = rule.fires_between(start, end + timedelta(hours=more), limit=limit)
    assert later[: len(fewer)] == fewer
    assert all(fire > end for fire in later[len(fewer) :])


@given(st.lists(st.tuples(ANY_RULE, ANY_TIME), min_size=1, max_size=6))
def test_an_answer_depends_on_the_question_alone(questions: list[tuple[Rule, datetime]]) -> None:
    def answer(question: tuple[Rule, datetime]) -> tuple[object, ...]:
        rule, instant = question
        week = instant + timedelta(days=7)
        fires = rule.fires_between(instant, week, limit=5)
        return rule.next_fire(instant), rule.last_fire(instant), fires

    answers = [answer(question) for question in questions]
    assert [answer(question) for question in reversed(questions)] == answers[::-1]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(answer, questions * 2)) == answers * 2


@given(rules(EXPRESSIONS, folds=(Fold.BOTH,)), ANY_TIME)
def test_the_first_and_the_second_passes_together_are_both(rule: Rule, start: datetime) -> None:
    end = start + timedelta(days=1)

    def fires(fold: Fold) -> set[datetime]:
        return set(replace(rule, fold=fold).fires_between(start, end, limit=3_000))

    if not rule.expression.startswith("at("):
        assert fires(Fold.FIRST) | fires(Fold.SECOND) == fires(Fold.BOTH)
    assert fires(Fold.AUTO) in (fires(Fold.FIRST), fires(Fold.BOTH))


@given(rules(st.sampled_from(FIXED_TIMES)), TURNS)
def test_a_rule_of_fixed_times_fires_in_the_first_pass(rule: Rule, start: datetime) -> None:
    end = start + timedelta(days=1)
    automatic, first = replace(rule, fold=Fold.AUTO), replace(rule, fold=Fold.FIRST)
    assert automatic.fires_between(start, end, limit=99) == first.fires_between(
        start, end, limit=99
    )


@given(rules(st.sampled_from(INTERVALS)), TURNS)
def test_a_rule_of_every_hour_fires_in_both_passes_and_owes_no_gap(
    rule: Rule, start: datetime
) -> None:
    end = start + timedelta(days=1)
    both = replace(rule, fold=Fold.BOTH, gap=Gap.SKIP).fires_between(start, end, limit=3_000)
    assert replace(rule, fold=Fold.AUTO).fires_between(start, end, limit=3_000) == both


@given(ANY_RULE, ANY_TIME, st.integers(1, 400), st.integers(1, 400))
def test_bounds_take_away_what_is_outside_and_nothing_else(
    rule: Rule, start: datetime, hours: int, more: int
) -> None:
    start_at, end_at = start + timedelta(hours=hours), start + timedelta(hours=hours + more)
    bounded = replace(rule, start_at=start_at, end_at=end_at)
    just_before = start_at - A_MICROSECOND
    inside = rule.fires_between(just_before, end_at, limit=50)
    assert bounded.fires_between(start, end_at + timedelta(days=9), limit=50) == inside
    last = rule.last_fire(end_at)
    within = last if last is not None and last >= start_at else None
    assert bounded.last_fire(end_at + timedelta(days=9)) == within
