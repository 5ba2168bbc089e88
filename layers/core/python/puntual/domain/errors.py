"""One root, three children named by what the caller must do next."""


class PuntualError(Exception):
    """Root of every error that Puntual raises on purpose."""


class Rejected(PuntualError):
    """The request must be changed: it names the field, the value and what is allowed there."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        shown = repr(value)
        if len(shown) > VALUE_SHOWN_LENGTH_MAX:
            shown = shown[:VALUE_SHOWN_LENGTH_MAX] + "…"
        super().__init__(f"{field}: {shown} is not allowed; allowed: {allowed}")
        self.field, self.value, self.allowed = field, shown, allowed


class Conflict(PuntualError):
    """The world has moved on: read again, then decide again."""


class Unavailable(PuntualError):
    """Nothing is wrong with the request: repeat it later."""


VALUE_SHOWN_LENGTH_MAX = 120
"""Characters of a refused value that an error repeats: enough to find it, too few to be a log."""
