"""The world that use cases of the control plane act in."""

import pytest

from tests.control_plane_world import World


@pytest.fixture
def world() -> World:
    return World()
