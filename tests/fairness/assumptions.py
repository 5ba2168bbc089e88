"""What the burst is measured on: latencies, limits and the fair queue, as of November 2026.

Latencies are typical medians of one region, in milliseconds; each call draws from 0.7 to 1.5 times
its own. None of them was measured by us on AWS: the simulation compares a run with another one on
the same figures, and says nothing of either alone.
"""

from typing import Any

LATENCIES = {
    "agenda.due": 6,
    "agenda.put": 9,
    "agenda.delete": 9,
    "ledger.put_spans": 7,
    "ledger.read": 4,
    "ledger.record": 7,
    "ledger.swap": 7,
    "outbox.delete": 6,
    "outbox.left": 6,
    "outbox.put": 7,
    "schedules.complete": 7,
    "schedules.head": 4,
    "schedules.heads": 12,
    "schedules.version": 4,
    "seats.leave": 7,
    "seats.note_quick": 7,
    "seats.quick_until": 3,
    "seats.take": 7,
    "shards.announce": 7,
    "shards.close": 14,
    "shards.get": 4,
    "shards.lease": 7,
    "shards.release": 7,
    "tenants.get": 4,
}
SEND_BATCH = 12
RECEIVE = 15
STREAM_POLL = 120
SPREAD = (0.7, 1.5)

CPU_PER_PLANNED = 0.15
"""Milliseconds of a planner's processor for each cursor, its share of the SDK's work included."""

ITEMS_PER_CALL = {"agenda.put": 25, "agenda.delete": 25}
PLANNER_STARTS_WITHIN = 1_500
PAGES_PER_RELAY = 5

NOISY_SHARE = 0.1
NOISY_IN_FLIGHT = 30
"""A group with more than this share of what is in flight, and as many messages of it at least, is
a noisy neighbour: its messages come after all others', until it has none left.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues-detailed.html
AWS also counts the share of processing time, and calls both figures approximate; here is only the
first of them."""


def milliseconds_of(call: str, arguments: tuple[Any, ...]) -> float:
    """Give how long a call takes; batches by the requests that they are made of."""
    latency: float = LATENCIES[call]
    if call in ITEMS_PER_CALL:
        latency *= -(-len(arguments[1]) // ITEMS_PER_CALL[call])
    if call == "outbox.put":
        latency += CPU_PER_PLANNED * len(arguments[0].planned)
    return latency
