"""What the tenant of a seed may not exceed: often nothing, and never so little that it drowns."""

from random import Random

from puntual.domain.target_limit import TargetLimit
from puntual.domain.tenant import Quotas, Tenant
from tests.simulation.workload import ORIGIN, TENANT

LIMITED_EACH = 3


def limited(seed: int) -> Tenant:
    """Draw limits beside the seed's other chances, which they must not shift.

    Most seeds have none, since what waits at a gate meets fewer of the other rules.
    """
    if seed % LIMITED_EACH != LIMITED_EACH - 1:
        return Tenant(tenant=TENANT)
    random = Random(seed)
    per_minute, running = random.choice((None, None, 12, 40)), random.choice((None, None, 2, 5))
    target_limits = (
        ()
        if per_minute is None and running is None
        else (TargetLimit(target=ORIGIN, per_minute=per_minute, running=running),)
    )
    return Tenant(
        tenant=TENANT,
        quotas=Quotas(
            fires_per_minute_max=random.choice((None, None, 8, 20)),
            running_max=random.choice((None, None, 2, 6)),
            retries_per_minute=random.choice((6, 30, 600)),
        ),
        target_limits=target_limits,
    )
