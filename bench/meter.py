"""Counts what AWS would bill, from the requests themselves: exact, and the same on every machine.

Sizes follow "DynamoDB item sizes and formats" of the developer guide: names and text by their
UTF-8 bytes, binary by its bytes, a number by a byte per two significant digits and one more. A
write unit is a started KB of the larger of the item before and after, a strongly consistent read
unit a started 4 KB; a transaction doubles both; nothing written or read counts as one.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

WRITE_UNIT_BYTES = 1024
READ_UNIT_BYTES = 4096
NESTING_BYTES = 3
ELEMENT_BYTES = 1

Item = Mapping[str, Any]


def bytes_of_item(item: Item) -> int:
    return sum(len(name.encode()) + bytes_of_value(value) for name, value in item.items())


def bytes_of_value(value: Mapping[str, Any]) -> int:
    ((kind, held),) = value.items()
    match kind:
        case "S":
            return len(held.encode())
        case "N":
            return _bytes_of_number(held)
        case "B":
            return len(bytes(held))
        case "BOOL" | "NULL":
            return 1
        case "L":
            return NESTING_BYTES + sum(ELEMENT_BYTES + bytes_of_value(each) for each in held)
        case "M":
            return NESTING_BYTES + sum(
                ELEMENT_BYTES + len(name.encode()) + bytes_of_value(each)
                for name, each in held.items()
            )
        case _:
            raise AssertionError(f"no row holds a {kind}")


def _bytes_of_number(text: str) -> int:
    sign, digits, _ = Decimal(text).as_tuple()
    significant = len("".join(map(str, digits)).strip("0"))
    return (significant + 1) // 2 + 1 + sign


def write_units(size: int) -> int:
    return max(1, -(-size // WRITE_UNIT_BYTES))


def read_units(size: int) -> int:
    return max(1, -(-size // READ_UNIT_BYTES))


@dataclass(slots=True)
class Bill:
    """What a stretch of work asked of AWS."""

    calls: Counter[str] = field(default_factory=Counter)
    write_units: int = 0
    read_units: int = 0
    sqs_requests: int = 0

    @property
    def all_calls(self) -> int:
        return self.calls.total()


Place = tuple[str, frozenset[tuple[str, str]]]


@dataclass(slots=True)
class Meter:
    """Listens to clients; it must have heard every write of a row before the row is deleted."""

    keys: Mapping[str, tuple[str, ...]]
    """The names of each table's key attributes."""

    bill: Bill = field(default_factory=Bill)
    sizes: dict[Place, int] = field(default_factory=dict)

    @contextmanager
    def listening(self, *clients: Any) -> Iterator["Meter"]:
        for client in clients:
            client.meta.events.register("provide-client-params", self._asked)
            client.meta.events.register("after-call", self._answered)
        try:
            yield self
        finally:
            for client in clients:
                client.meta.events.unregister("provide-client-params", self._asked)
                client.meta.events.unregister("after-call", self._answered)

    def of(self, work: Callable[[], object]) -> Bill:
        """Give the bill of one stretch of work."""
        self.bill = Bill()
        work()
        return self.bill

    def _asked(self, *, params: dict[str, Any], model: Any, **_: Any) -> None:
        name = model.name
        self.bill.calls[name] += 1
        match name:
            case "PutItem":
                self._put(params["TableName"], params["Item"])
            case "DeleteItem":
                self._delete(params["TableName"], params["Key"])
            case "UpdateItem":
                self._update(params)
            case "BatchWriteItem":
                self._write_batch(params["RequestItems"])
            case "TransactWriteItems":
                for write in params["TransactItems"]:
                    self._write_of_transaction(write)
            case "SendMessageBatch":
                self.bill.sqs_requests += 1
            case "Query" | "GetItem" | "BatchGetItem":
                pass  # billed by what is found
            case _:
                raise AssertionError(f"the meter does not know what {name} costs")

    def _answered(self, *, parsed: dict[str, Any], model: Any, **_: Any) -> None:
        match model.name:
            case "Query":
                size = sum(bytes_of_item(item) for item in parsed.get("Items", ()))
                self.bill.read_units += read_units(size)
            case "GetItem":
                self.bill.read_units += read_units(bytes_of_item(parsed.get("Item", {})))
            case "BatchGetItem":
                for items in parsed["Responses"].values():
                    self.bill.read_units += sum(read_units(bytes_of_item(item)) for item in items)

    def _write_batch(self, requests: Mapping[str, Any]) -> None:
        for table, writes in requests.items():
            for write in writes:
                if "PutRequest" in write:
                    self._put(table, write["PutRequest"]["Item"])
                else:
                    self._delete(table, write["DeleteRequest"]["Key"])

    def _write_of_transaction(self, write: Mapping[str, Any]) -> None:
        """Bill a part twice: it is prepared and then committed, also where it only is a check."""
        ((kind, part),) = write.items()
        before = self.bill.write_units
        match kind:
            case "Put":
                self._put(part["TableName"], part["Item"])
            case "Update":
                self._update(part)
            case "ConditionCheck":
                size = self.sizes.get(self._place(part["TableName"], part["Key"]), 0)
                self.bill.write_units += write_units(size)
            case _:
                raise AssertionError(f"no transaction of ours has a {kind}")
        self.bill.write_units += self.bill.write_units - before

    def _put(self, table: str, item: Item) -> None:
        place, size = self._place(table, item), bytes_of_item(item)
        self.bill.write_units += write_units(max(size, self.sizes.get(place, 0)))
        self.sizes[place] = size

    def _delete(self, table: str, key: Item) -> None:
        self.bill.write_units += write_units(self.sizes.pop(self._place(table, key), 0))

    def _update(self, params: dict[str, Any]) -> None:
        """Bill an update from above: as if all its values came to what was there."""
        place = self._place(params["TableName"], params["Key"])
        size = self.sizes.get(place, 0) + bytes_of_item(params["ExpressionAttributeValues"])
        self.bill.write_units += write_units(size)

    def _place(self, table: str, item: Item) -> Place:
        return table, frozenset((name, str(item[name])) for name in self.keys[table])
