"""The budgets in DynamoDB, beside the registration: partition `tenant`, sort key `budget#NAME`.

Rows do not expire: a tenant has as many as its registration names budgets and targets.
"""

from dataclasses import dataclass

from puntual.aws import DynamoDBClient, Item, swap_item, unavailable_if_transient
from puntual.domain.budget import Budget, BudgetKey
from puntual.domain.instant import EPOCH, brief_text_of, instant_of


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbBudgets:
    client: DynamoDBClient
    table: str

    def read(self, key: BudgetKey) -> Budget:
        with unavailable_if_transient("read a budget"):
            answer = self.client.get_item(
                TableName=self.table, Key=_key_of(key), ConsistentRead=True
            )
        if "Item" not in answer:
            return Budget(key=key, taken_through=EPOCH)
        row = answer["Item"]
        return Budget(
            key=key,
            taken_through=instant_of(row["taken_through"]["S"]),
            # A release that did not note it may still be drawing during a deployment.
            per_minute=int(row["per_minute"]["N"]) if "per_minute" in row else 0,
            held=int(row["held"]["N"]),
            write_id=row["write_id"]["S"],
        )

    def swap(self, budget: Budget, *, seen: Budget) -> bool:
        values: Item = {
            "taken_through": {"S": brief_text_of(budget.taken_through)},
            "per_minute": {"N": str(budget.per_minute)},
            "held": {"N": str(budget.held)},
        }
        with unavailable_if_transient("draw from a budget"):
            return swap_item(
                self.client,
                self.table,
                _key_of(budget.key),
                values,
                write_id=budget.write_id,
                seen=seen.write_id,
            )


def _key_of(key: BudgetKey) -> Item:
    return {"tenant": {"S": key.tenant}, "item": {"S": f"budget#{key.name}"}}
