"""A simulation that no broken rule fails proves nothing: each rule's loss must show."""

import pytest

from tests.simulation.variants import VARIANTS, Variant
from tests.simulation.world import simulate

RULES_BUILT = frozenset(
    [
        "P1",
        "P2",
        "P3",
        "P4",
        "P5",
        "P6",
        "P7",
        "P9",
        "E1",
        "E3",
        "E4",
        "E5",
        "E6",
        "E8",
        "E10",
        "E11",
    ]
)

BY_SEED = [
    pytest.param(variant, id=f"{variant.rule}: {name}")
    for name, variant in VARIANTS.items()
    if variant.seeds
]
BY_SCENARIO = [
    pytest.param(variant, id=f"{variant.rule}: {name}")
    for name, variant in VARIANTS.items()
    if variant.scenario is not None
]


@pytest.mark.parametrize("variant", BY_SEED)
def test_seeds_show_the_loss_of_a_rule(variant: Variant) -> None:
    for seed in variant.seeds:
        shown = simulate(seed, variant.parts).kinds
        assert shown & variant.shows, f"seed {seed} showed {sorted(shown)}"


@pytest.mark.parametrize("variant", BY_SCENARIO)
def test_a_scenario_shows_the_loss_of_a_rule(variant: Variant) -> None:
    assert variant.scenario is not None
    shown = variant.scenario(variant.parts).kinds
    assert shown & variant.shows, f"showed {sorted(shown)}"


def test_every_rule_that_is_built_is_taken_away_in_some_variant() -> None:
    assert {variant.rule for variant in VARIANTS.values()} == RULES_BUILT


def test_every_variant_is_caught_by_a_seed_or_a_scenario() -> None:
    assert all(variant.seeds or variant.scenario for variant in VARIANTS.values())
