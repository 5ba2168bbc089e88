"""What is exported can be imported again, elsewhere too, and says the same."""

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from functions.api.bulk import _asked, _escaped_bytes, _line
from puntual.application.import_schedule import Imported, Mode
from puntual.application.import_schedules import ImportOrder
from puntual.domain.definition import AwsDefinition, WebhookDefinition
from puntual.domain.expression import Fold, Gap
from puntual.domain.likeness import parts_that_differ
from puntual.domain.policies import (
    CATCH_UP_LIMIT_MAX,
    Completion,
    CompletionPolicy,
    Misfire,
    MisfirePolicy,
    Overlap,
    Policies,
    RetryPolicy,
)
from puntual.domain.schedule import ScheduleKey
from puntual.domain.target import Service
from puntual.domain.tenant import ScheduleId, TenantId
from tests.builders import NINE, TENANT, a_tenant
from tests.control_plane_world import AUTHOR, BUS, OWN_QUEUE, ROLE, World

OTHER = TenantId("globex")

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=8,
)
SECONDS = st.integers(1, 3600).map(lambda count: timedelta(seconds=count))
POLICIES = st.builds(
    Policies,
    misfire=st.builds(
        MisfirePolicy,
        policy=st.sampled_from(Misfire),
        after=SECONDS,
        limit=st.integers(1, CATCH_UP_LIMIT_MAX),
        max_lateness=st.none() | SECONDS.map(lambda span: span + timedelta(hours=1)),
    ),
    retry=st.builds(
        RetryPolicy,
        max_attempts=st.integers(1, 20),
        base=SECONDS,
        cap=SECONDS.map(lambda span: span + timedelta(hours=1)),
        deadline=st.none() | SECONDS,
    ),
    window=st.integers(0, 60).map(lambda count: timedelta(seconds=count)),
    overlap=st.sampled_from(Overlap),
    completion=st.builds(
        CompletionPolicy,
        policy=st.sampled_from(Completion),
        heartbeat=SECONDS.map(lambda span: max(span, timedelta(minutes=1))),
        max_duration=SECONDS.map(lambda span: span + timedelta(hours=1)),
    ),
)
TARGETS = st.one_of(
    st.builds(
        WebhookDefinition,
        url=st.just("https://acme.example/x?a=b"),
        timeout=SECONDS.map(lambda span: min(span, timedelta(seconds=840))),
    ),
    st.builds(
        AwsDefinition,
        service=st.just(Service.SQS),
        arn=st.just(OWN_QUEUE),
        role_arn=st.none() | st.just(ROLE),
    ),
    st.builds(
        AwsDefinition,
        service=st.just(Service.EVENTBRIDGE),
        arn=st.just(BUS),
        role_arn=st.just(ROLE),
        source=st.just("acme.jobs"),
        detail_type=st.just("Due"),
    ),
)
LABELS = st.dictionaries(
    st.text("abz09._/-", min_size=1, max_size=9),
    st.text(st.characters().filter(str.isprintable), max_size=9),
    max_size=5,
)
DEFINITIONS = st.fixed_dictionaries(
    {
        "expression": st.sampled_from(
            [
                "rate(5 minutes)",
                "*/5 * * * *",
                "H H * * *",
                "cron(0 9 ? * MON *)",
                "@daily",
                "at(2027-01-01T00:00:00)",
            ]
        ),
        "time_zone": st.sampled_from(["UTC", "Europe/Madrid", "US/Eastern"]),
        "gap": st.sampled_from(Gap),
        "fold": st.sampled_from(Fold),
        "start_at": st.none() | st.just(NINE - timedelta(days=3, milliseconds=7)),
        "max_runs": st.none() | st.integers(1, 9),
        "end_at": st.none() | st.just(NINE + timedelta(days=90)),
        "policies": POLICIES,
        "target": TARGETS,
        "payload": JSON,
        "labels": LABELS,
    }
).filter(lambda made: made["max_runs"] is None or not str(made["expression"]).startswith("at("))


@settings(max_examples=60, deadline=None)
@given(st.lists(DEFINITIONS, min_size=1, max_size=4))
def test_what_is_exported_can_be_imported_elsewhere_and_says_the_same(
    definitions: list[dict[str, object]],
) -> None:
    world = World()
    world.tenants.register(a_tenant(OTHER, targets=(OWN_QUEUE, BUS), roles=(ROLE,)))
    for number, definition in enumerate(definitions):
        world.created(schedule=f"s{number}", **definition)  # type: ignore[arg-type]
    page = world.plane.export_schedules(
        TENANT,
        prefix="",
        state=None,
        labels=(),
        limit=9,
        token=None,
        write=_line,
        weigh=_escaped_bytes,
    )
    for tenant, became, later in (
        (TENANT, "unchanged", timedelta(0)),
        (OTHER, "created", timedelta(0)),
        (OTHER, "unchanged", timedelta(days=1)),
    ):
        world.clock.advance(later)
        done = world.plane.import_schedules(
            tenant,
            "".join(page.lines).encode(),
            ImportOrder(
                mode=Mode.UPSERT, dry_run=False, author=AUTHOR, within=timedelta(minutes=1)
            ),
            read=_asked,
            weigh=lambda _: 1,
        )
        outcomes = [result.outcome for result in done.results]
        assert [each.result if isinstance(each, Imported) else str(each) for each in outcomes] == [
            became
        ] * len(definitions)
    for number in range(len(definitions)):
        ours, theirs = (
            world.schedules.version_rows[
                ScheduleKey(tenant=tenant, schedule=ScheduleId(f"s{number}")), 1
            ]
            for tenant in (TENANT, OTHER)
        )
        assert parts_that_differ(ours, theirs) == ()
