"""Ids that count, so that a run can be repeated exactly."""


class CountingIds:
    def __init__(self) -> None:
        self._given = 0

    def new_id(self) -> str:
        self._given += 1
        return f"{self._given:032x}"
