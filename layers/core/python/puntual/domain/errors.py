"""One root, three children named by what the caller must do next."""


class PuntualError(Exception):
    """Root of every error that Puntual raises on purpose."""


class Rejected(PuntualError):
    """The request must be changed: it names the field, the value and what is allowed there.

    A value of None stands for one that is missing.
    """

    def __init__(self, field: str, value: object, allowed: str) -> None:
        what = "it is missing" if value is None else f"{_told(value)} is not allowed"
        super().__init__(f"{field}: {what}; allowed: {allowed}")
        self.field, self.value, self.allowed = field, _shown(value), allowed


class Conflict(PuntualError):
    """The world has moved on: read again, then decide again."""


class Unavailable(PuntualError):
    """Nothing is wrong with the request: repeat it later."""


VALUE_SHOWN_LENGTH_MAX = 120
"""Characters of a refused value that an error repeats: enough to find it, too few to be a log."""


def _shown(value: object) -> str | None:
    """Give a value as its caller would write it, cut; None where there was none."""
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case str() if value.isprintable():
            return _cut(value)
        case _:
            return _cut(repr(value))


def _told(value: object) -> str:
    """Give a value for a sentence: text in quotes, anything else as its caller would write it."""
    return _cut(repr(value)) if isinstance(value, str) else str(_shown(value))


def _cut(text: str) -> str:
    return text if len(text) <= VALUE_SHOWN_LENGTH_MAX else text[:VALUE_SHOWN_LENGTH_MAX] + "…"
