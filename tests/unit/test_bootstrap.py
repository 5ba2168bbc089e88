"""Settings and wiring."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from puntual import bootstrap
from puntual.bootstrap import SettingInvalid, Settings
from puntual.domain.lane import Lane

ENVIRONMENT = {
    "SCHEDULES_TABLE": "schedules",
    "VERSIONS_TABLE": "versions",
    "AGENDA_TABLE": "agenda",
    "OUTBOX_TABLE": "outbox",
    "OCCURRENCES_TABLE": "occurrences",
    "SHARDS_TABLE": "shards",
    "TENANTS_TABLE": "tenants",
    "ZONE_RELEASES_TABLE": "zone_releases",
    "IDEMPOTENCY_TABLE": "idempotency",
    "STRICT_QUEUE_URL": "https://sqs.example/strict",
    "FLEXIBLE_QUEUE_URL": "https://sqs.example/flexible",
    "RECOVERY_QUEUE_URL": "https://sqs.example/recovery",
    "PLANNER_FUNCTION_NAME": "planner",
    "ENVIRONMENT": "prod",
    "WEBHOOK_ROOT_SECRET_ARN": "arn:aws:secretsmanager:us-east-1:123456789012:secret:root",
    "CALLBACKS_URL": "https://callbacks.example",
    "SHARD_COUNT": "128",
    "HORIZON_SECONDS": "600",
    "STRICT_EXECUTORS": "1000",
    "FLEXIBLE_EXECUTORS": "500",
    "RECOVERY_EXECUTORS": "100",
    "RETENTION_DAYS": "30",
    "DELIVERY_TIMEOUT_MAX_SECONDS": "840",
    "ALLOW_PRIVATE_TARGETS": "false",
}

CACHED: tuple[Callable[[], object], ...] = (
    bootstrap.schedules,
    bootstrap.tenants,
    bootstrap.budgets,
    bootstrap.shares,
    bootstrap.breakers,
    bootstrap.admit_attempt,
    bootstrap.kept_rooms,
    bootstrap.draw_tokens,
    bootstrap.agenda,
    bootstrap.outbox,
    bootstrap.ledger,
    bootstrap.shards,
    bootstrap.lanes,
    bootstrap.planners,
    bootstrap.zone_releases,
    bootstrap.zone_data,
    bootstrap.note_zone_release,
    bootstrap.replan_zones,
    bootstrap.plan_cursors,
    bootstrap.announced,
    bootstrap.clock,
    bootstrap.ids,
    bootstrap.chance,
    bootstrap.tick,
    bootstrap.relay_page,
    bootstrap.plan_shard,
    bootstrap.settle_message,
    bootstrap.execute_occurrence,
    bootstrap.seats,
    bootstrap.tenant_weights,
    bootstrap.share_executors,
    bootstrap.bury_message,
    bootstrap.take_callback,
    bootstrap.limits,
    bootstrap.control_plane,
    bootstrap.idempotency_store,
    bootstrap.root_secret,
    bootstrap.settings,
)


def test_settings_are_typed() -> None:
    settings = Settings(ENVIRONMENT)
    assert settings.schedules_table == "schedules"
    assert settings.queue_urls[Lane.FLEXIBLE] == "https://sqs.example/flexible"
    assert settings.executors == {Lane.STRICT: 1000, Lane.FLEXIBLE: 500, Lane.RECOVERY: 100}
    assert settings.shard_count == 128
    assert settings.horizon == timedelta(minutes=10)
    assert settings.retention == timedelta(days=30)
    assert settings.delivery_timeout_max == timedelta(minutes=14)
    assert settings.allows_private_targets is False
    assert Settings({"ALLOW_PRIVATE_TARGETS": "true"}).allows_private_targets is True


def test_every_setting_is_read_from_a_variable_of_its_own() -> None:
    names = {name for name, value in vars(Settings).items() if isinstance(value, property)}
    for name in names - {"queue_urls", "executors"}:
        with pytest.raises(SettingInvalid) as caught:
            getattr(Settings({}), name)
        assert caught.value.name in ENVIRONMENT
        getattr(Settings({caught.value.name: ENVIRONMENT[caught.value.name]}), name)


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "many", "1²"])
def test_a_count_is_a_whole_number_above_zero(text: str) -> None:
    with pytest.raises(SettingInvalid, match="SHARD_COUNT"):
        _ = Settings({"SHARD_COUNT": text}).shard_count


@pytest.mark.parametrize("text", ["", "1", "True", "yes"])
def test_a_switch_is_true_or_false(text: str) -> None:
    with pytest.raises(SettingInvalid, match="ALLOW_PRIVATE_TARGETS"):
        _ = Settings({"ALLOW_PRIVATE_TARGETS": text}).allows_private_targets


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    _forget()
    yield
    _forget()


def _forget() -> None:
    for builder in CACHED:
        clear: Callable[[], None] = builder.cache_clear  # type: ignore[attr-defined] # functools.cache
        clear()


@pytest.mark.usefixtures("deployed")
def test_everything_is_wired_once() -> None:
    for builder in CACHED:
        assert builder() is builder()


@pytest.mark.usefixtures("deployed")
def test_a_function_needs_no_setting_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLANNER_FUNCTION_NAME")
    bootstrap.plan_cursors()
    with pytest.raises(SettingInvalid, match="PLANNER_FUNCTION_NAME"):
        bootstrap.planners()
