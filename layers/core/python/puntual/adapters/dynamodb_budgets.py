"""The budgets in DynamoDB, beside the registration: partition `tenant`, sort key `budget#NAME`.

Rows do not expire: a tenant has as many as its registration names budgets and targets.
"""

from dataclasses import dataclass

from puntual.aws import DynamoDBClient, Item, lost_to, unavailable_if_transient
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
            held=int(row["held"]["N"]),
            write_id=row["write_id"]["S"],
        )

    def swap(self, budget: Budget, *, seen: Budget) -> bool:
        """Update, not put: the API's function and others may update tenants' rows already."""
        values: Item = {
            ":through": {"S": brief_text_of(budget.taken_through)},
            ":held": {"N": str(budget.held)},
            ":write_id": {"S": budget.write_id},
        }
        condition = "attribute_not_exists(#write_id)"
        if seen.write_id:
            condition = "#write_id = :seen"
            values[":seen"] = {"S": seen.write_id}
        with unavailable_if_transient("draw from a budget"):
            in_the_way = lost_to(
                lambda: self.client.update_item(
                    TableName=self.table,
                    Key=_key_of(budget.key),
                    UpdateExpression=(
                        "SET #through = :through, #held = :held, #write_id = :write_id"
                    ),
                    ConditionExpression=condition,
                    ExpressionAttributeNames={
                        "#through": "taken_through",
                        "#held": "held",
                        "#write_id": "write_id",
                    },
                    ExpressionAttributeValues=values,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            )
        return in_the_way is None or in_the_way.get("write_id") == {"S": budget.write_id}


def _key_of(key: BudgetKey) -> Item:
    return {"tenant": {"S": key.tenant}, "item": {"S": f"budget#{key.name}"}}
