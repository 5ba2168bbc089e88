"""Random ids from the operating system."""

import uuid


class SystemIds:
    def new_id(self) -> str:
        return uuid.uuid4().hex
