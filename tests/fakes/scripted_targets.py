"""Targets that answer as the test's script says."""

from collections.abc import Callable

from puntual.domain.target import Delivered, Delivery, DeliveryResult

Script = Callable[[Delivery], DeliveryResult]


def always_delivered(delivery: Delivery) -> DeliveryResult:
    assert delivery.attempt > 0
    return Delivered(detail="HTTP 200")


class ScriptedTargets:
    def __init__(self, script: Script = always_delivered) -> None:
        self.deliveries: list[Delivery] = []
        self.script = script

    def deliver(self, delivery: Delivery) -> DeliveryResult:
        self.deliveries.append(delivery)
        return self.script(delivery)
