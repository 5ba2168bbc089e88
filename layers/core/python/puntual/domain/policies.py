"""What a schedule asks for beside its rule: lateness, overlap, window, retries."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

ATTEMPTS_MAX = 20
"""Attempts that one occurrence may ever have, over all its rounds: the fence never resets."""

DOUBLINGS_MAX = 30

WINDOW_MAX = timedelta(hours=24)

RUNS_MAX = 10_000
"""Fires that `max_runs` may count: they are counted one by one when it is set."""

MISFIRE_AFTER_DEFAULT = timedelta(seconds=60)

CATCH_UP_LIMIT_DEFAULT = 100
CATCH_UP_LIMIT_MAX = 1_000
"""Missed fires that one outage may have made up for: each is a run of its own."""

HEARTBEAT_MIN = timedelta(minutes=1)
HEARTBEAT_MAX = timedelta(hours=1)
HEARTBEAT_DEFAULT = timedelta(minutes=2)
MAX_DURATION_MIN = HEARTBEAT_MIN
MAX_DURATION_MAX = timedelta(hours=24)
MAX_DURATION_DEFAULT = timedelta(hours=2)


class Misfire(StrEnum):
    SKIP = "skip"
    FIRE_ONCE = "fire_once"
    CATCH_UP = "catch_up"


class Overlap(StrEnum):
    """What becomes of an occurrence that is due before another of its schedule ended (E7)."""

    ALLOW = "allow"
    SKIP_IF_RUNNING = "skip_if_running"
    QUEUE_ONE = "queue_one"
    CANCEL_RUNNING = "cancel_running"


class Completion(StrEnum):
    """What ends an attempt that its target has taken: the answer, or a callback after it."""

    RESPONSE = "response"
    CALLBACK = "callback"


@dataclass(frozen=True, slots=True, kw_only=True)
class MisfirePolicy:
    """What becomes of fires that are found later than `after`; none runs beyond `max_lateness`.

    Under `catch_up` the oldest `limit` of them run.
    """

    policy: Misfire = Misfire.FIRE_ONCE
    after: timedelta = MISFIRE_AFTER_DEFAULT
    max_lateness: timedelta | None = None
    limit: int = CATCH_UP_LIMIT_DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Full jitter: before retry n the wait is uniform in 0 … min(cap, base · 2^(n-1)).

    No attempt starts later than `deadline` after the first one of its round.
    """

    max_attempts: int = 5
    base: timedelta = timedelta(seconds=10)
    cap: timedelta = timedelta(minutes=30)
    deadline: timedelta | None = None

    def backoff(
        self,
        *,
        failures: int,
        chance: float,
        retry_after: timedelta | None,
        left: timedelta | None = None,
    ) -> timedelta:
        """Give the wait after the given number of failures in this round.

        `chance` lies in [0, 1). A receiver's Retry-After is honoured, up to the cap. `left` is the
        time to the deadline: chance never leads beyond it, though Retry-After may.
        """
        doublings: int = 2 ** min(failures - 1, DOUBLINGS_MAX)
        ceiling = min(self.cap, self.base * doublings)
        if left is not None:
            ceiling = min(ceiling, left)
        wait = ceiling * chance
        if retry_after is not None:
            wait = max(wait, min(retry_after, self.cap))
        return wait


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsBound:
    """The rule ends with its fire number `max_runs`, or at `end_at` if that comes before it.

    Which of them it was, the rule's own end says.
    """

    max_runs: int
    end_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionPolicy:
    """By callback, the answer and each heartbeat hold an attempt's lease for `heartbeat` from then.

    None of them holds it longer than `max_duration` from the attempt's start.
    """

    policy: Completion = Completion.RESPONSE
    heartbeat: timedelta = HEARTBEAT_DEFAULT
    max_duration: timedelta = MAX_DURATION_DEFAULT

    @property
    def is_by_callback(self) -> bool:
        return self.policy is Completion.CALLBACK


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """`window` spreads fires: each may run from its time plus a fixed part of the window on."""

    misfire: MisfirePolicy = field(default_factory=MisfirePolicy)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    window: timedelta = timedelta(0)
    overlap: Overlap = Overlap.ALLOW
    runs: RunsBound | None = None
    completion: CompletionPolicy = field(default_factory=CompletionPolicy)

    @property
    def has_slot(self) -> bool:
        """Whether runs need their schedule's slot; those of the others pay nothing for it."""
        return self.overlap is not Overlap.ALLOW
