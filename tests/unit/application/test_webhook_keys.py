"""Show and rotate a tenant's keys."""

import pytest

from puntual.domain.errors import Rejected
from puntual.domain.tenant import KEY_GENERATION_MAX, TenantId, UnknownTenant
from puntual.domain.webhook_keys import StaleGeneration
from tests.builders import TENANT
from tests.control_plane_world import World

NOBODY = TenantId("nobody")


def test_a_rotation_puts_a_new_key_first_and_may_be_repeated() -> None:
    world = World()
    (first,) = world.plane.show_webhook_keys(TENANT)
    rotated = world.plane.rotate_webhook_keys(TENANT, seen=1)
    assert rotated[1] == first
    assert [key.generation for key in rotated] == [2, 1]
    assert world.plane.rotate_webhook_keys(TENANT, seen=1) == rotated
    assert world.plane.show_webhook_keys(TENANT) == rotated


@pytest.mark.parametrize("seen", [1, 4])
def test_a_rotation_of_another_generation_than_the_current_one_changes_nothing(seen: int) -> None:
    world = World()
    world.plane.rotate_webhook_keys(TENANT, seen=1)
    keys = world.plane.rotate_webhook_keys(TENANT, seen=2)
    with pytest.raises(StaleGeneration) as caught:
        world.plane.rotate_webhook_keys(TENANT, seen=seen)
    assert caught.value.current == 3
    assert world.plane.show_webhook_keys(TENANT) == keys


@pytest.mark.parametrize("seen", [0, -1, KEY_GENERATION_MAX])
def test_generations_are_bounded(seen: int) -> None:
    with pytest.raises(Rejected, match="generation"):
        World().plane.rotate_webhook_keys(TENANT, seen=seen)


def test_nobodys_keys_are_shown_or_rotated() -> None:
    plane = World().plane
    with pytest.raises(UnknownTenant):
        plane.show_webhook_keys(NOBODY)
    with pytest.raises(UnknownTenant):
        plane.rotate_webhook_keys(NOBODY, seen=1)
