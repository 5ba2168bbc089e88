"""The budgets in memory."""

from puntual.domain.budget import Budget, BudgetKey
from puntual.domain.instant import EPOCH


class InMemoryBudgets:
    def __init__(self) -> None:
        self.rows: dict[BudgetKey, Budget] = {}
        self.swaps = 0

    def read(self, key: BudgetKey) -> Budget:
        return self.rows.get(key, Budget(key=key, taken_through=EPOCH))

    def swap(self, budget: Budget, *, seen: Budget) -> bool:
        stands = self.read(budget.key)
        if stands.write_id != seen.write_id:
            return stands.write_id == budget.write_id
        self.rows[budget.key] = budget
        self.swaps += 1
        return True
