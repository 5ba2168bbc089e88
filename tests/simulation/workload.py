"""What the tenants of one seed do: schedules that come, change and go, aimed at their due times."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from random import Random

from puntual.domain.expression import Rule
from puntual.domain.policies import Misfire, MisfirePolicy, Policies, RetryPolicy
from puntual.domain.schedule import Schedule, ScheduleKey, ScheduleState, ScheduleVersion
from puntual.domain.target import WebhookTarget
from puntual.domain.tenant import ScheduleId, TenantId
from tests.simulation.scheduler import MINUTE, SECOND, Scheduler, instant_at
from tests.simulation.writer import Writer

TENANT = TenantId("acme")

RATES = (1, 2, 5, 10, 15, 30)
CRONS = {"*/5 * * * *": 5, "*/2 * * * *": 2, "0,7,20,31,45 * * * *": 7}
"""Each with its smallest interval in minutes, which bounds the window."""

WINDOW_MAX = 300
LENGTHS = (3600 * SECOND, 4500 * SECOND, 5400 * SECOND)
ENDS_AFTER = 300 * SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Plans all of a seed's calls ahead; `call` runs one as a function of the API."""

    scheduler: Scheduler
    writer: Writer
    heads: Callable[[ScheduleKey], Schedule | None]
    call: Callable[[Callable[[], None]], None]
    lasts: int

    def plan(self) -> None:
        random = self.scheduler.random
        keys = [
            ScheduleKey(tenant=TENANT, schedule=ScheduleId(f"s{number}"))
            for number in range(random.randint(4, 8))
        ]
        for key in keys:
            when = random.randint(0, int(self.lasts * 0.4))
            self.scheduler.at(when, partial(self._create, key))
        for _ in range(random.randint(10, 40)):
            when = random.randint(MINUTE, self.lasts)
            self.scheduler.at(when, partial(self._change, keys))

    def _create(self, key: ScheduleKey) -> None:
        proposed = self._proposed(key)
        self.call(lambda: self.writer.create(proposed))

    def _change(self, keys: list[ScheduleKey]) -> None:
        """Change one of them now or, more often, about when it is due."""
        random, now = self.scheduler.random, self.scheduler.now
        key = random.choice(keys)
        head = self.heads(key)
        if head is None:
            return
        kind = random.choice(["edit"] * 8 + ["pause"] * 4 + ["cancel"])
        if head.state is ScheduleState.PAUSED and random.random() < 0.6:
            kind = "resume"
        when = now
        due = head.rule.next_fire(instant_at(now))
        if due is not None and random.random() < 0.6 and due < instant_at(now + 900 * SECOND):
            wait = (due - instant_at(now)) // timedelta(milliseconds=1)
            when = max(now, now + wait + random.randint(-8 * SECOND, 1 * SECOND))
        self.scheduler.at(when, partial(self._changed, key, kind, head))

    def _changed(self, key: ScheduleKey, kind: str, head: Schedule) -> None:
        match kind:
            case "edit":
                proposed = self._proposed(key, like=head)
                self.call(lambda: self.writer.edit(proposed))
            case "pause":
                self.call(lambda: self.writer.pause(key))
            case "resume":
                self.call(lambda: self.writer.resume(key))
            case _:
                self.call(lambda: self.writer.cancel(key))

    def _proposed(self, key: ScheduleKey, *, like: Schedule | None = None) -> ScheduleVersion:
        """Give a new definition; half of the edits keep rule and window, and change the rest."""
        random, now = self.scheduler.random, instant_at(self.scheduler.now)
        rule, window = _rule_and_window(random, now, self.lasts)
        if like is not None and random.random() < 0.5:
            rule, window = like.rule, like.policies.window
        return ScheduleVersion(
            tenant=key.tenant,
            schedule=key.schedule,
            version=1,
            state=ScheduleState.ACTIVE,
            rule=rule,
            policies=_policies(random, window),
            target=WebhookTarget(
                url="https://acme.example/hook",
                timeout=timedelta(seconds=random.choice((5, 10, 30))),
            ),
            payload="{}",
            effective_from=now,
            author="ana",
            tzdata="2026.1",
        )


def _policies(random: Random, window: timedelta) -> Policies:
    too_late = random.choice((None, None, None, timedelta(seconds=900)))
    return Policies(
        misfire=MisfirePolicy(
            policy=random.choice((Misfire.SKIP, Misfire.FIRE_ONCE, Misfire.FIRE_ONCE)),
            max_lateness=too_late,
        ),
        retry=RetryPolicy(max_attempts=random.choice((1, 2, 3, 5))),
        window=window,
    )


def _rule_and_window(random: Random, now: datetime, lasts: int) -> tuple[Rule, timedelta]:
    chance = random.random()
    whole = now.replace(microsecond=0)
    interval = random.choice(RATES)
    expression = f"rate({interval} minute{'s' if interval > 1 else ''})"
    anchor = whole - timedelta(seconds=random.randrange(interval * 60))
    if chance < 0.15:
        fire = whole + timedelta(seconds=random.choice((15, 120, 900, 2400)))
        expression = f"at({fire:%Y-%m-%dT%H:%M:%S})"
    elif chance < 0.25:
        expression = random.choice(list(CRONS))
        interval = CRONS[expression]
    ends = instant_at(lasts + ENDS_AFTER)
    end_at = random.choice((ends, ends, whole + timedelta(seconds=1500)))
    rule = Rule(expression=expression, time_zone="UTC", anchor=anchor, end_at=end_at)
    seconds = random.choice((0, 0, 0, min(interval * 30, WINDOW_MAX)))
    return rule, timedelta(seconds=seconds)
