"""What two versions of a schedule say differently, whoever wrote them and when."""

import json

from puntual.domain.schedule import ScheduleVersion


def parts_that_differ(standing: ScheduleVersion, proposed: ScheduleVersion) -> tuple[str, ...]:
    """Name the parts of a definition that are not the same; none where both say the same.

    A payload is the same whatever the order of its members; 1 and 1.0 are two values.
    """
    same = {
        "rule": standing.rule == proposed.rule,
        "policies": standing.policies == proposed.policies,
        "target": standing.target == proposed.target,
        "payload": _canonical(standing.payload) == _canonical(proposed.payload),
        "labels": standing.labels == proposed.labels,
    }
    return tuple(part for part, is_same in same.items() if not is_same)


def _canonical(payload: str) -> str:
    return json.dumps(json.loads(payload), sort_keys=True)
