"""A root secret that is always the same, or that cannot be read."""

from puntual.domain.errors import Unavailable


class FixedRootSecret:
    def __init__(self, secret: bytes = b"a root of many keys") -> None:
        self.secret = secret
        self.is_out_of_reach = False

    def read(self) -> bytes:
        if self.is_out_of_reach:
            raise Unavailable("read the root secret")
        return self.secret
