"""A simulation that no broken rule fails proves nothing: each rule's loss must show."""

import pytest

from tests.simulation.variant import Variant
from tests.simulation.variants import TOPICS, VARIANTS
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
        "P8",
        "P9",
        "P10",
        "E1",
        "E2",
        "E3",
        "E4",
        "E5",
        "E6",
        "E7",
        "E8",
        "E9",
        "E10",
        "E11",
        "ADR 0013",
        "ADR 0018",
        "ADR 0019",
        "ADR 0021",
    ]
)

SEEDS_TRIED_MAX = 60

BY_SEED = [
    pytest.param(variant, id=f"{variant.rule}: {name}")
    for name, variant in VARIANTS.items()
    if variant.scenario is None
]
BY_SCENARIO = [
    pytest.param(variant, id=f"{variant.rule}: {name}")
    for name, variant in VARIANTS.items()
    if variant.scenario is not None
]


@pytest.mark.parametrize("variant", BY_SEED)
def test_seeds_show_the_loss_of_a_rule(variant: Variant) -> None:
    """The seeds that were known to show it come first: any change of the code may shift them."""
    tried = dict.fromkeys((*variant.seeds, *range(SEEDS_TRIED_MAX)))
    assert any(simulate(seed, variant.parts).kinds & variant.shows for seed in tried)


@pytest.mark.parametrize("variant", BY_SCENARIO)
def test_a_scenario_shows_the_loss_of_a_rule(variant: Variant) -> None:
    assert variant.scenario is not None
    shown = variant.scenario(variant.parts).kinds
    assert shown & variant.shows, f"showed {sorted(shown)}"


def test_every_rule_that_is_built_is_taken_away_in_some_variant() -> None:
    assert {variant.rule for variant in VARIANTS.values()} == RULES_BUILT


def test_no_two_variants_share_a_name() -> None:
    assert len(VARIANTS) == sum(map(len, TOPICS))
