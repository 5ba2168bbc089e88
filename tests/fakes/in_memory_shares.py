"""The shares of limits in memory."""

from puntual.domain.share import ShareKey, Shares


class InMemoryShares:
    def __init__(self) -> None:
        self.rows: dict[ShareKey, Shares] = {}
        self.swaps = 0

    def read(self, key: ShareKey) -> Shares:
        return self.rows.get(key, Shares(key=key, holders={}))

    def swap(self, shares: Shares, *, seen: Shares) -> bool:
        stands = self.read(shares.key)
        if stands.write_id != seen.write_id:
            return stands.write_id == shares.write_id
        self.rows[shares.key] = shares
        self.swaps += 1
        return True
