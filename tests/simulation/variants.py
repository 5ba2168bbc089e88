"""Each rule taken away in turn: a rule whose loss no seed and no scenario shows is not a rule."""

from tests.simulation.broken.callbacks import CALLBACKS
from tests.simulation.broken.claims import CLAIMS
from tests.simulation.broken.gates import GATES
from tests.simulation.broken.planning import PLANNING
from tests.simulation.broken.recoveries import RECOVERIES
from tests.simulation.broken.replays import REPLAYS
from tests.simulation.broken.requests import REQUESTS
from tests.simulation.broken.sending import SENDING
from tests.simulation.broken.slots import SLOTS
from tests.simulation.broken.zone_releases import ZONE_RELEASES

TOPICS = (
    PLANNING,
    CLAIMS,
    SENDING,
    SLOTS,
    RECOVERIES,
    REQUESTS,
    REPLAYS,
    CALLBACKS,
    GATES,
    ZONE_RELEASES,
)

VARIANTS = {name: variant for topic in TOPICS for name, variant in topic.items()}
