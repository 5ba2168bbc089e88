"""Labels: what tenants name their schedules by, beside the id, and find them by again."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from puntual.domain.errors import Rejected

Labels = tuple[tuple[str, str], ...]
"""Keys with their values, in the order of the keys."""

LABELS_MAX = 20
KEY_LENGTH_MAX = 63
VALUE_LENGTH_MAX = 255
LABELS_BYTES_MAX = 2048
"""Of all keys and values together, in UTF-8: with the largest, a head still is one read unit."""

FILTERS_MAX = 10
KEY_ALLOWED = f"1 to {KEY_LENGTH_MAX} of A-Z a-z 0-9 . _ / -"
VALUE_ALLOWED = f"up to {VALUE_LENGTH_MAX} printable characters"

_KEY = re.compile(rf"[A-Za-z0-9._/-]{{1,{KEY_LENGTH_MAX}}}", re.ASCII)


def labels_of(asked: Mapping[str, str]) -> Labels:
    """Check the labels of a definition; raises `Rejected`."""
    if len(asked) > LABELS_MAX:
        raise Rejected("labels", f"{len(asked)} labels", f"at most {LABELS_MAX}")
    for key, value in asked.items():
        if not _KEY.fullmatch(key):
            raise Rejected("labels", key, f"keys of {KEY_ALLOWED}")
        if not _is_value(value):
            raise Rejected(f"labels.{key}", value, VALUE_ALLOWED)
    size = sum(len(text.encode()) for label in asked.items() for text in label)
    if size > LABELS_BYTES_MAX:
        allowed = f"keys and values of at most {LABELS_BYTES_MAX} bytes together"
        raise Rejected("labels", f"{size} bytes", allowed)
    return tuple(sorted(asked.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelFilter:
    """Schedules that have a label of this key, and of this value if one is given."""

    key: str
    value: str | None = None

    @property
    def text(self) -> str:
        return self.key if self.value is None else f"{self.key}={self.value}"

    def takes(self, labels: Labels) -> bool:
        return any(
            key == self.key and (self.value is None or value == self.value) for key, value in labels
        )


def label_filters_of(texts: Collection[str]) -> tuple[LabelFilter, ...]:
    """Read filters such as `team=billing` and `env`, all of which must hold; raises `Rejected`."""
    if len(texts) > FILTERS_MAX:
        raise Rejected("label", f"{len(texts)} filters", f"at most {FILTERS_MAX}")
    return tuple(_filter_of(text) for text in sorted(set(texts)))


def _filter_of(text: str) -> LabelFilter:
    key, equals, value = text.partition("=")
    if not _KEY.fullmatch(key) or not _is_value(value):
        allowed = f"key or key=value: keys of {KEY_ALLOWED}, values of {VALUE_ALLOWED}"
        raise Rejected("label", text, allowed)
    return LabelFilter(key=key, value=value if equals else None)


def _is_value(value: str) -> bool:
    return len(value) <= VALUE_LENGTH_MAX and value.isprintable()
