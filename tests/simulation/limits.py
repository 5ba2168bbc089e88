"""What the tenant of a seed may not exceed: often nothing, and never so little that it drowns."""

from dataclasses import replace
from random import Random

from puntual.domain.target_limit import TargetLimit
from puntual.domain.tenant import Tenant
from tests.simulation.workload import ORIGIN

LIMITED_EACH = 3


def limited(seed: int, tenant: Tenant) -> Tenant:
    """Limit a tenant; drawn beside the seed's other chances, which they must not shift.

    Most seeds have none, since what waits at a gate meets fewer of the other rules.
    """
    if seed % LIMITED_EACH != LIMITED_EACH - 1:
        return tenant
    random = Random(seed)
    per_minute, running = random.choice((None, None, 12, 40)), random.choice((None, None, 2, 5))
    target_limits = (
        ()
        if per_minute is None and running is None
        else (TargetLimit(target=ORIGIN, per_minute=per_minute, running=running),)
    )
    return replace(
        tenant,
        quotas=replace(
            tenant.quotas,
            fires_per_minute_max=random.choice((None, None, 8, 20)),
            running_max=random.choice((None, None, 2, 6)),
            retries_per_minute=random.choice((6, 30, 600)),
        ),
        target_limits=target_limits,
    )
